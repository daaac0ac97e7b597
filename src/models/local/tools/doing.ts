/** The calls that do what a person has asked for (deeds.ts), one after the other, and what is said of them in the end. */
import { SAYS } from "../../../lib/recall.ts";
import type { Deed } from "./deed.ts";
import {
  calling,
  callOf,
  type DeedStep,
  inFile,
  isRefused,
  toldChanged,
  toldWritten,
  tooLong,
  wholeText,
  writing,
} from "./file-steps.ts";
import { adding, changingLine, clearing } from "./list-changes.ts";
import type { MadeCall } from "./made-call.ts";
import { forgetting, lastNotes, recalling } from "./notes.ts";
import { tell } from "./tell.ts";
import type { ToolUse } from "./tool-use.ts";

const HOW =
  "I can write, extend, copy, rename and delete files if you say which and give me the words, such as: " +
  "“Write ‘Buy milk’ into notes.md”, “Add eggs to my shopping list” or “Delete notes.md”.";

const ONE_AT_A_TIME = "I have done nothing yet: I can do one such thing at a time. Please ask me for each of them.";

const HOW_TO_FORGET =
  "Tell me what to forget, such as “Forget that I prefer tea”. All that I have noted is in my files, in the folder memory.";

const NO_SUMMARY =
  "I cannot sum up a file. For a short text, send me “Summarise this:” and the text. This is all of it.\n\n";

export function nextOfDeed(deed: Deed, use: ToolUse): DeedStep {
  const step = stepOf(deed, use);
  const called = "call" in step ? step.call.name : "compose" in step ? "write_file" : null;
  // A file that may not be deleted is not renamed by half.
  const name = deed.does === "rename" && !use.offered.includes("delete_file") ? "delete_file" : called;
  return name === null || use.offered.includes(name)
    ? step
    : { text: `I cannot do that: I am not allowed to use ${name}.` };
}

function stepOf(deed: Deed, { question, listNamed, made }: ToolUse): DeedStep {
  const last = made.at(-1);
  switch (deed.does) {
    case "remember":
      return last ? { text: tell(last, question) } : calling("remember", { text: attributed(deed.text) });
    case "write":
      return last ? { text: toldWritten(last, question) } : writing(deed.name, deed.text);
    case "compose":
      return last
        ? { text: toldWritten(last, question) }
        : { compose: { request: deed.request, callWith: (text) => callOf(deed.name, text.trim()) } };
    case "delete":
      return last?.name === "delete_file"
        ? { text: tell(last, question) }
        : inFile(deed.file, made, (name) => calling("delete_file", { name }));
    case "read":
      return last?.name === "read_file"
        ? { text: (deed.isSummary && !last.isError ? NO_SUMMARY : "") + tell(last, question) }
        : inFile(deed.file, made, (name) => calling("read_file", { name }), { isLoose: true });
    case "list":
      return last
        ? { text: tell(last, question) }
        : calling("list_files", deed.folder === null ? {} : { folder: deed.folder });
    case "recall":
      return deed.about === null ? lastNotes(made) : recalling(deed.about, made, question);
    case "add":
      return last && isRefused(last) ? { text: toldChanged(last) } : adding(deed, made);
    case "check": {
      const file = deed.isGuessed ? (listNamed ?? deed.file) : deed.file;
      return last && isRefused(last) ? { text: toldChanged(last) } : changingLine({ ...deed, file }, made);
    }
    case "take":
    case "replace":
      return last && isRefused(last) ? { text: toldChanged(last) } : changingLine(deed, made);
    case "clear":
      return last && isRefused(last) ? { text: toldChanged(last) } : clearing(deed.file, made);
    case "copy":
    case "rename":
      return last && isRefused(last) ? { text: toldWritten(last, question) } : copying(deed, made);
    case "forget":
      if (last && isRefused(last)) return { text: toldChanged(last) };
      return deed.about === null ? { text: HOW_TO_FORGET } : forgetting(deed.about, made);
    case "unknown":
      return { text: deed.isSeveral ? ONE_AT_A_TIME : HOW };
  }
}

const attributed = (text: string): string => (/\b(?:i|my|me|we|our|us)\b/i.test(text) ? SAYS + text : text);

/** A file that is renamed is written under its new name before the old one is deleted. */
function copying({ does, file, to }: Extract<Deed, { does: "copy" | "rename" }>, made: readonly MadeCall[]): DeedStep {
  return inFile(file, made, (name) => {
    if (name === to) return { text: `${name} is called that already.` };
    const read = made.find((call) => call.name === "read_file");
    if (read === undefined) return calling("read_file", { name });
    if (read.isError) return { text: tell(read, "") };
    const text = wholeText(read);
    if (text === null) return tooLong(name);
    const last = made.at(-1);
    if (last === read) return writing(to, text);
    if (does === "copy") return { text: `I have copied ${name} to ${to}.` };
    if (last?.name !== "delete_file") return calling("delete_file", { name });
    return {
      text: last.isError
        ? `${to} is written, but ${name} is still there. ${tell(last, "")}`
        : `I have renamed ${name} to ${to}.`,
    };
  });
}
