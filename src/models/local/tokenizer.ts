/**
 * Prompt in, tokens out; token in, bytes out. The parts of transformers.js for tokenising and for chat templates do the
 * work: the whole of it would be 15 MiB more in the process.
 */
import { join } from "node:path";
import { Tokenizer as Encoder } from "@huggingface/tokenizers";
import { z } from "zod";
import type { ToolDescription } from "../engine.ts";
import { openTemplate, type TemplateText } from "./chat-template.ts";
import type { ChatMessage } from "./protocol.ts";

export interface Tokenizer {
  /**
   * The conversation in the model's chat template, ready for the assistant's answer, in pieces of at most `characters`.
   * Encoded one after the other, they make up the prompt.
   */
  layOut(messages: readonly ChatMessage[], characters: number, functions?: readonly ToolDescription[]): string[];
  encode(piece: string): number[];
  /** A token's part of the UTF-8 output; empty for control tokens, but for those that begin a call. */
  bytesOf(token: number): Uint8Array;
  /** Ends a turn in a prompt. */
  readonly endOfTurn: number;
  /** The tokens by which the model ends its answer. */
  readonly ends: ReadonlySet<number>;
  /** What the model writes before the JSON of a call; null if it cannot call functions (chat-template.ts). */
  readonly callOpening: string | null;
}

interface TokenizerFile {
  model: {
    vocab: Record<string, number> | [piece: string, score: number][];
    /** Pairs; older files write each as one string, with a space in between. */
    merges?: (string | string[])[];
  };
  added_tokens: { id: number; content: string; special: boolean }[];
  decoder: unknown;
}

type ControlToken = string | { content: string } | null;

interface TokenizerConfig {
  bos_token?: ControlToken;
  eos_token?: ControlToken;
  unk_token?: ControlToken;
  sep_token?: ControlToken;
  pad_token?: ControlToken;
  cls_token?: ControlToken;
  mask_token?: ControlToken;
  chat_template?: TemplateText;
}

/** A character of no script, inserted into control words of a message so that they differ from the template's own. */
const GUARD = "\uE000";
const NOTHING = /(?!)/;

/** Opens the tokenizer of a model's folder. Throws if it is of a kind whose tokens cannot be shown one by one. */
export async function openTokenizer(folder: string): Promise<Tokenizer> {
  const read = (name: string) => Bun.file(join(folder, name));
  const file: TokenizerFile = await read("tokenizer.json").json();
  const config: TokenizerConfig = await read("tokenizer_config.json").json();
  const ownTemplate = read("chat_template.jinja");
  if (await ownTemplate.exists()) config.chat_template = await ownTemplate.text();

  const added = new Map(file.added_tokens.map(({ content, id }) => [content, id]));
  const longestFirst = [...added.keys()].sort((one, other) => other.length - one.length);
  // An expression of no words would match between any two characters.
  const controlWords =
    longestFirst.length === 0 ? NOTHING : new RegExp(`(${longestFirst.map((word) => RegExp.escape(word)).join("|")})`);
  const ends = await endsOf(folder, config, added);
  const [endOfTurn] = ends;
  if (endOfTurn === undefined) throw new Error(`the tokenizer in ${folder} names no token that ends an answer`);

  // This one knows no control words: text from a user can never become one, so a message cannot forge another speaker's
  // turn.
  const encoder = openEncoder({ ...file, added_tokens: [] }, config);
  const guarded = (text: string) =>
    text.replaceAll(GUARD, "").replace(new RegExp(controlWords, "g"), (word) => word[0] + GUARD + word.slice(1));
  const template = openTemplate(config.chat_template, controlTokensOf(config), guarded);

  return {
    endOfTurn,
    ends,
    callOpening: template.callOpening,
    bytesOf: bytesOfTokens(file, template.callOpening ?? ""),
    layOut(messages, characters, functions) {
      const parts = template.render(messages, functions).split(controlWords);
      return parts.flatMap((part) => (added.has(part) ? [part] : piecesOf(part, characters)));
    },
    encode(piece) {
      const token = added.get(piece);
      if (token !== undefined) return [token];
      return encoder.encode(piece.replaceAll(GUARD, ""), { add_special_tokens: false }).ids;
    },
  };
}

/** Takes the merges out of `file`: the encoder makes a table of them and keeps the list, which would be 10 MiB. */
function openEncoder(file: TokenizerFile, config: TokenizerConfig): Encoder {
  const { model } = file;
  if (model.merges === undefined) return new Encoder(file, config);
  const merges = model.merges.map((pair) => (typeof pair === "string" ? pair.split(" ", 2) : pair));
  model.merges = merges;
  const encoder = new Encoder(file, config);
  merges.length = 0;
  return encoder;
}

const textOf = (token: ControlToken | undefined): string | undefined =>
  typeof token === "string" ? token : token?.content;

/** Those that a template may name, such as `bos_token`. */
const controlTokensOf = (config: TokenizerConfig): Record<string, string> =>
  Object.fromEntries(
    (["bos", "eos", "unk", "sep", "pad", "cls", "mask"] as const).flatMap((kind) => {
      const text = textOf(config[`${kind}_token`]);
      return text ? [[`${kind}_token`, text]] : [];
    }),
  );

const Ends = z.object({ eos_token_id: z.union([z.int(), z.array(z.int())]) });

/** As the tokenizer says it, and the other files of the model, which may name several. */
async function endsOf(folder: string, { eos_token }: TokenizerConfig, added: Map<string, number>) {
  const ends = new Set<number>();
  const own = added.get(textOf(eos_token) ?? "");
  if (own !== undefined) ends.add(own);
  for (const name of ["generation_config.json", "config.json"]) {
    const file = Bun.file(join(folder, name));
    const { data } = Ends.safeParse((await file.exists()) ? await file.json() : null);
    for (const id of [data?.eos_token_id ?? []].flat()) ends.add(id);
  }
  return ends;
}

/** A token's bytes, in either of the two ways in which vocabularies are written. */
function bytesOfTokens(
  { model, added_tokens, decoder }: TokenizerFile,
  callOpening: string,
): (token: number) => Uint8Array {
  const words: string[] = [];
  if (Array.isArray(model.vocab)) for (const [token, [word]] of model.vocab.entries()) words[token] = word;
  else for (const [word, token] of Object.entries(model.vocab)) words[token] = word;
  const added = new Map(added_tokens.map((token) => [token.id, token]));
  const kinds = new Set([...JSON.stringify(decoder ?? null).matchAll(/"type":"(\w+)"/g)].map(([, kind]) => kind));
  const bytes = kinds.has("ByteLevel") ? byteLevelBytes : sentencePieceBytes;
  if (!["ByteLevel", "ByteFallback", "Metaspace"].some((kind) => kinds.has(kind))) {
    throw new Error(`its tokenizer has a decoder of another kind (${[...kinds].join(", ") || "none"})`);
  }
  return (token) => {
    const special = added.get(token);
    if (special === undefined) return bytes(words[token] ?? "");
    const isHidden = special.special && !callOpening.includes(special.content);
    return isHidden ? new Uint8Array() : new TextEncoder().encode(special.content);
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

/** SentencePiece's alphabet: `▁` is a space, and `<0x0A>` a byte. */
function sentencePieceBytes(word: string): Uint8Array {
  const byte = /^<0x([0-9A-F]{2})>$/.exec(word)?.[1];
  return byte === undefined
    ? new TextEncoder().encode(word.replaceAll("▁", " "))
    : Uint8Array.of(Number.parseInt(byte, 16));
}
