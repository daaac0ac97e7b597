import { printJson, printTable } from "../output.ts";
import { readConfig, type ServeSettings } from "./data-folder.ts";

/** `roost config`: every setting, its value (secrets masked) and where it came from. */
export function showConfig({ json, ...options }: ServeSettings & { json?: true }): void {
  const { settings } = readConfig(options);
  if (json) printJson(settings);
  else
    printTable(
      ["SETTING", "VALUE", "FROM"],
      settings.map(({ name, value, source }) => [name, value === "" ? "-" : value, source]),
      "",
    );
}
