import type { ModelMessage } from "../models/engine.ts";
import type { RunInput, Turn } from "./protocol.ts";

/** Files of the prompt, in its order; HEARTBEAT and daily notes are read on demand (runtime.md, Conventions). */
export const PROMPT_FILES = ["AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md", "TOOLS.md", "BOOTSTRAP.md", "MEMORY.md"];
const NAMED_AS_MISSING = ["AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md"];
const FILE_CHARACTERS = 20_000;
const FILES_CHARACTERS = 60_000;
/** Kept free for the answer, of the model's context. */
const ANSWER_TOKENS = 256;
/** English runs at about four characters a token; three keeps a margin for everything else. */
const CHARACTERS_A_TOKEN = 3;
/** The window's start moves in steps, so that most messages find the prompt before them unchanged and warm. */
const WINDOW_STEP = 8;

export interface Prompt {
  system: string;
  /** Oldest first. Its head is what is dropped when it does not fit. */
  turns: Turn[];
  dropped: number;
}

/** The prompt of a run, cut to what its model can hold. What is left out is told in the prompt. */
export function buildPrompt(run: RunInput): Prompt {
  const room = Math.max(1024, (run.model.contextTokens - ANSWER_TOKENS) * CHARACTERS_A_TOKEN);
  const system = systemText(run, room);
  return fitTurns({ system, turns: run.conversation, dropped: 0 }, room - system.length);
}

/** The same prompt at `ratio` of its size, for a model that counted more tokens than it can hold. */
export function shrinkPrompt(prompt: Prompt, ratio: number): Prompt {
  const size = prompt.system.length + prompt.turns.reduce((sum, turn) => sum + turn.text.length, 0);
  const room = Math.floor(size * Math.min(ratio, 1) * 0.9);
  const system = cut(prompt.system, Math.max(512, Math.floor(room * 0.6)));
  const last = prompt.turns.at(-1);
  const fitted = fitTurns({ ...prompt, system }, room - system.length);
  if (last && fitted.turns.length === 1) {
    return { ...fitted, turns: [{ ...last, text: cut(last.text, Math.max(256, room - system.length)) }] };
  }
  return fitted;
}

export function toMessages({ system, turns, dropped }: Prompt): ModelMessage[] {
  const note = dropped > 0 ? `\n\n(The ${dropped} oldest messages of this conversation are not shown.)` : "";
  return [
    { role: "system", content: system + note },
    ...turns.map(({ role, text }): ModelMessage => ({ role, content: text })),
  ];
}

function systemText(run: RunInput, room: number): string {
  const parts = [`You are ${run.agentName}.`];
  const perFile = Math.min(FILE_CHARACTERS, Math.floor(room / 2));
  let left = Math.min(FILES_CHARACTERS, Math.floor(room * 0.6));
  for (const name of PROMPT_FILES) {
    const text = run.files.find((file) => file.name === name)?.text.trim();
    if (text) {
      const shown = cut(text, Math.min(perFile, left));
      left -= shown.length;
      parts.push(shown);
    } else if (text === undefined && run.model.tools && NAMED_AS_MISSING.includes(name)) {
      parts.push(`(There is no ${name} in the workspace.)`);
    }
  }
  if (run.skills.length > 0) parts.push(skillsText(run, Math.min(room * 0.25, 20_000)));
  // Said last as well: small models answer with the name that stands nearest (0 and 5 of 5 answers were right).
  parts.push(`Your name is ${run.agentName}.`);
  return parts.join("\n\n");
}

/** Names and descriptions; the bodies too while they fit, because an engine without tools cannot read them later. */
function skillsText({ skills }: RunInput, room: number): string {
  const heading = "You have these skills. When one fits the request, follow it:";
  const short = skills.map(({ name, description }) => `- ${name}: ${description}`);
  const full = skills.map(({ name, description, instructions }) => `- ${name}: ${description}\n${instructions.trim()}`);
  let used = heading.length + short.join("\n").length;
  const lines = short.map((line, index) => {
    const longer = full[index] ?? line;
    if (used + longer.length - line.length > room) return line;
    used += longer.length - line.length;
    return longer;
  });
  return [heading, ...lines].join("\n");
}

const CUT_MARK = "\n[… cut here, because the file is too long …]\n";

/** The first three quarters and the last quarter of a text that is too long, with a visible mark between. */
export function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  const kept = Math.max(0, most - CUT_MARK.length);
  const head = Math.floor(kept * 0.75);
  // A cut may halve a pair of surrogates.
  return (text.slice(0, head) + CUT_MARK + text.slice(text.length - (kept - head))).toWellFormed();
}

/** Drops the oldest turns, some at a time, until the rest fits; the message to answer stays. */
function fitTurns(prompt: Prompt, room: number): Prompt {
  let size = prompt.turns.reduce((sum, turn) => sum + turn.text.length, 0);
  let start = 0;
  while (size > room && start < prompt.turns.length - 1) {
    const end = Math.min(start + WINDOW_STEP, prompt.turns.length - 1);
    for (; start < end; start++) size -= prompt.turns[start]?.text.length ?? 0;
  }
  return { ...prompt, turns: prompt.turns.slice(start), dropped: prompt.dropped + start };
}
