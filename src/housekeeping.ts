import type { Log } from "./lib/log.ts";

const EVERY_MS = 60 * 60 * 1000;

/** Runs each task now and then every hour, one after the other; one that fails is logged and tried again next time. */
export function startHousekeeping(tasks: Record<string, () => void | Promise<void>>, log: Log): { stop(): void } {
  const tidy = async () => {
    for (const [task, run] of Object.entries(tasks)) {
      try {
        await run();
      } catch (err) {
        log.error({ err, task }, "housekeeping failed");
      }
    }
  };
  const timer = setInterval(() => void tidy(), EVERY_MS);
  timer.unref();
  const first = setTimeout(() => void tidy(), 10_000);
  first.unref();
  return {
    stop() {
      clearTimeout(first);
      clearInterval(timer);
    },
  };
}
