import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { writePrivateFile } from "../../lib/private-file.ts";
import { configFolder } from "./credentials.ts";

const MAX_ENTRIES = 500;

/** What was typed in chats, newest first, stored in the config folder with mode 0600. */
export function openHistory(): { entries(): readonly string[]; add(text: string): void } {
  const path = join(configFolder(), "chat-history");
  let entries = existsSync(path) ? readFileSync(path, "utf8").split("\n").filter(Boolean).slice(0, MAX_ENTRIES) : [];
  return {
    entries: () => entries,
    add(text) {
      const line = text.replaceAll(/\s+/g, " ");
      entries = [line, ...entries.filter((entry) => entry !== line)].slice(0, MAX_ENTRIES);
      mkdirSync(configFolder(), { recursive: true, mode: 0o700 });
      writePrivateFile(path, `${entries.join("\n")}\n`);
    },
  };
}
