/**
 * How many tokens texts take, without the model's tokenizer. There are three estimates, because a wrong one costs three
 * different things: `tokensOf` plans a prompt, which must not overflow, so it errs on the high side; `probableTokens` records a
 * call that nobody has counted, as near as can be; `mostPromptTokens` reserves before a call, and never counts too few.
 */
import { isSeveral, type ModelMessage, type ModelRequest, type ToolDescription } from "../models/engine.ts";
import type { Turn } from "./protocol.ts";

/** What a message costs besides its text: its role, and the marks around it. */
const MESSAGE_TOKENS = 4;
/** An image counts as this, however large its file is. */
const IMAGE_TOKENS = 1_000;
/** Most models take fewer for one. */
const MOST_IMAGE_TOKENS = 2_048;
const MIN_ANSWER_TOKENS = 256;
const MAX_ANSWER_TOKENS = 4_096;

/**
 * A third of a token for each ASCII character, one for each of two bytes of UTF-8 (é, я), and five thirds for each of three
 * (日). English has about a quarter, and Chinese one, so there is a margin. The database counts in the same way
 * (src/storage/migrations/0021-summaries.sql).
 */
export const tokensOf = (text: string): number => Math.ceil((2 * Buffer.byteLength(text) - text.length) / 3);

export function tokensOfTurn({ text, images = [], calls = [], steps = [] }: Turn): number {
  let sum = MESSAGE_TOKENS + tokensOf(text) + images.length * IMAGE_TOKENS + tokensOfCalls(calls);
  for (const step of steps) sum += MESSAGE_TOKENS + tokensOf(step.text) + tokensOfCalls(step.calls);
  return sum;
}

/** Of a turn that has only a text with this many tokens. */
export const tokensOfMessage = (textTokens: number): number => MESSAGE_TOKENS + textTokens;

export const tokensOfCalls = (calls: NonNullable<Turn["calls"]>): number =>
  calls.reduce(
    (sum, { call, result }) => sum + MESSAGE_TOKENS + tokensOf(call.name + call.input) + tokensOf(result),
    0,
  );

const tokensOfOne = new WeakMap<ToolDescription, number>();

/** Of the descriptions of tools, as servers read them. A description is counted once. */
export function tokensOfTools(tools: readonly ToolDescription[]): number {
  return tools.reduce((sum, tool) => {
    const tokens = tokensOfOne.get(tool) ?? tokensOf(JSON.stringify(tool));
    tokensOfOne.set(tool, tokens);
    return sum + tokens;
  }, 0);
}

/** How much of a context stays free for the answer. */
export const reserveOf = (contextTokens: number): number =>
  Math.min(MAX_ANSWER_TOKENS, Math.max(MIN_ANSWER_TOKENS, Math.floor(contextTokens / 8)));

/** How much text a prompt has: JavaScript characters, those of ASCII that stand for themselves, and bytes of UTF-8. */
interface Size {
  characters: number;
  signs: number;
  bytes: number;
  /** Tokens of what stands around its texts. */
  around: number;
}

/** The prompt of a request: its texts, and what stands around them. */
type Prompt = Pick<ModelRequest, "messages" | "tools" | "output">;

/** English takes a token for four to five bytes; other languages and JSON for fewer. */
const BYTES_A_TOKEN = 4;
/** What chat templates put around a message or a tool. */
const TOKENS_AROUND = 16;

/** What a call probably took that nobody has counted. */
export function probableTokens(
  prompt: Prompt,
  answerBytes: number,
): { promptTokens: number; completionTokens: number } {
  const { bytes, around } = measure(prompt);
  return {
    promptTokens: Math.ceil(bytes / BYTES_A_TOKEN) + around,
    completionTokens: Math.ceil(answerBytes / BYTES_A_TOKEN),
  };
}

/**
 * The most that a prompt may take: a token for every two letters, one for each digit and sign, since some models read them one
 * by one, and one for each byte by which a character is longer than ASCII.
 */
export function mostPromptTokens(prompt: Prompt): number {
  const { characters, signs, bytes, around } = measure(prompt);
  return Math.ceil((characters + signs) / 2) + (bytes - characters) + around;
}

function measure({ messages, tools, output }: Prompt): Size {
  const size = { ...NOTHING, around: TOKENS_AROUND };
  for (const part of messages) {
    if (isSeveral(part)) addOnce(size, part, (own) => addMessages(own, part));
    else addMessages(size, [part]);
  }
  for (const tool of tools) addOnce(size, tool, (own) => addTool(own, tool));
  if (output) add(size, JSON.stringify(output.schema));
  return size;
}

function addMessages(size: Size, messages: readonly ModelMessage[]): void {
  for (const message of messages) {
    for (const text of textsOf(message)) add(size, text);
    size.around += TOKENS_AROUND;
    if (message.role === "user") size.around += MOST_IMAGE_TOKENS * (message.images?.length ?? 0);
  }
}

function addTool(size: Size, tool: ToolDescription): void {
  add(size, JSON.stringify(tool));
  size.around += TOKENS_AROUND;
}

function textsOf(message: ModelMessage): string[] {
  if (message.role !== "assistant" || message.toolCalls === undefined) return [message.content];
  return [message.content, ...message.toolCalls.flatMap(({ id, name, input }) => [id, name, input])];
}

function add(size: Size, text: string): void {
  size.characters += text.length;
  size.signs += text.match(SIGNS)?.length ?? 0;
  size.bytes += Buffer.byteLength(text);
}

const SIGNS = /[!-@[-`{-~]/g;

const NOTHING: Size = { characters: 0, signs: 0, bytes: 0, around: 0 };

/** Tools, and what lasts of a conversation, are the same objects in every request. */
const measured = new WeakMap<object, Size>();

/** Adds the size of what is measured only once. */
function addOnce(size: Size, what: object, measureAll: (own: Size) => void): void {
  const own = measured.get(what) ?? { ...NOTHING };
  if (!measured.has(what)) {
    measureAll(own);
    measured.set(what, own);
  }
  size.characters += own.characters;
  size.signs += own.signs;
  size.bytes += own.bytes;
  size.around += own.around;
}
