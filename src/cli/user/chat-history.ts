import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { writePrivateFile } from "../../lib/private-file.ts";
import { configFolder } from "./credentials.ts";

const MAX_ENTRIES = 500;
const LINE_SEPARATOR = "\u2028";

/** What was typed in chats, newest first, stored in the config folder with mode 0600; a line break in it as U+2028. */
export function openHistory(): { entries(): readonly string[]; add(text: string): void } {
  const path = join(configFolder(), "chat-history");
  const lines = existsSync(path) ? readFileSync(path, "utf8").split("\n").filter(Boolean).slice(0, MAX_ENTRIES) : [];
  let entries = lines.map((line) => line.replaceAll(LINE_SEPARATOR, "\n"));
  return {
    entries: () => entries,
    add(text) {
      entries = [text, ...entries.filter((entry) => entry !== text)].slice(0, MAX_ENTRIES);
      mkdirSync(configFolder(), { recursive: true, mode: 0o700 });
      writePrivateFile(path, entries.map((entry) => `${entry.replaceAll("\n", LINE_SEPARATOR)}\n`).join(""));
    },
  };
}
