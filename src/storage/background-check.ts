import { statSync } from "node:fs";
import { join } from "node:path";
import type { Log } from "../lib/log.ts";
import { ownCommand } from "../lib/own-program.ts";
import { DAMAGED } from "./check-process.ts";
import { CHECKED_AT_OPEN_BYTES, damagedError } from "./connection.ts";

export interface BackgroundCheck {
  /** Resolves with what is wrong, if something is; never otherwise. */
  damage: Promise<Error>;
  stop(): Promise<void>;
}

/** A process that is killed by an operator, or by a machine out of memory, has found nothing. */
const WITHOUT_FINDING = "the check of the whole database did not come to its end; it will be made at the next start";

/** Checks a database that is too large to be checked before the start, in a process of its own and of low priority. */
export function checkInBackground(dataDir: string, log: Pick<Log, "info" | "warn">): BackgroundCheck {
  const path = join(dataDir, "roost.db");
  const { promise: damage, resolve } = Promise.withResolvers<Error>();
  if (statSync(path).size <= CHECKED_AT_OPEN_BYTES) return { damage, stop: async () => {} };
  let stopped = false;
  const child = startCheck(path);
  if (child instanceof Error) {
    log.warn({ err: child }, WITHOUT_FINDING);
    return { damage, stop: async () => {} };
  }
  const done = (async () => {
    const [finding, code] = await Promise.all([new Response(child.stdout).text(), child.exited]);
    if (code === DAMAGED) resolve(damagedError(path, finding));
    else if (code === 0) log.info({ event: "database_checked" }, "the database is undamaged");
    else if (!stopped) log.warn({ code }, WITHOUT_FINDING);
  })();
  return {
    damage,
    async stop() {
      stopped = true;
      child.kill();
      await done;
    },
  };
}

/** The error if the system has no process left: that is no reason not to start. */
function startCheck(path: string): Bun.Subprocess<"ignore", "pipe", "ignore"> | Error {
  try {
    return Bun.spawn(ownCommand("database-check", path), { stdin: "ignore", stdout: "pipe", stderr: "ignore" });
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}
