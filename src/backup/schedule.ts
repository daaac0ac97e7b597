import { existsSync } from "node:fs";
import { join } from "node:path";
import { DAY_MS, HOUR_MS } from "../lib/calendar.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { messageOf } from "../lib/message-of.ts";
import { readPrivateJson, writePrivateFile } from "../lib/private-file.ts";
import { untilAborted } from "../lib/until-aborted.ts";
import { type Destination, type StoredBackup, scheduledAt, scheduledName } from "./destination.ts";

/** What a schedule has done since the start, and how the backups are. */
export interface BackupFigures {
  /** When the newest scheduled backup was begun, in milliseconds since 1970; null if there is none, or none known yet. */
  newestMs: number | null;
  isOverdue: boolean;
  made: number;
  failed: number;
  checked: number;
  /** Backups that could not be restored for a trial. */
  bad: number;
}

export interface BackupSchedule {
  /** Does what is due: a backup, then a trial restore of the newest one. Resolves when that is done; never rejects. */
  tick(): Promise<void>;
  figures(): BackupFigures;
  /** Resolves when nothing is being done. */
  settled(): Promise<void>;
}

export interface ScheduleParts {
  dataDir: string;
  everyMs: number;
  /** How many scheduled backups stay; others in the same place are never removed. */
  keep: number;
  isEncrypted: boolean;
  destination: Destination;
  clock: Pick<Clock, "now">;
  log: Pick<Log, "info" | "warn" | "error">;
  /** Makes the backup `path`. Throws an error for the operator if that fails. */
  make(path: string): Promise<void>;
  /** Restores the backup `path` for a trial. Throws an error for the operator if that fails. */
  check(path: string): Promise<void>;
  /** Aborted when the server stops: what fails then has not failed. */
  signal: AbortSignal;
  /** How long the destination may take to list its backups, or to remove one. */
  patienceMs?: number;
  /** Writes to the operator. */
  tell(subject: string, text: string): Promise<void>;
}

const PATIENCE_MS = 60_000;
const TRIAL_EVERY_MS = 7 * DAY_MS;
/** A failed backup is tried again after this, or after `everyMs` if that is shorter. */
const RETRY_MS = HOUR_MS;
/** The operator gets at most one mail in this time. */
const TELL_EVERY_MS = DAY_MS;

/** The last trial restore: `<data>/backups/trial.json`. */
export interface Trial {
  file: string;
  /** Milliseconds since 1970. */
  checkedAtMs: number;
  /** Null if the backup is good. */
  failure: string | null;
}

const trialPath = (dataDir: string): string => join(dataDir, "backups", "trial.json");

export const readTrial = (dataDir: string): Trial | null =>
  existsSync(trialPath(dataDir)) ? (readPrivateJson(trialPath(dataDir)) as Trial) : null;

/** Half an interval late, or so far ahead that the clock was. `newestMs` and `now`: milliseconds since 1970. */
export const isLate = (newestMs: number, everyMs: number, now: number): boolean =>
  Math.abs(now - newestMs) > 1.5 * everyMs;

/** Scheduled backups, newest first; then those that seem to be of the future, from when the clock was ahead. */
export function scheduledOf(stored: readonly StoredBackup[], now: number): StoredBackup[] {
  const all = stored.filter(({ name }) => scheduledAt(name) !== null);
  const isOfFuture = ({ createdAtMs }: StoredBackup) => createdAtMs > now;
  return [...all.filter((one) => !isOfFuture(one)), ...all.filter(isOfFuture)];
}

