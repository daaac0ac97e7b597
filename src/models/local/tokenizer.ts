/** Prompt in, tokens out; token in, bytes out. transformers.js does the tokenising and the chat template. */
import { join } from "node:path";
import type { ChatMessage } from "./protocol.ts";
import { loadTransformers } from "./transformers.ts";

export interface Tokenizer {
  /**
   * The conversation in the model's chat template, ready for the assistant's answer, in pieces of at most `characters`.
   * Encoded one after the other, they make up the prompt.
   */
  layOut(messages: ChatMessage[], characters: number): string[];
  encode(piece: string): number[];
  /** A token's part of the UTF-8 output; empty for control tokens. */
  bytesOf(token: number): Uint8Array;
  readonly endOfTurn: number;
}

interface TokenizerFile {
  model: { vocab: Record<string, number> };
  added_tokens: { id: number; content: string; special: boolean }[];
}

/** A character of no script, inserted into control words of a message so that they differ from the template's own. */
const GUARD = "\uE000";

export async function openTokenizer(folder: string): Promise<Tokenizer> {
  const { PreTrainedTokenizer } = await loadTransformers();
  const file: TokenizerFile = await Bun.file(join(folder, "tokenizer.json")).json();
  const config: { eos_token: string } = await Bun.file(join(folder, "tokenizer_config.json")).json();
  const control = new Map(file.added_tokens.filter((token) => token.special).map((token) => [token.content, token.id]));
  const controlWords = new RegExp(`(${[...control.keys()].map((word) => RegExp.escape(word)).join("|")})`);
  const endOfTurn = control.get(config.eos_token);
  if (endOfTurn === undefined) throw new Error(`the tokenizer in ${folder} has no ${config.eos_token}`);

  // This one knows no control words: text from a user can never become one, so a message cannot forge another speaker's
  // turn.
  const tokenizer = new PreTrainedTokenizer({ ...file, added_tokens: [] }, config);
  const words: string[] = [];
  for (const [word, token] of Object.entries(file.model.vocab)) if (!control.has(word)) words[token] = word;

  const guarded = (text: string) =>
    text.replaceAll(GUARD, "").replace(new RegExp(controlWords, "g"), (word) => word[0] + GUARD + word.slice(1));

  return {
    endOfTurn,
    bytesOf: (token) => byteLevelBytes(words[token] ?? ""),
    layOut(messages, characters) {
      const text = tokenizer.apply_chat_template(
        messages.map(({ role, content }) => ({ role, content: guarded(content) })),
        { add_generation_prompt: true, tokenize: false },
      );
      if (typeof text !== "string") throw new Error("the chat template did not return a text");
      return text.split(controlWords).flatMap((part) => (control.has(part) ? [part] : piecesOf(part, characters)));
    },
    encode(piece) {
      const token = control.get(piece);
      if (token !== undefined) return [token];
      return tokenizer.encode(piece.replaceAll(GUARD, ""), { add_special_tokens: false });
    },
  };
}

/**
 * Cuts text before white space that follows something else: no token spans such a place, so the tokens are those of the
 * whole text. In text without such places, such as Chinese or an endless word, a token or two may differ.
 */
function piecesOf(text: string, characters: number): string[] {
  const pieces: string[] = [];
  let from = 0;
  while (text.length - from > characters) {
    let end = from + characters;
    while (end > from && !(isSpace(text[end]) && !isSpace(text[end - 1]))) end--;
    if (end === from) end = from + characters - (isHighSurrogate(text, from + characters - 1) ? 1 : 0);
    pieces.push(text.slice(from, end));
    from = end;
  }
  if (from < text.length) pieces.push(text.slice(from));
  return pieces;
}

const isSpace = (character: string | undefined): boolean => character !== undefined && /\s/.test(character);
const isHighSurrogate = (text: string, at: number): boolean => (text.charCodeAt(at) & 0xfc00) === 0xd800;

/**
 * GPT-2's byte-level alphabet: a printable Latin-1 byte is written as itself, every other byte as the next code point
 * from 256 upwards.
 */
const BYTE_OF_CHARACTER: ReadonlyMap<string, number> = (() => {
  const printable = (byte: number) => (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  let next = 256;
  return new Map(
    Array.from({ length: 256 }, (_, byte) => [String.fromCodePoint(printable(byte) ? byte : next++), byte] as const),
  );
})();

const byteLevelBytes = (word: string): Uint8Array =>
  Uint8Array.from(word, (character) => BYTE_OF_CHARACTER.get(character) ?? 0x3f);
