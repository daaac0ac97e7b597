/**
 * Gets answers from Roost, and from the same model with only SOUL.md. Roost's answers use everything but HTTP and the
 * database: the files of a new agent, the prompt, the agent loop, the engine with its process, sampling and guards.
 */

import { readDefaultFiles } from "../src/agents/default-files.ts";
import { filesFor } from "../src/messages/runs/prepare.ts";
import type { ModelMessage, ModelRequest } from "../src/models/engine.ts";
import type { LocalEngine } from "../src/models/local.ts";
import { LOCAL_MODEL } from "../src/models/local-models.ts";
import { runAgent } from "../src/runtime/agent-loop.ts";
import { buildPrompt, PROMPT_FILES, toMessages } from "../src/runtime/prompt.ts";
import { chooseFiles, chooseTurns, roomOf } from "../src/runtime/prompt-room.ts";
import type { RunInput, Turn } from "../src/runtime/protocol.ts";
import { tokensOfTurn } from "../src/runtime/tokens.ts";
import type { Case, Persona } from "./cases.ts";

export const VARIANTS = ["roost", "plain"] as const;
export type Variant = (typeof VARIANTS)[number];

/** One answer, and everything needed to judge it. */
export interface Given {
  id: string;
  text: string;
  instructions: string;
  firstMs: number;
  tokens: number;
}

const defaults = readDefaultFiles();
const soulOf = ({ soul }: Persona): string => soul ?? defaults.get("SOUL.md") ?? "";

/** Has one conversation, message by message; the history contains the model's own answers. */
export async function converse(
  engine: LocalEngine,
  variant: Variant,
  persona: Persona,
  conversation: readonly Case[],
  signal: AbortSignal,
): Promise<Given[]> {
  const history: Turn[] = [];
  const given: Given[] = [];
  for (const { id, say } of conversation) {
    history.push({ role: "user", text: say });
    const ask = variant === "roost" ? askAgent : askPlain;
    const answer = await ask(engine, persona, history, id, signal);
    history.push({ role: "assistant", text: answer.text });
    given.push({ id, ...answer });
  }
  return given;
}

type Answered = Omit<Given, "id">;

async function askAgent(
  engine: LocalEngine,
  persona: Persona,
  history: Turn[],
  id: string,
  signal: AbortSignal,
): Promise<Answered> {
  const abilities = engine.abilities(LOCAL_MODEL);
  const room = roomOf(abilities.contextTokens);
  const files = PROMPT_FILES.map((name) => ({ name, text: defaults.get(name) ?? "" }));
  const own = files.map((file) => (file.name === "SOUL.md" ? { ...file, text: soulOf(persona) } : file));
  const outlines = history.map((turn) => ({ role: turn.role, tokens: tokensOfTurn(turn), read: () => turn }));
  const run: RunInput = {
    runId: id,
    agentName: persona.name,
    files: chooseFiles(filesFor(own, abilities), room),
    skills: [],
    moreSkills: 0,
    readsSkills: false,
    model: abilities,
    ...chooseTurns(outlines, abilities.contextTokens),
    journal: [],
  };
  const answer = startAnswer();
  const noTools = () => Promise.reject(new Error("the model has no tools"));
  const loop = runAgent(run, {
    streamModel: (messages, either) => engine.stream(requestOf(id, messages), either),
    callTool: noTools,
    mayRunTogether: noTools,
    onFault: console.error,
    signal,
  });
  for await (const event of loop) {
    if (event.type === "delta") answer.add(event.text);
    else if (event.type === "usage") answer.tokens = event.completionTokens;
    else if (event.type === "ended" && event.outcome.kind !== "completed")
      throw new Error(JSON.stringify(event.outcome));
  }
  return answer.end(toMessages(buildPrompt(run))[0]?.content ?? "");
}

async function askPlain(
  engine: LocalEngine,
  persona: Persona,
  history: Turn[],
  id: string,
  signal: AbortSignal,
): Promise<Answered> {
  const system = soulOf(persona).replace(/^#.*\n+/, "");
  const turns = history.map(({ role, text }): ModelMessage => ({ role, content: text }));
  const answer = startAnswer();
  for await (const batch of engine.stream(requestOf(id, [{ role: "system", content: system }, ...turns]), signal)) {
    for (const event of batch) {
      if (event.type === "text") answer.add(event.text);
      else if (event.type === "usage") answer.tokens = event.completionTokens;
    }
  }
  return answer.end(system);
}

/** Each conversation has its own account, so that several are answered at once. */
const requestOf = (id: string, messages: ModelMessage[]): ModelRequest => ({
  model: LOCAL_MODEL,
  messages,
  tools: [],
  accountId: id,
  instanceId: id,
});

function startAnswer() {
  const startedAt = performance.now();
  let text = "";
  let firstMs = 0;
  return {
    tokens: 0,
    add(more: string) {
      firstMs ||= performance.now() - startedAt;
      text += more;
    },
    end(instructions: string): Answered {
      return { text, instructions, firstMs: Math.round(firstMs), tokens: this.tokens };
    },
  };
}
