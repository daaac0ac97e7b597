import type { ModelMessage, ToolDescription } from "../models/engine.ts";
import {
  askedText,
  CHARACTERS_A_TOKEN,
  cut,
  keptWhere,
  NO_TURNS,
  type Prompt,
  READABLE_SKILLS_HEADING,
  roomOf,
  SKILLS_HEADING,
  skillLine,
  startOfWindow,
} from "./prompt-room.ts";
import type { MadeCall, RunInput, Turn } from "./protocol.ts";
import { shortPrompt, shortSystemText } from "./short-prompt.ts";
import { summaryText } from "./summary.ts";
import { reserveOf, tokensOf, tokensOfCalls, tokensOfTools, tokensOfTurn } from "./tokens.ts";

/**
 * Files of the prompt, in its order; HEARTBEAT and daily notes are read on demand (docs/contract/runtime.md, Workspace
 * files).
 */
export const PROMPT_FILES = ["AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md", "TOOLS.md", "BOOTSTRAP.md", "MEMORY.md"];
const NAMED_AS_MISSING = ["AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md"];

/** A part of the prompt, as its owner is shown it (docs/contract/api.md, Context). */
export interface Piece {
  kind: "file" | "skills" | "memory" | "summary" | "message" | "tool";
  name: string;
  text: string;
}

/** Everything but the conversation. */
export type Frame = Omit<RunInput, "kept" | "conversation" | "earlier" | "summary" | "compaction">;

const MEMORIES_HEADING = "From your memory, in case it helps with this message:";

/** What passages of the agent's memory may take of a prompt. */
export const tokensOfMemories = (contextTokens: number): number => Math.floor(contextTokens / 16);

/**
 * Builds a run's prompt, which says what was left out. The host has chosen its parts, so that they fit (prompt-room.ts);
 * here they are assembled.
 */
export function buildPrompt(run: RunInput): Prompt {
  if (run.model.prompt === "short") return shortPrompt(run);
  const room = roomOf(run.model.contextTokens);
  const system = systemText(run);
  const summary = run.summary ? summaryText(run.summary) : null;
  const prompt = { system, summary, kept: run.kept ?? NO_TURNS, turns: run.conversation, dropped: run.earlier };
  // The message to answer may have half of the prompt, however much else there is.
  return cutLast(prompt, Math.max(room - system.length, Math.floor(room / 2)));
}

/**
 * The tokens that a conversation may take of its model's context: what the rest of the prompt and the answer leave, and a
 * quarter at least.
 */
export function conversationRoom(frame: Frame, tools: readonly ToolDescription[]): number {
  const { contextTokens } = frame.model;
  const done = frame.journal.reduce(
    (sum, { text, calls }) =>
      sum +
      tokensOf(text) +
      tokensOfCalls(calls.map(({ result, ...call }) => ({ call, result: result?.output ?? "" }))),
    0,
  );
  const left = contextTokens - reserveOf(contextTokens) - tokensOf(systemText(frame)) - tokensOfTools(tools) - done;
  return Math.max(left, Math.floor(contextTokens / 4));
}

/** The same prompt at `ratio` of its size, for a model that counted more tokens than it can hold. */
export function shrinkPrompt(prompt: Prompt, ratio: number): Prompt {
  const { kept } = prompt;
  const tokens = [...kept.tokens, ...prompt.turns.map(tokensOfTurn)];
  const size = tokensOf(prompt.system + (prompt.summary ?? "")) + tokens.reduce((sum, one) => sum + one, 0);
  const room = Math.floor(size * Math.min(ratio, 1) * 0.9);
  const system = cut(prompt.system, Math.max(512, Math.floor(room * 0.6 * CHARACTERS_A_TOKEN)));
  const summary = prompt.summary && cut(prompt.summary, Math.max(512, Math.floor(room * 0.2 * CHARACTERS_A_TOKEN)));
  const left = room - tokensOf(system + (summary ?? ""));
  const start = startOfWindow(tokens, left, prompt.dropped);
  const fitted = {
    system,
    summary,
    kept: keptWhere(kept, (at) => at >= start),
    turns: prompt.turns.slice(Math.max(0, start - kept.tokens.length)),
    dropped: prompt.dropped + start,
  };
  return tokens.length - start === 1 ? cutLast(fitted, Math.max(256, left * CHARACTERS_A_TOKEN)) : fitted;
}

