import type { Log } from "../lib/log.ts";
import { watchGarbage } from "../limits/garbage.ts";
import type { Life, Retention } from "../storage/retention.ts";
import type { Features } from "./features.ts";

const INTERVAL_MS = 60 * 60 * 1000;

export interface Housekeeping {
  /** Runs all tasks, one by one; after those that are running, if there are any. */
  tidy(): Promise<void>;
  stop(): void;
}

/**
 * Runs the tasks soon after the start and then hourly, unless the ones before take that long: twice at once would only
 * take more from the requests. A failure is logged and retried next time. And bounds the garbage of this thread.
 * With `onlyWhenTold`, the tasks run only when `tidy` is called.
 */
export function startHousekeeping(
  tasks: Record<string, () => void | Promise<void>>,
  log: Log,
  onlyWhenTold = false,
): Housekeeping {
  const runAll = async () => {
    for (const [task, run] of Object.entries(tasks)) {
      try {
        await run();
      } catch (err) {
        log.error({ err, task }, "housekeeping failed");
      }
    }
  };
  let last: Promise<void> = Promise.resolve();
  let unfinished = 0;
  const tidy = () => {
    unfinished++;
    last = last.then(runAll).finally(() => unfinished--);
    return last;
  };
  const tidyIfIdle = () => !onlyWhenTold && unfinished === 0 && void tidy();
  const timer = setInterval(tidyIfIdle, INTERVAL_MS);
  timer.unref();
  const first = setTimeout(tidyIfIdle, 10_000);
  first.unref();
  const garbage = watchGarbage();
  return {
    tidy,
    stop() {
      garbage.stop();
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
