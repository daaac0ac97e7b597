/**
 * How much a model's prompt can hold, in characters, and what goes into it. The host chooses this before it passes a
 * run to its worker, so that the cost of a run depends on its prompt and not on what its instance has stored.
 */
import type { ToolDescription } from "../models/engine.ts";
import type { KeptTurns, RunInput, Turn } from "./protocol.ts";
import { reserveOf } from "./tokens.ts";

const FILE_CHARACTERS = 20_000;
const FILES_CHARACTERS = 60_000;
const SKILLS_CHARACTERS = 20_000;
/** English has about four characters a token; three leaves a margin for everything else. */
export const CHARACTERS_A_TOKEN = 3;
/**
 * A JavaScript character has at most three bytes of UTF-8, so texts that are too long can be skipped by their bytes.
 */
const BYTES_A_CHARACTER = 3;
/** How many texts may be read in vain: by their bytes they could fit, but by their characters they do not. */
const READ_IN_VAIN = 8;
/** How much may be read and checked for the skills of one prompt: an instance may have sixteen times as much. */
const SKILLS_READ_BYTES = 1024 * 1024;

export const SKILLS_HEADING = "You have these skills. When one fits the request, follow it:";
export const READABLE_SKILLS_HEADING =
  "You have these skills. When one fits the request, first read it with read_skill, then follow it:";

/** Whether a skill's text can be read when it is needed, so that the prompt need not contain it. */
export const canReadSkills = (tools: readonly ToolDescription[]): boolean =>
  tools.some(({ name }) => name === "read_skill");

export interface Prompt {
  system: string;
  /** What stands for the conversation's oldest messages. */
  summary: string | null;
  /** Those before the turns, which the host puts in. */
  kept: KeptTurns;
  /** Oldest first. */
  turns: Turn[];
  /** Messages that are neither in the summary nor among the turns. */
  dropped: number;
}

export const NO_TURNS: KeptTurns = { places: [], tokens: [] };

/** Those of the turns that pass a test of their number among them. */
export function keptWhere({ places, tokens }: KeptTurns, isShown: (number: number) => boolean): KeptTurns {
  const shown: KeptTurns = { places: [], tokens: tokens.filter((_, number) => isShown(number)) };
  let number = 0;
  for (const { from, to } of places) {
    for (let place = from; place < to; place++) {
      if (!isShown(number++)) continue;
      const last = shown.places.at(-1);
      if (last?.to === place) last.to++;
      else shown.places.push({ from: place, to: place + 1 });
    }
  }
  return shown;
}

/** The characters of a whole prompt for a model with this context. */
export const roomOf = (contextTokens: number): number =>
  Math.max(1024, (contextTokens - reserveOf(contextTokens)) * CHARACTERS_A_TOKEN);

/**
 * What whoever asked wants of this answer, besides the persona: last, because that is followed best. Instructions may
 * take half of the room.
 */
export function askedText({
  instructions,
  limits,
  model,
}: Pick<RunInput, "instructions" | "limits" | "model">): string[] {
  const form = limits?.output;
  return [
    ...(instructions === undefined ? [] : [cut(instructions, Math.floor(roomOf(model.contextTokens) / 2))]),
    ...(form === undefined ? [] : [formText(form.schema)]),
  ];
}

/** Whether the schema says nothing but that it is an object, as `json_object` does. */
export const isAnyObject = (schema: unknown): boolean => JSON.stringify(schema) === '{"type":"object"}';

/** Shown a schema that says no more, a small model answers with that schema. */
const formText = (schema: unknown): string =>
  isAnyObject(schema)
    ? "Answer with one JSON object and nothing else: no words around it, no Markdown."
    : `Answer with one JSON value and nothing else: no words around it, no Markdown. It must fit this JSON Schema:\n${JSON.stringify(schema)}`;

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
  /** Of all its files, which are read and compared with what was installed. */
  textBytes: number;
}

