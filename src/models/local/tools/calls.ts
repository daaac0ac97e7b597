/** The call that serves a message: what it must contain comes from the message, and the model chooses where it is open. */
import { TEXT_FILE } from "../../../lib/questions.ts";
import { fileNameIn, filesMentioned, folderIn, timeZoneIn } from "./details.ts";
import type { AskedTool } from "./examples.ts";
import { calculationsIn, sumIn } from "./expression.ts";
import { formulaIn } from "./formula.ts";
import type { ToolName } from "./offered.ts";
import { namesIn, notKnown, tell } from "./tell.ts";
import type { ToolUse } from "./tool-use.ts";

export interface Call {
  name: ToolName;
  input: Record<string, unknown>;
}

/** "My list", "the file about the garden" */
const OWN = new RegExp(`\\b(?:my|our|your|files?|notes?|documents?)\\b|\\w${TEXT_FILE}\\b`, "i");

/** Has the model choose one of the texts; null if there is none, or if it is not sure enough. */
export type ChooseText = (texts: readonly string[]) => AsyncGenerator<void, string | null>;

/** The next call, or the answer; null if the message is better answered without tools. */
export async function* nextStep(
  wanted: AskedTool,
  { question: message, offered, made }: ToolUse,
  chooseText: ChooseText,
): AsyncGenerator<void, { call: Call } | { text: string } | null> {
  const last = made.at(-1);
  if (last === undefined) {
    const first = yield* firstCall(wanted, message, chooseText);
    return first !== null && offered.includes(first.call.name) ? first : null;
  }
  if (wanted !== "read_file" || last.name !== "list_files") return { text: tell(last, message) };
  const names = namesIn(last.output);
  const mentioned = filesMentioned(message, names);
  // "Show me the recipe for pancakes" need not mean a file.
  if (mentioned.length === 0 && !OWN.test(message)) return null;
  if (mentioned.length === 0) return { text: notKnown(last) };
  const name = yield* chooseText(mentioned);
  return name === null ? { text: tell(last, message) } : { call: { name: "read_file", input: { name } } };
}

async function* firstCall(
  wanted: AskedTool,
  message: string,
  chooseText: ChooseText,
): AsyncGenerator<void, { call: Call } | null> {
  switch (wanted) {
    case "now": {
      const timeZone = timeZoneIn(message);
      return { call: { name: "now", input: timeZone === null ? {} : { timeZone } } };
    }
    case "run_javascript": {
      const code = formulaIn(message)?.code ?? sumIn(message) ?? (yield* chooseText(calculationsIn(message)));
      return code === null ? null : { call: { name: "run_javascript", input: { code } } };
    }
    case "list_files": {
      const folder = folderIn(message);
      return { call: { name: "list_files", input: folder === null ? {} : { folder } } };
    }
    case "read_file": {
      const name = fileNameIn(message);
      return { call: name === null ? { name: "list_files", input: {} } : { name: "read_file", input: { name } } };
    }
  }
}
