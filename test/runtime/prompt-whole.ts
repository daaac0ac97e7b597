/** Builds a prompt from everything that is stored, without choosing first, which must not change the result. */
import type { ModelMessage } from "../../src/models/engine.ts";
import { PROMPT_FILES } from "../../src/runtime/prompt.ts";
import { cut, roomOf } from "../../src/runtime/prompt-room.ts";
import type { Turn } from "../../src/runtime/protocol.ts";
import { tokensOf, tokensOfTurn } from "../../src/runtime/tokens.ts";

export interface Whole {
  agentName: string;
  files: { name: string; text: string }[];
  skills: { name: string; description: string; instructions: string }[];
  model: { contextTokens: number; tools: boolean };
  conversation: Turn[];
}

export function promptOfEverything(run: Whole): ModelMessage[] {
  const room = roomOf(run.model.contextTokens);
  const system = systemText(run, room);
  const left = roomForTurns(run, system);
  let size = run.conversation.reduce((sum, turn) => sum + tokensOfTurn(turn), 0);
  let start = 0;
  while (size > left && start < run.conversation.length - 1) {
    const end = Math.min(start + 8, run.conversation.length - 1);
    for (; start < end; start++) size -= run.conversation[start] ? tokensOfTurn(run.conversation[start] as Turn) : 0;
  }
  const note = start > 0 ? `\n\n(The ${start} oldest messages of this conversation are not shown.)` : "";
  const turns = run.conversation.slice(start).map(({ role, text }): ModelMessage => ({ role, content: text }));
  return [{ role: "system", content: system + note }, ...turns];
}

/** What the context leaves besides an eighth for the answer, and a quarter at least. */
function roomForTurns({ model: { contextTokens } }: Whole, system: string): number {
  const reserve = Math.min(4_096, Math.max(256, Math.floor(contextTokens / 8)));
  return Math.max(contextTokens - reserve - tokensOf(system), Math.floor(contextTokens / 4));
}

function systemText(run: Whole, room: number): string {
  const parts = [`You are ${run.agentName}.`];
  const perFile = Math.min(20_000, Math.floor(room / 2));
  let left = Math.min(60_000, Math.floor(room * 0.6));
  for (const name of PROMPT_FILES) {
    const text = run.files.find((file) => file.name === name)?.text.trim();
    if (text) {
      const shown = cut(text, Math.min(perFile, left));
      left -= shown.length;
      parts.push(shown);
    } else if (text === undefined && run.model.tools && PROMPT_FILES.indexOf(name) < 4) {
      parts.push(`(There is no ${name} in the workspace.)`);
    }
  }
  if (run.skills.length > 0) parts.push(skillsText(run, Math.min(room * 0.25, 20_000)));
  parts.push(`Your name is ${run.agentName}.`);
  return parts.join("\n\n");
}

function skillsText({ skills }: Whole, room: number): string {
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
