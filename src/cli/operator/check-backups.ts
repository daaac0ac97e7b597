import { existsSync } from "node:fs";
import { openDestination } from "../../backup/destination.ts";
import { isLate, readTrial, scheduledOf } from "../../backup/schedule.ts";
import type { Config } from "../../config.ts";
import { shortTime } from "../output.ts";
import { roost } from "./advice.ts";
import { placeOf } from "./backup.ts";
import { databaseOf } from "./data-folder.ts";
import { type Finding, fail, pass } from "./finding.ts";
import { readPassphraseFile } from "./passphrase.ts";

type Settings = Pick<Config, "dataDir" | "backupEvery" | "backupTo" | "backupPassphraseFile">;

/** Their passphrase can be read. If backups are scheduled: the newest is there, in time and readable, and the last trial restore succeeded. */
export async function checkBackups(config: Settings): Promise<Finding> {
  const { dataDir, backupEvery: everyMs, backupPassphraseFile } = config;
  if (backupPassphraseFile !== null) readPassphraseFile(backupPassphraseFile);
  if (everyMs === null) return pass("none is scheduled; to have one made every day, set ROOST_BACKUP_EVERY=1d");
  if (!existsSync(databaseOf(config))) return pass("none yet: there is nothing to back up");
  const destination = openDestination(placeOf(config));
  const makeOne = `keep the server running, see its log, or make one: ${roost("backup create FILE", dataDir)}`;
  const [newest] = scheduledOf(await destination.list(), Date.now());
  if (newest === undefined) return fail(`there is none in ${destination.pathOf("")}`, makeOne);
  const path = destination.pathOf(newest.name);
  const about = `${path} of ${shortTime(newest.createdAtMs)}`;
  if (isLate(newest.createdAtMs, everyMs, Date.now())) return fail(`overdue: the newest is ${about}`, makeOne);
  if (!(await destination.isBackup(newest.name))) {
    return fail(`${path} is not a readable backup`, `remove it; ${makeOne}`);
  }
  const trial = readTrial(dataDir);
  if (trial !== null && trial.failure !== null) {
    return fail(`the trial restore of ${trial.file} failed: ${trial.failure}`, makeOne);
  }
  const tried = trial === null ? "not restored for a trial yet" : `last trial restore ${shortTime(trial.checkedAtMs)}`;
  return pass(`${about}, ${tried}`);
}