/** So much of a description at least is shown, or none of it: less says nothing. */
const LEAST_DESCRIPTION = 20;

/** A skill whose description is left out is named. */
export const skillLine = ({ name, description }: Pick<SkillOutline, "name" | "description">): string =>
  description === "" ? `- ${name}` : `- ${name}: ${description}`;

/**
 * The descriptions, the longest of them shortened to one length, so that they fit into the room with all names. Names tell
 * what can be read, so they come first.
 */
function shortenDescriptions(outlines: readonly SkillOutline[], room: number): SkillOutline[] {
  let left = outlines.reduce((most, { name }) => most - `- ${name}: \n`.length, room + 1);
  const lengths = outlines.map(({ description }) => description.length).sort((a, b) => a - b);
  const cutAt = lengths.findIndex((length, at) => {
    const isOver = length > left / (lengths.length - at);
    if (!isOver) left -= length;
    return isOver;
  });
  if (cutAt < 0) return [...outlines];
  const each = Math.floor(left / (lengths.length - cutAt));
  return outlines.map((outline) => ({ ...outline, description: shorten(outline.description, each) }));
}

function shorten(description: string, most: number): string {
  if (description.length <= most) return description;
  if (most < LEAST_DESCRIPTION) return "";
  // Without half of a surrogate pair.
  return `${description.slice(0, most - 1).replace(/[\s\uD800-\uDBFF]+$/, "")}…`;
}

/**
 * As many names as there is room for, then descriptions, and texts while they fit, for an engine that cannot read them later.
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
  const shown = shortenDescriptions(outlines, left).filter((outline, at) => {
    const length = skillLine(outline).length + Math.min(at, 1);
    if (length <= left) left -= length;
    else return false;
    return true;
  });
  let inVain = 0;
  let unread = SKILLS_READ_BYTES;
  const skills = shown.map(({ name, description, bytes, textBytes }) => {
    const mayFit = bytes <= (left - 1) * BYTES_A_CHARACTER && inVain < READ_IN_VAIN && textBytes <= unread;
    if (mayFit && read) unread -= textBytes;
    const text = mayFit ? (read?.(name).trim() ?? null) : null;
    const fits = text !== null && text.length + 1 <= left;
    if (fits) left -= text.length + 1;
    else if (text !== null) inVain++;
    return { name, description, instructions: fits ? text : null };
  });
  return { skills, moreSkills: outlines.length - shown.length };
}

/** A turn that has not been read yet. */
export interface TurnOutline {
  role: Turn["role"];
  /** By `tokensOfTurn`. */
  tokens: number;
  read(): Turn;
}

/** The window's start moves in steps, so that for most messages the prompt's prefix is unchanged, and cached. */
const WINDOW_STEP = 8;

/**
 * Where the newest turns begin that take at most `room` tokens; `earlier` turns come before all of these. The last one, the
 * message to answer, is always among them.
 */
export function startOfWindow(tokens: readonly number[], room: number, earlier: number): number {
  let start = tokens.length;
  for (let left = room; start > 0; start--) {
    left -= tokens[start - 1] ?? 0;
    if (left < 0 && start < tokens.length) break;
  }
  if (start + earlier === 0) return 0;
  const inStep = Math.ceil((start + earlier) / WINDOW_STEP) * WINDOW_STEP - earlier;
  return Math.min(inStep, Math.max(0, tokens.length - 1));
}

/** The newest turns that fit into so many tokens, oldest first, and how many come before them. */
export function chooseTurns(
  outlines: readonly TurnOutline[],
  room: number,
  before = 0,
): Pick<RunInput, "conversation" | "earlier"> & { turnTokens: number[] } {
  const tokens = outlines.map((outline) => outline.tokens);
  const start = startOfWindow(tokens, room, before);
  return {
    conversation: outlines.slice(start).map(({ read }) => read()),
    turnTokens: tokens.slice(start),
    earlier: before + start,
  };
}
