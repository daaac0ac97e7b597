/**
 * How much a model's prompt can hold, in characters, and what goes into it. The host chooses this before it passes a
 * run to its worker, so that the cost of a run depends on its prompt and not on what its instance has stored.
 */
import type { ToolDescription } from "../models/engine.ts";
import type { RunInput, Turn } from "./protocol.ts";

const FILE_CHARACTERS = 20_000;
const FILES_CHARACTERS = 60_000;
const SKILLS_CHARACTERS = 20_000;
/** How much of the model's context is reserved for the answer. */
const ANSWER_TOKENS = 256;
/** English has about four characters a token; three leaves a margin for everything else. */
const CHARACTERS_A_TOKEN = 3;
/**
 * A JavaScript character has at most three bytes of UTF-8, so texts that are too long can be skipped by their bytes.
 */
const BYTES_A_CHARACTER = 3;
/** How many texts may be read in vain: by their bytes they could fit, but by their characters they do not. */
const READ_IN_VAIN = 8;

export const SKILLS_HEADING = "You have these skills. When one fits the request, follow it:";
export const READABLE_SKILLS_HEADING =
  "You have these skills. When one fits the request, first read it with read_skill, then follow it:";

/** Whether a skill's text can be read when it is needed, so that the prompt need not contain it. */
export const canReadSkills = (tools: readonly ToolDescription[]): boolean =>
  tools.some(({ name }) => name === "read_skill");

export interface Prompt {
  system: string;
  /** Oldest first. If they do not all fit, the oldest are dropped. */
  turns: Turn[];
  dropped: number;
}

/** The characters of a whole prompt for a model with this context. */
export const roomOf = (contextTokens: number): number =>
  Math.max(1024, (contextTokens - ANSWER_TOKENS) * CHARACTERS_A_TOKEN);

/**
 * What whoever asked wants of this answer, besides the persona: last, because that is followed best. Instructions may
 * take half of the room.
 */
export function askedText({ instructions, limits, model }: RunInput): string[] {
  const form = limits?.output;
  return [
    ...(instructions === undefined ? [] : [cut(instructions, Math.floor(roomOf(model.contextTokens) / 2))]),
    ...(form === undefined ? [] : [`${OUTPUT_HEADING}\n${JSON.stringify(form.schema)}`]),
  ];
}

const OUTPUT_HEADING =
  "Answer with one JSON value and nothing else: no words around it, no Markdown. It must fit this JSON Schema:";

const CUT_MARK = "\n[… cut here, because it is too long …]\n";

/** The first three quarters and the last quarter of a text that is too long, with a visible mark between. */
export function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  const kept = Math.max(0, most - CUT_MARK.length);
  const head = Math.floor(kept * 0.75);
  // A cut may split a surrogate pair.
  return (text.slice(0, head) + CUT_MARK + text.slice(text.length - (kept - head))).toWellFormed();
}

/** The files, cut to what the prompt shows of them, in the same order. */
export function chooseFiles(files: RunInput["files"], room: number): RunInput["files"] {
  const perFile = Math.min(FILE_CHARACTERS, Math.floor(room / 2));
  let left = Math.min(FILES_CHARACTERS, Math.floor(room * 0.6));
  return files.map(({ name, text }) => {
    const shown = cut(text.trim(), Math.min(perFile, left));
    left -= shown.length;
    return { name, text: shown };
  });
}

/** A skill without its text; `bytes` is the text's length in UTF-8. */
export interface SkillOutline {
  name: string;
  description: string;
  bytes: number;
}

export const skillLine = ({ name, description }: Pick<SkillOutline, "name" | "description">): string =>
  `- ${name}: ${description}`;

/**
 * As many names and descriptions as there is room for, and texts while they fit, for an engine that cannot read them later.
 * `read` returns a skill's text, and is only called for those that could fit; it is null for an engine that reads skills
 * itself.
 */
export function chooseSkills(
  outlines: readonly SkillOutline[],
  room: number,
  read: ((name: string) => string) | null,
): Pick<RunInput, "skills" | "moreSkills"> {
  const heading = read ? SKILLS_HEADING : READABLE_SKILLS_HEADING;
  let left = Math.min(room * 0.25, SKILLS_CHARACTERS) - heading.length;
  const shown = outlines.filter((outline, at) => {
    const length = skillLine(outline).length + Math.min(at, 1);
    if (length <= left) left -= length;
    else return false;
    return true;
  });
  let inVain = 0;
  const skills = shown.map(({ name, description, bytes }) => {
    const mayFit = bytes <= (left - 1) * BYTES_A_CHARACTER && inVain < READ_IN_VAIN;
    const text = mayFit ? (read?.(name).trim() ?? null) : null;
    const fits = text !== null && text.length + 1 <= left;
    if (fits) left -= text.length + 1;
    else if (text !== null) inVain++;
    return { name, description, instructions: fits ? text : null };
  });
  return { skills, moreSkills: outlines.length - shown.length };
}

/** A turn whose text has not been read yet; `bytes` is its length in UTF-8. */
export interface TurnOutline {
  role: Turn["role"];
  bytes: number;
  read(): string;
  /** What the turn has besides its text. */
  more?: Omit<Turn, "role" | "text">;
}

/**
 * How much room a turn takes: its bytes, because a character of three bytes (Chinese, for example) is about one token.
 */
export const turnRoom = (text: string): number => Buffer.byteLength(text);

/** An image counts as about a thousand tokens, however large its file is. */
const IMAGE_ROOM = 3_000;

export const roomOfTurn = ({ text, images = [], calls = [] }: Turn): number =>
  turnRoom(text) +
  images.length * IMAGE_ROOM +
  calls.reduce((sum, { call, result }) => sum + turnRoom(call.name + call.input) + turnRoom(result), 0);

/** The newest turns that fit, oldest first, and how many come before them. The message to answer is always included. */
export function chooseTurns(
  outlines: readonly TurnOutline[],
  room: number,
): Pick<RunInput, "conversation" | "earlier"> {
  const turns: Turn[] = [];
  let left = room;
  for (const { role, bytes, read, more } of outlines.toReversed()) {
    if (turns.length > 0 && bytes > left) break;
    left -= bytes;
    turns.push({ role, text: read(), ...more });
  }
  return { conversation: turns.reverse(), earlier: outlines.length - turns.length };
}
