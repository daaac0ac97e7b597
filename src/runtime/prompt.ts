import type { ModelMessage } from "../models/engine.ts";
import {
  askedText,
  cut,
  type Prompt,
  READABLE_SKILLS_HEADING,
  roomOf,
  roomOfTurn,
  SKILLS_HEADING,
  skillLine,
} from "./prompt-room.ts";
import type { RunInput, Turn } from "./protocol.ts";
import { shortPrompt } from "./short-prompt.ts";

/**
 * Files of the prompt, in its order; HEARTBEAT and daily notes are read on demand (docs/contract/runtime.md, Workspace
 * files).
 */
export const PROMPT_FILES = ["AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md", "TOOLS.md", "BOOTSTRAP.md", "MEMORY.md"];
const NAMED_AS_MISSING = ["AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md"];
/** The window's start moves in steps, so that for most messages the prompt's prefix is unchanged, and cached. */
const WINDOW_STEP = 8;

/**
 * Builds a run's prompt, cut to what its model can hold; the prompt says what was left out. The host has chosen its
 * parts (prompt-room.ts); here they are assembled, and the oldest turns are dropped if the rest needs their room.
 */
export function buildPrompt(run: RunInput): Prompt {
  if (run.model.prompt === "short") return shortPrompt(run);
  const room = roomOf(run.model.contextTokens);
  const system = systemText(run);
  const left = room - system.length;
  const fitted = fitTurns({ system, turns: run.conversation, dropped: run.earlier }, left);
  // The message to answer may have half of the prompt, however much else there is.
  return cutLast(fitted, Math.max(left, Math.floor(room / 2)));
}

/** The same prompt at `ratio` of its size, for a model that counted more tokens than it can hold. */
export function shrinkPrompt(prompt: Prompt, ratio: number): Prompt {
  const size = prompt.system.length + prompt.turns.reduce((sum, turn) => sum + roomOfTurn(turn), 0);
  const room = Math.floor(size * Math.min(ratio, 1) * 0.9);
  const system = cut(prompt.system, Math.max(512, Math.floor(room * 0.6)));
  const fitted = fitTurns({ ...prompt, system }, room - system.length);
  return fitted.turns.length === 1 ? cutLast(fitted, Math.max(256, room - system.length)) : fitted;
}

export function toMessages({ system, turns, dropped }: Prompt): ModelMessage[] {
  const note = dropped > 0 ? `\n\n(The ${dropped} oldest messages of this conversation are not shown.)` : "";
  return [{ role: "system", content: system + note }, ...turns.flatMap(messagesOf)];
}

function messagesOf({ role, text, images, calls }: Turn): ModelMessage[] {
  if (role === "user") return [{ role, content: text, ...(images && { images }) }];
  if (calls === undefined) return [{ role, content: text }];
  return [
    { role, content: text, toolCalls: calls.map(({ call }) => call) },
    ...calls.map(({ call, result }): ModelMessage => ({ role: "tool", toolCallId: call.id, content: result })),
  ];
}

function systemText(run: RunInput): string {
  const parts = [`You are ${run.agentName}.`];
  for (const name of PROMPT_FILES) {
    const text = run.files.find((file) => file.name === name)?.text;
    if (text) parts.push(text);
    else if (text === undefined && run.model.tools && NAMED_AS_MISSING.includes(name)) {
      parts.push(`(There is no ${name} in the workspace.)`);
    }
  }
  if (run.skills.length > 0) parts.push(skillsText(run));
  parts.push(`Your name is ${run.agentName}.`, ...askedText(run));
  return parts.join("\n\n");
}

function skillsText({ skills, moreSkills, readsSkills }: RunInput): string {
  const lines = skills.map((skill) =>
    skill.instructions === null ? skillLine(skill) : `${skillLine(skill)}\n${skill.instructions}`,
  );
  const more = moreSkills > 0 ? [`(${moreSkills} more skills are installed and not shown.)`] : [];
  return [readsSkills ? READABLE_SKILLS_HEADING : SKILLS_HEADING, ...lines, ...more].join("\n");
}

function cutLast(prompt: Prompt, most: number): Prompt {
  const last = prompt.turns.at(-1);
  if (last === undefined) return prompt;
  const { calls = [] } = last;
  const each = Math.floor(most / (calls.length + 1));
  const shorter = calls.map(({ call, result }) => ({ call, result: cut(result, each) }));
  const text = cut(last.text, calls.length === 0 ? most : each);
  return { ...prompt, turns: prompt.turns.with(-1, { ...last, text, ...(calls.length > 0 && { calls: shorter }) }) };
}

/** Drops the oldest turns, in steps, until the rest fits; the message to answer stays. */
function fitTurns(prompt: Prompt, room: number): Prompt {
  let size = prompt.turns.reduce((sum, turn) => sum + roomOfTurn(turn), 0);
  let start = 0;
  while (start < prompt.turns.length - 1 && (size > room || (prompt.dropped + start) % WINDOW_STEP !== 0)) {
    const oldest = prompt.turns[start++];
    if (oldest) size -= roomOfTurn(oldest);
  }
  return { ...prompt, turns: prompt.turns.slice(start), dropped: prompt.dropped + start };
}
