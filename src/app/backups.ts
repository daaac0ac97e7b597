import { join } from "node:path";
import { openDestination } from "../backup/destination.ts";
import { removeAbandonedChecks } from "../backup/left-behind.ts";
import { type BackupSchedule, createBackupSchedule } from "../backup/schedule.ts";
import type { Config } from "../config.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { ownCommand } from "../lib/own-program.ts";
import type { Mail } from "../mail/message.ts";

export interface RunningBackups extends Pick<BackupSchedule, "figures"> {
  /** Ends a backup that is being made; it leaves no file. */
  stop(): Promise<void>;
}

export interface BackupParts {
  config: Config;
  everyMs: number;
  clock: Clock;
  log: Log;
  mail: Pick<Mail, "send">;
}

const TICK_MS = 60_000;
/** Not among the first requests. */
const FIRST_TICK_MS = 15_000;
const MAX_RUN_MS = 12 * 60 * 60 * 1000;
const MAX_ERROR_BYTES = 4_000;

/**
 * Scheduled backups. Each is made by a process of its own, as `roost backup create` makes them: it takes a core for a
 * while, and the server keeps its thread.
 */
export function runBackups({ config, everyMs, clock, log, mail }: BackupParts): RunningBackups {
  const { dataDir, backupTo, backupKeep, backupPassphraseFile } = config;
  const stopping = new AbortController();

  async function run(verb: "create" | "verify", path: string, killSignal: NodeJS.Signals): Promise<void> {
    const child = Bun.spawn(ownCommand("backup", verb, path, "--data", dataDir, "--json"), {
      stdin: "ignore",
      stdout: "ignore",
      stderr: "pipe",
      killSignal,
      signal: AbortSignal.any([stopping.signal, AbortSignal.timeout(MAX_RUN_MS)]),
    });
    const words = (await new Response(child.stderr).text()).trim().slice(-MAX_ERROR_BYTES);
    if ((await child.exited) !== 0) throw new Error(words.replace(/^roost: /, "") || "its process was ended");
  }

  const schedule = createBackupSchedule({
    dataDir,
    everyMs,
    keep: backupKeep,
    isEncrypted: backupPassphraseFile !== null,
    destination: openDestination(backupTo ?? join(dataDir, "backups")),
    clock,
    log,
    signal: stopping.signal,
    make: (path) => run("create", path, "SIGTERM"),
    // While it reads the database it would hear of nothing else, and the server has ten seconds to stop.
    check: (path) => run("verify", path, "SIGKILL").finally(() => removeAbandonedChecks(join(dataDir, "backups"))),
    tell: (subject, text) => mail.send({ to: operatorOf(config.mailFrom), subject, text }),
  });
  const first = setTimeout(() => void schedule.tick(), FIRST_TICK_MS);
  first.unref();
  const timer = setInterval(() => void schedule.tick(), TICK_MS);
  timer.unref();
  return {
    figures: schedule.figures,
    async stop() {
      clearTimeout(first);
      clearInterval(timer);
      stopping.abort();
      await schedule.settled();
    },
  };
}

/** The operator's mailbox is the one that mail comes from; without SMTP, mail is for whoever reads the outbox. */
const operatorOf = (mailFrom: string | null): string =>
  mailFrom === null ? "operator@roost.local" : (/<([^<>]+)>\s*$/.exec(mailFrom)?.[1] ?? mailFrom);