/** Makes backups of a running server, keeps the newest of them, and tries once a week whether they can be restored. */
export function createBackupSchedule(parts: ScheduleParts): BackupSchedule {
  const { dataDir, everyMs, keep, isEncrypted, destination, clock, log, patienceMs = PATIENCE_MS } = parts;
  const figures: BackupFigures = { newestMs: null, isOverdue: false, made: 0, failed: 0, checked: 0, bad: 0 };
  const startedMs = clock.now();
  let failedAtMs = Number.NEGATIVE_INFINITY;
  let toldAtMs = Number.NEGATIVE_INFINITY;
  let running: Promise<void> | null = null;

  /** What the destination answers, which may be a server that hangs. */
  async function answered<T>(answer: Promise<T>): Promise<T> {
    const deadline = AbortSignal.timeout(patienceMs);
    return untilAborted(answer, AbortSignal.any([parts.signal, deadline])).catch((error: unknown) => {
      if (error !== deadline.reason) throw error;
      throw new Error(`${destination.pathOf("")} does not answer within ${patienceMs / 1000} seconds`);
    });
  }

  const listed = async (): Promise<StoredBackup[]> => scheduledOf(await answered(destination.list()), clock.now());

  async function newest(): Promise<StoredBackup | null> {
    const [found = null] = await listed();
    figures.newestMs = found?.createdAtMs ?? null;
    return found;
  }

  async function makeOne(): Promise<void> {
    const name = scheduledName(clock.now(), isEncrypted);
    const path = destination.pathOf(name);
    await parts.make(path);
    figures.made += 1;
    figures.newestMs = scheduledAt(name);
    log.info({ event: "backup_created", file: path }, "backup made");
    for (const { name: old } of (await listed()).slice(keep)) await answered(destination.remove(old));
  }

  async function checkNewest({ name }: StoredBackup): Promise<void> {
    const path = destination.pathOf(name);
    const failure = await parts.check(path).then(() => null, messageOf);
    // A trial that the stop has ended says nothing of the backup; the next start makes another.
    if (failure !== null && parts.signal.aborted) return;
    const trial: Trial = { file: path, checkedAtMs: clock.now(), failure };
    writePrivateFile(trialPath(dataDir), JSON.stringify(trial));
    if (failure === null) {
      figures.checked += 1;
      log.info({ event: "backup_checked", file: path }, "backup restored for a trial");
      return;
    }
    figures.bad += 1;
    throw new Error(`the backup ${path} cannot be restored: ${failure}`);
  }

  /** A clock that was ahead, and has been set back, must put off nothing for long. */
  const hasPassed = (ms: number, sinceMs: number): boolean => Math.abs(clock.now() - sinceMs) >= ms;

  const isTrialDue = ({ name }: StoredBackup): boolean => {
    const last = readTrial(dataDir);
    if (last === null || hasPassed(TRIAL_EVERY_MS, last.checkedAtMs)) return true;
    return last.failure !== null && last.file !== destination.pathOf(name);
  };

  async function work(): Promise<void> {
    if (!hasPassed(Math.min(RETRY_MS, everyMs), failedAtMs) || parts.signal.aborted) return;
    try {
      const last = await newest();
      if (last === null || hasPassed(everyMs, last.createdAtMs)) await makeOne();
      const made = await newest();
      if (made !== null && isTrialDue(made)) await checkNewest(made);
      failedAtMs = Number.NEGATIVE_INFINITY;
    } catch (error) {
      if (parts.signal.aborted) return;
      figures.failed += 1;
      failedAtMs = clock.now();
      log.error({ event: "backup_failed", err: error }, "backup failed");
      await tell("A backup of Roost failed", messageOf(error));
    }
  }

  async function judge(): Promise<void> {
    const wasOverdue = figures.isOverdue;
    figures.isOverdue = isLate(figures.newestMs ?? startedMs, everyMs, clock.now());
    if (!figures.isOverdue || wasOverdue) return;
    log.error({ event: "backup_overdue", newestMs: figures.newestMs }, "no backup has been made for too long");
    await tell("A backup of Roost is overdue", "No backup has been made for longer than ROOST_BACKUP_EVERY allows.");
  }

  async function tell(subject: string, what: string): Promise<void> {
    if (!hasPassed(TELL_EVERY_MS, toldAtMs)) return;
    toldAtMs = clock.now();
    const text = `${what}\n\nData folder: ${dataDir}\nBackups: ${destination.pathOf("")}\n\nRun "roost doctor" there to see more.\n`;
    await parts.tell(subject, text).catch((err: unknown) => log.warn({ err }, "the operator could not be told of it"));
  }

  return {
    async tick() {
      // What an earlier tick has begun may never end.
      if (running !== null) await judge();
      running ??= work()
        .then(judge)
        .finally(() => {
          running = null;
        });
      await running;
    },
    figures: () => ({ ...figures }),
    settled: async () => void (await running),
  };
}
