import type { Log } from "../lib/log.ts";
import type { Life, Retention } from "../storage/retention.ts";
import type { Features } from "./features.ts";

const INTERVAL_MS = 60 * 60 * 1000;

export interface Housekeeping {
  /** Runs all tasks now, one by one. */
  tidy(): Promise<void>;
  stop(): void;
}

/** Runs the tasks soon after the start and then hourly. A failure is logged and retried next time. */
export function startHousekeeping(tasks: Record<string, () => void | Promise<void>>, log: Log): Housekeeping {
  const tidy = async () => {
    for (const [task, run] of Object.entries(tasks)) {
      try {
        await run();
      } catch (err) {
        log.error({ err, task }, "housekeeping failed");
      }
    }
  };
  const timer = setInterval(() => void tidy(), INTERVAL_MS);
  timer.unref();
  const first = setTimeout(() => void tidy(), 10_000);
  first.unref();
  return {
    tidy,
    stop() {
      clearTimeout(first);
      clearInterval(timer);
    },
  };
}

/** Signs the audit log, then removes what has reached the end of its life, one kind after the other. */
export const housekeepingTasks = (
  { checkpoints }: Pick<Features, "checkpoints">,
  retention: Pick<Retention, "prune">,
  lives: readonly Life[],
) => ({
  auditCheckpoints: checkpoints.sign,
  ...Object.fromEntries(lives.map((life) => [life.kind, () => retention.prune(life)])),
});
