import { allSettings, type SettingValue } from "../../config.ts";
import { colours, printJson, printTable, say } from "../output.ts";
import { wrapHard } from "../settings-help.ts";
import { noteOtherSettings, readCheckedConfig, type ServeSettings } from "./data-folder.ts";

/** `roost config`: every setting with its value (secrets masked), source and meaning. */
export async function showConfig({ json, ...options }: ServeSettings & { json?: true }): Promise<void> {
  const loaded = await readCheckedConfig(options);
  noteOtherSettings(loaded);
  const { settings } = loaded;
  if (json) printJson(settings);
  else if (process.stdout.isTTY) printWrapped(settings, process.stdout.columns || 80);
  else
    printTable(
      ["SETTING", "VALUE", "FROM", "MEANING"],
      settings.map((setting) => [setting.name, setting.value || "-", setting.source, meaningOf(setting)]),
      "",
      {},
    );
}

const meanings = new Map(allSettings().map(({ name, meaning }) => [name, meaning]));
const meaningOf = ({ name }: SettingValue): string => meanings.get(name) ?? "";

const GAP = "  ";
/** A longer name, as other programs' variables have, is on a line of its own. */
const MAX_NAME = 32;

/** A terminal is too narrow for four columns: the source goes below the value, and long cells wrap. */
function printWrapped(settings: readonly SettingValue[], columns: number): void {
  const name = Math.max(...settings.map((setting) => setting.name.length).filter((length) => length <= MAX_NAME));
  const room = Math.max(40, columns - name - 2 * GAP.length);
  const value = Math.min(40, Math.floor(room * 0.45));
  const meaning = room - value;
  const line = (one: string, two: string, three: string) =>
    [one.padEnd(name), two + " ".repeat(Math.max(0, value - Bun.stringWidth(two))), three].join(GAP).trimEnd();
  say(colours.bold(line("SETTING", "VALUE", "MEANING")));
  for (const setting of settings) {
    const source = setting.source === "default" ? [] : wrapHard(`(${setting.source})`, value);
    const values = [...wrapHard(setting.value.replaceAll(",", ", ") || "-", value), ...source];
    const meant = wrapHard(meaningOf(setting), meaning);
    if (setting.name.length > name) say(setting.name);
    for (let at = 0; at < Math.max(values.length, meant.length); at++) {
      say(line(at === 0 && setting.name.length <= name ? setting.name : "", values[at] ?? "", meant[at] ?? ""));
    }
  }
}
