/** What is looked up in the notes and in what was said before, and what is taken out of the notes. */
import { asksSomething, SAYS, sharesWords, withoutRequest } from "../../../lib/recall.ts";
import { sentencesOf } from "../../../lib/words.ts";
import { calling, type DeedStep, tooLong, wholeText, writing } from "./file-steps.ts";
import type { MadeCall } from "./made-call.ts";
import { namesIn, tell, withoutFence } from "./tell.ts";

const NOTHING_NOTED = "I have noted nothing yet. Say “Remember that …”, and I will.";

/** The notes of the last day that has any. */
export function lastNotes(made: readonly MadeCall[]): DeedStep {
  const [list, read] = made;
  if (list === undefined) return calling("list_files", { folder: "memory" });
  if (list.isError) return { text: tell(list, "") };
  const last = namesIn(list.output)
    .filter((name) => /^memory\/[\d-]+\.md$/.test(name))
    .sort()
    .at(-1);
  if (last === undefined) return { text: NOTHING_NOTED };
  return read === undefined ? calling("read_file", { name: last }) : { text: toldNotes(read) };
}

function toldNotes(read: MadeCall): string {
  if (read.isError) return tell(read, "");
  const notes = withoutFence(read.output).replace(/^# .*\n*/, "");
  // All of the day has been forgotten.
  if (notes.trim() === "") return NOTHING_NOTED;
  return tell({ ...read, output: toldBack(notes) }, "").replace(/^/, "These are my last notes, in ");
}

/** To the user, who is "the user" in the notes. */
const toldBack = (notes: string): string => notes.replaceAll(SAYS, "you said: ");

const MOST_FOUND = 3;
/** "memory/2026-11-22.md, line 3, 2026-11-22:" */
const PLACE = /^(?<where>[^\n]+), \d{4}-\d\d-\d\d:\n(?<text>[\s\S]*)$/;

const SAID = "Said in a conversation";

interface Found {
  where: string;
  said: string;
  /** Without who has said it, and that it is to be remembered. */
  bare: string;
}

/** What was found that has words of this. */
const foundIn = ({ output }: MadeCall, about: string): Found[] =>
  withoutFence(output)
    .replace(/\n\n\[[^\n]*\]$/, "") // what the tool says of the search itself
    .split(/\n\n(?=[^\n]+, \d{4}-\d\d-\d\d:\n)/)
    .flatMap((block) => {
      const { where = "", text = "" } = PLACE.exec(block)?.groups ?? {};
      const said = text.replace(/^[-*] /, "").trim();
      return sharesWords(said, about) ? [{ where, said, bare: withoutRequest(said.replace(SAYS, "")) }] : [];
    });

export function recalling(about: string, made: readonly MadeCall[], question: string): DeedStep {
  const [found] = made;
  if (found === undefined) return calling("search_memory", { query: about });
  if (found.isError) return { text: tell(found, question) };
  const told = foundIn(found, about).filter((one) => one.said !== question && isTold(one));
  // What was noted was said before.
  told.sort((a, b) => Number(a.where === SAID) - Number(b.where === SAID));
  const once = told.filter(
    ({ bare }, at) => !told.slice(0, at).some((other) => bare.includes(other.bare) || other.bare.includes(bare)),
  );
  if (once.length === 0) return { text: `I have found nothing about ${aboutThem(about)} in my memory.` };
  const lines = once
    .slice(0, MOST_FOUND)
    .map(({ where, said, bare }) =>
      where === SAID ? `- ${bare} (you said that in a conversation)` : `- ${toldBack(said)} (${where})`,
    );
  return { text: `I have found this:\n${lines.join("\n")}` };
}

/** What it has said itself, or was asked, it was not told. */
function isTold({ where, said, bare }: Found): boolean {
  if (where === "You said in a conversation" || said.endsWith("?")) return false;
  return where !== SAID || !sentencesOf(bare).every(asksSomething);
}

const aboutThem = (about: string): string => about.replace(/\bmy\b/gi, "your").replace(/\bour\b/gi, "your");

/** "memory/2026-11-22.md, line 3" */
const NOTE_PLACE = /^(?<name>(?:memory\/[\d-]+|MEMORY)\.md), lines? /;

/** The one note that is meant is taken out of its file. */
export function forgetting(about: string, made: readonly MadeCall[]): DeedStep {
  const [found, read] = made;
  if (found === undefined) return calling("search_memory", { query: about });
  if (found.isError) return { text: tell(found, "") };
  const notes = foundIn(found, about).flatMap((note) => {
    const name = NOTE_PLACE.exec(note.where)?.groups?.name;
    return name === undefined ? [] : [{ ...note, name }];
  });
  const exact = notes.filter(({ bare }) => bare.toLowerCase().includes(about.toLowerCase()));
  const [note, ...others] = exact.length > 0 ? exact : notes;
  if (note === undefined) return { text: `I have noted nothing about ${aboutThem(about)}.` };
  if (others.length > 0) {
    const lines = [note, ...others].map(({ said }) => `- ${toldBack(said)}`);
    return { text: `I have noted this. Which of it am I to forget?\n${lines.join("\n")}` };
  }
  if (read === undefined) return calling("read_file", { name: note.name });
  if (read.isError) return { text: tell(read, "") };
  const lines = wholeText(read)?.split("\n");
  if (lines === undefined) return tooLong(note.name);
  if (made.length > 2)
    return { text: `I have taken “${toldBack(note.said)}” out of my notes. Our conversations still have it.` };
  const at = lines.findIndex((line) => line.includes(note.said));
  if (at < 0) return { text: `It is no longer in ${note.name}.` };
  return writing(note.name, lines.toSpliced(at, 1).join("\n"));
}
