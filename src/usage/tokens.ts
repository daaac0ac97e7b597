import type { ModelMessage, ModelRequest, ToolDescription } from "../models/engine.ts";

/** How much text a prompt has: JavaScript characters, and bytes of UTF-8. */
interface Size {
  characters: number;
  bytes: number;
}

/** The prompt of a request: its texts, and what stands around them. */
type Prompt = Pick<ModelRequest, "messages" | "tools" | "output">;

/** English takes a token for four to five bytes; other languages and JSON for fewer. */
const BYTES_A_TOKEN = 4;
/** What chat templates put around a message or a tool. */
const TOKENS_AROUND = 16;
/** Most models take fewer for an image. */
const IMAGE_TOKENS = 2_048;

/** What a call probably took that nobody has counted. */
export function estimateTokens(
  prompt: Prompt,
  answerBytes: number,
): { promptTokens: number; completionTokens: number } {
  const { size, around } = measure(prompt);
  return {
    promptTokens: Math.ceil(size.bytes / BYTES_A_TOKEN) + around,
    completionTokens: Math.ceil(answerBytes / BYTES_A_TOKEN),
  };
}

/**
 * The most that a prompt may take: a token for every two characters, and one for each byte by which a character is longer
 * than ASCII. Digits, codes and rare words stay below it too.
 */
export function mostPromptTokens(prompt: Prompt): number {
  const { size, around } = measure(prompt);
  return Math.ceil(size.characters / 2) + (size.bytes - size.characters) + around;
}

function measure({ messages, tools, output }: Prompt): { size: Size; around: number } {
  const size = { characters: 0, bytes: 0 };
  let around = TOKENS_AROUND * (messages.length + tools.length + 1);
  for (const message of messages) {
    for (const text of textsOf(message)) add(size, text);
    if (message.role === "user") around += IMAGE_TOKENS * (message.images?.length ?? 0);
  }
  for (const tool of tools) {
    const { characters, bytes } = sizeOfTool(tool);
    size.characters += characters;
    size.bytes += bytes;
  }
  if (output) add(size, JSON.stringify(output.schema));
  return { size, around };
}

function textsOf(message: ModelMessage): string[] {
  if (message.role !== "assistant" || message.toolCalls === undefined) return [message.content];
  return [message.content, ...message.toolCalls.flatMap(({ id, name, input }) => [id, name, input])];
}

function add(size: Size, text: string): void {
  size.characters += text.length;
  size.bytes += Buffer.byteLength(text);
}

/** Tools are the same objects in every request. */
const measured = new WeakMap<ToolDescription, Size>();

function sizeOfTool(tool: ToolDescription): Size {
  const known = measured.get(tool);
  if (known !== undefined) return known;
  const size = { characters: 0, bytes: 0 };
  add(size, JSON.stringify(tool));
  measured.set(tool, size);
  return size;
}