/** The messages of a prompt, without the turns that are kept: these come after the first. */
export function toMessages(prompt: Prompt): ModelMessage[] {
  const { system, summary, turns } = prompt;
  const content = [system, summary, leftOutNote(prompt)].filter((part) => part !== null).join("\n\n");
  return [{ role: "system", content }, ...turns.flatMap(messagesOf)];
}

/** What the prompt says about messages that it does not show; null if there are none. */
export function leftOutNote({ summary, dropped }: Pick<Prompt, "summary" | "dropped">): string | null {
  if (dropped === 0) return null;
  return summary === null
    ? `(The ${dropped} oldest messages of this conversation are not shown.)`
    : `(${dropped} other messages before what follows are neither shown nor in the summary.)`;
}

export function messagesOf({ role, text, images, calls, steps }: Turn): ModelMessage[] {
  if (role === "user") return [images === undefined ? { role, content: text } : { role, content: text, images }];
  // Most are text alone, and a long prompt has hundreds of them.
  if (calls === undefined && steps === undefined) return [{ role, content: text }];
  const before = (steps ?? []).flatMap((step) => madeCalls(step.text, step.calls));
  if (calls !== undefined) return [...before, ...madeCalls(text, calls)];
  return before.length > 0 && text === "" ? before : [...before, { role, content: text }];
}

const madeCalls = (text: string, calls: readonly MadeCall[]): ModelMessage[] => [
  { role: "assistant", content: text.trimStart(), toolCalls: calls.map(({ call }) => call) },
  ...calls.map(({ call, result }): ModelMessage => ({ role: "tool", toolCallId: call.id, content: result })),
];

const systemText = (frame: Frame): string =>
  systemPieces(frame)
    .map(({ text }) => text)
    .join("\n\n");

/** The pieces of the prompt before the conversation, in order. What is remembered comes before the closing words. */
export function systemPieces(frame: Frame): Piece[] {
  const { agentName, files, skills, model } = frame;
  if (model.prompt === "short") return [{ kind: "file", name: "persona", text: shortSystemText(frame) }];
  const pieces: Piece[] = [{ kind: "file", name: "name", text: `You are ${agentName}.` }];
  for (const name of PROMPT_FILES) {
    const text = files.find((file) => file.name === name)?.text;
    if (text) pieces.push({ kind: "file", name, text });
    else if (text === undefined && model.tools && NAMED_AS_MISSING.includes(name)) {
      pieces.push({ kind: "file", name, text: `(There is no ${name} in the workspace.)` });
    }
  }
  if (skills.length > 0) pieces.push({ kind: "skills", name: "skills", text: skillsText(frame) });
  if (frame.memories !== undefined) {
    pieces.push({ kind: "memory", name: "memory", text: memoriesText(frame.memories, model.contextTokens) });
  }
  const closing = [`Your name is ${agentName}.`, ...askedText(frame)];
  return [...pieces, { kind: "file", name: "closing", text: closing.join("\n\n") }];
}

function skillsText({ skills, moreSkills, readsSkills }: Frame): string {
  const lines = skills.map((skill) =>
    skill.instructions === null ? skillLine(skill) : `${skillLine(skill)}\n${skill.instructions}`,
  );
  const more = moreSkills > 0 ? [`(${moreSkills} more skills are installed and not shown.)`] : [];
  return [readsSkills ? READABLE_SKILLS_HEADING : SKILLS_HEADING, ...lines, ...more].join("\n");
}

const memoriesText = (memories: readonly string[], contextTokens: number): string =>
  cut(
    [MEMORIES_HEADING, ...memories.map((text) => `- ${text.replace(/^[-*]\s+/, "")}`)].join("\n"),
    tokensOfMemories(contextTokens) * CHARACTERS_A_TOKEN,
  );

function cutLast(prompt: Prompt, most: number): Prompt {
  const last = prompt.turns.at(-1);
  if (last === undefined) return prompt;
  const { calls = [] } = last;
  const each = Math.floor(most / (calls.length + 1));
  const shorter = calls.map(({ call, result }) => ({ call, result: cut(result, each) }));
  const text = cut(last.text, calls.length === 0 ? most : each);
  return { ...prompt, turns: prompt.turns.with(-1, { ...last, text, ...(calls.length > 0 && { calls: shorter }) }) };
}
