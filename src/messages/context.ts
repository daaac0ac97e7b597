/** What the next prompt of a conversation would hold, piece by piece, for its owner to see. */
import { z } from "zod";
import type { Agent } from "../agents/schema.ts";
import { record } from "../lib/record.ts";
import { buildPrompt, leftOutNote, type Piece, systemPieces } from "../runtime/prompt.ts";
import { cut } from "../runtime/prompt-room.ts";
import type { Turn } from "../runtime/protocol.ts";
import { tokensOf, tokensOfTools, tokensOfTurn } from "../runtime/tokens.ts";
import { type PrepareParts, preparePrompt } from "./runs/prepare.ts";
import type { Conversation } from "./schema.ts";

const PIECE_KINDS = ["file", "skills", "memory", "summary", "message", "tool"] as const;

export const ContextRecord = record("AgentContext", () =>
  z.object({
    model: z.string(),
    contextTokens: z.int().describe("Of prompt and answer together"),
    pieces: z.array(
      z.object({
        kind: z.enum(PIECE_KINDS),
        name: z.string(),
        tokens: z.int().describe("An estimate that errs on the high side"),
        text: z.string(),
      }),
    ),
    totalTokens: z.int(),
    dropped: z.int().describe("Messages that are neither shown nor in the summary, which the prompt says"),
  }),
);
export type PromptContext = z.output<typeof ContextRecord>;

/** Returns a text without the values of an instance's secrets. */
export type Redact = (instanceId: string, text: string) => Promise<string>;

/** Characters of all pieces together; those of larger prompts are cut, visibly. */
const MAX_TEXT = 1024 * 1024;

export type ReadContext = (agent: Agent, conversation: Conversation) => PromptContext;

/** Reads it from the same parts as a run's prompt. The next message itself is not among them. */
export const createContext =
  (parts: PrepareParts): ReadContext =>
  (agent, { conversationId, originType, originId }) => {
    const { agentId, instanceId } = agent;
    const next = { runId: "", messageId: "", agentId, instanceId, conversationId, originType, originId };
    const {
      models: [model = ""],
      tools,
      input,
    } = preparePrompt(parts, agent, next, []);
    const { summary, turns, dropped } = buildPrompt(input);
    // A short prompt has only the turns that the message refers to.
    const isShort = input.model.prompt === "short";
    const note = isShort ? null : leftOutNote({ summary, dropped });
    const pieces = [
      ...systemPieces(input).map(counted),
      ...(summary === null ? [] : [counted({ kind: "summary", name: "summary", text: summary })]),
      ...(note === null ? [] : [counted({ kind: "summary", name: "left out", text: note })]),
      ...(isShort ? [] : turns.map(pieceOf)),
      ...tools.map((tool) => ({
        ...{ kind: "tool" as const, name: tool.name, tokens: tokensOfTools([tool]) },
        text: `${tool.description}\n${JSON.stringify(tool.inputSchema)}`,
      })),
    ];
    let left = MAX_TEXT;
    const shown = pieces.map((piece) => {
      const text = cut(piece.text, left);
      left -= text.length;
      return { ...piece, text };
    });
    const totalTokens = pieces.reduce((sum, { tokens }) => sum + tokens, 0);
    const { contextTokens } = input.model;
    const leftOut = isShort ? input.earlier + input.conversation.length : dropped;
    return { model, contextTokens, pieces: shown, totalTokens, dropped: leftOut };
  };

const counted = (piece: Piece) => ({ ...piece, tokens: tokensOf(piece.text) });

function pieceOf(turn: Turn): PromptContext["pieces"][number] {
  const steps = (turn.steps ?? []).flatMap(({ text, calls }) => [
    text,
    ...calls.map(({ call, result }) => `(called ${call.name} ${call.input} → ${result})`),
  ]);
  const text = [...steps, turn.text].filter((one) => one !== "").join("\n");
  return { kind: "message", name: turn.role, tokens: tokensOfTurn(turn), text };
}

/** The same without the values of secrets, wherever they got in. */
export async function withoutSecrets(context: PromptContext, hide: (text: string) => Promise<string>) {
  // Together, because the secrets are decrypted for each text. No text has the mark between them.
  const mark = `\n${crypto.randomUUID()}\n`;
  const texts = (await hide(context.pieces.map(({ text }) => text).join(mark))).split(mark);
  return { ...context, pieces: context.pieces.map((piece, at) => ({ ...piece, text: texts[at] ?? "" })) };
}
