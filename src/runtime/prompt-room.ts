/**
 * What a model's prompt can hold, in characters, and what is chosen to fill it. The host chooses before it hands a run to
 * its worker, so that a run costs what its prompt holds and not what its instance has stored.
 */
import type { RunInput, Turn } from "./protocol.ts";

const FILE_CHARACTERS = 20_000;
const FILES_CHARACTERS = 60_000;
const SKILLS_CHARACTERS = 20_000;
/** Kept free for the answer, of the model's context. */
const ANSWER_TOKENS = 256;
/** English runs at about four characters a token; three keeps a margin for everything else. */
const CHARACTERS_A_TOKEN = 3;
/** A JavaScript character is at most three bytes of UTF-8, so a text of more bytes than this allows is too long. */
const BYTES_A_CHARACTER = 3;
/** Texts that their bytes let pass and their characters do not (Chinese, emoji) are read to no end; a few at most. */
const READ_IN_VAIN = 8;

export const SKILLS_HEADING = "You have these skills. When one fits the request, follow it:";
export const READABLE_SKILLS_HEADING =
  "You have these skills. When one fits the request, first read it with read_skill, then follow it:";

/** Whether a skill's text can be read when it is needed, so that the prompt need not contain it. */
export const canReadSkills = (tools: RunInput["tools"]): boolean => tools.some(({ name }) => name === "read_skill");

export interface Prompt {
  system: string;
  /** Oldest first. Its head is what is dropped when it does not fit. */
  turns: Turn[];
  dropped: number;
}

/** Characters of the whole prompt of a model with this context. */
export const roomOf = (contextTokens: number): number =>
  Math.max(1024, (contextTokens - ANSWER_TOKENS) * CHARACTERS_A_TOKEN);

const CUT_MARK = "\n[… cut here, because it is too long …]\n";

/** The first three quarters and the last quarter of a text that is too long, with a visible mark between. */
export function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  const kept = Math.max(0, most - CUT_MARK.length);
  const head = Math.floor(kept * 0.75);
  // A cut may halve a pair of surrogates.
  return (text.slice(0, head) + CUT_MARK + text.slice(text.length - (kept - head))).toWellFormed();
}

/** The files as far as the prompt shows them, in their order. */
export function chooseFiles(files: RunInput["files"], room: number): RunInput["files"] {
  const perFile = Math.min(FILE_CHARACTERS, Math.floor(room / 2));
  let left = Math.min(FILES_CHARACTERS, Math.floor(room * 0.6));
  return files.map(({ name, text }) => {
    const shown = cut(text.trim(), Math.min(perFile, left));
    left -= shown.length;
    return { name, text: shown };
  });
}

/** A skill as its row tells it without its text; `bytes` is the text's length in UTF-8. */
export interface SkillOutline {
  name: string;
  description: string;
  bytes: number;
}

export const skillLine = ({ name, description }: Pick<SkillOutline, "name" | "description">): string =>
  `- ${name}: ${description}`;

/**
 * Names and descriptions as far as there is room. `read` gives a skill's text for an engine that cannot read it later, and
 * is asked for those that can fit alone; they are included while they do. Null where the engine reads skills itself.
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

/** A turn as its row tells it without its text; `bytes` is the text's length in UTF-8. */
export interface TurnOutline {
  role: Turn["role"];
  bytes: number;
  read(): string;
}

/** What a turn takes of the room: its bytes, since a character of three (Chinese, say) is about a token by itself. */
export const turnRoom = (text: string): number => Buffer.byteLength(text);

/** The newest turns that fit, oldest first, and how many are before them. The last is the message to answer: it stays. */
export function chooseTurns(
  outlines: readonly TurnOutline[],
  room: number,
): Pick<RunInput, "conversation" | "earlier"> {
  const turns: Turn[] = [];
  let left = room;
  for (const { role, bytes, read } of outlines.toReversed()) {
    if (turns.length > 0 && bytes > left) break;
    left -= bytes;
    turns.push({ role, text: read() });
  }
  return { conversation: turns.reverse(), earlier: outlines.length - turns.length };
}
