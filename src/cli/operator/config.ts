import { allSettings, type SettingValue } from "../../config.ts";
import { colours, printJson, printTable, say } from "../output.ts";
import { wrapped } from "../settings-help.ts";
import { readConfig, type ServeSettings } from "./data-folder.ts";

/** `roost config`: every setting, its value (secrets masked), where it came from and what it means. */
export function showConfig({ json, ...options }: ServeSettings & { json?: true }): void {
  const { settings } = readConfig(options);
  if (json) printJson(settings);
  else if (process.stdout.isTTY) printWrapped(settings, process.stdout.columns || 80);
  else
    printTable(
      ["SETTING", "VALUE", "FROM", "MEANING"],
      settings.map((setting) => [setting.name, setting.value || "-", setting.source, meaningOf(setting)]),
      "",
    );
}

const meanings = new Map(allSettings().map(({ name, meaning }) => [name, meaning]));
const meaningOf = ({ name }: SettingValue): string => meanings.get(name) ?? "";

const GAP = "  ";

/** A terminal is too narrow for four columns: where a value came from stands below it, and what is too long is wrapped. */
function printWrapped(settings: readonly SettingValue[], columns: number): void {
  const name = Math.max(...settings.map((setting) => setting.name.length));
  const room = Math.max(40, columns - name - 2 * GAP.length);
  const value = Math.min(40, Math.floor(room * 0.45));
  const meaning = room - value;
  const line = (one: string, two: string, three: string) =>
    [one.padEnd(name), two + " ".repeat(Math.max(0, value - Bun.stringWidth(two))), three].join(GAP).trimEnd();
  say(colours.bold(line("SETTING", "VALUE", "MEANING")));
  for (const setting of settings) {
    const source = setting.source === "default" ? [] : wrapped(`(${setting.source})`, value);
    const values = [...wrapped(setting.value.replaceAll(",", ", ") || "-", value), ...source];
    const meant = wrapped(meaningOf(setting), meaning);
    for (let at = 0; at < Math.max(values.length, meant.length); at++) {
      say(line(at === 0 ? setting.name : "", values[at] ?? "", meant[at] ?? ""));
    }
  }
}
