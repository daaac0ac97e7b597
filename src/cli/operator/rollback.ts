import { rollBack } from "../../backup/rollback.ts";
import { isoTime } from "../../lib/clock.ts";
import { colours, printJson, say, shortTime } from "../output.ts";
import { type DataOptions, readConfig, requireDataIn } from "./data-folder.ts";

/** `roost rollback`: for an older binary, after an upgrade that disappoints. */
export function rollBackUpgrade(options: DataOptions & { json?: true }): void {
  const { config } = readConfig(options);
  requireDataIn(config);
  const { from, to, stateOfMs, keptIn } = rollBack(config.dataDir);
  if (options.json) {
    printJson({ from, to, stateOf: isoTime(stateOfMs), keptIn });
    return;
  }
  say(
    colours.green("Rolled back"),
    ` ${config.dataDir} from schema ${from} to ${to}, the state of ${shortTime(stateOfMs)}.`,
  );
  say(`What came after it is in ${keptIn}.`);
  say("Start the Roost that you had before the upgrade: this one would upgrade the data again.");
}
