import type { Setting } from "../config/forms.ts";
import { GROUPS } from "../config/settings.ts";
import { allSettings } from "../config.ts";

const NAME_COLUMNS = 30;
const MAX_COLUMNS = 100;

const INTRODUCTION =
  "Settings are environment variables, or keys in roost.toml in the data folder: port = 8080 there is " +
  "ROOST_PORT=8080. The command line overrides the environment, which overrides the file.";

/** Every setting with its meaning, format and default, for `--help`, in lines of at most `columns`. */
export function settingsHelp(columns: number): string {
  const width = Math.min(columns, MAX_COLUMNS) - NAME_COLUMNS - 2;
  const groups = GROUPS.map(([title, settings]) => {
    const lines = allSettings(settings).flatMap((setting) => {
      const text = wrapHard(`${setting.meaning} (${formOf(setting)})`, width);
      const isLong = setting.name.length >= NAME_COLUMNS;
      const beside = text.map(
        (line, at) => `  ${(at === 0 && !isLong ? setting.name : "").padEnd(NAME_COLUMNS)}${line}`,
      );
      return isLong ? [`  ${setting.name}`, ...beside] : beside;
    });
    return [`${title}:`, ...lines].join("\n");
  });
  return ["", ...wrapHard(INTRODUCTION, Math.min(columns, MAX_COLUMNS)), "", groups.join("\n\n")].join("\n");
}

function formOf({ expects, fallback, fallbackShown }: Setting<unknown>): string {
  return `${expects}; default ${(fallbackShown ?? fallback).replaceAll("`", "").replaceAll(/,(?! )/g, ", ")}`;
}

/** Lines of at most `columns`; a word that is longer is broken, since another column of text is beside it. */
export const wrapHard = (text: string, columns: number): string[] =>
  Bun.wrapAnsi(text, columns, { hard: true }).split("\n");
