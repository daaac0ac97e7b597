/** Which bytes may follow, so that a model can write nothing else: what it may write is made of parts. */
import { lazily } from "../../lib/lazily.ts";

/** What is still to be written: the first part of it, and the rest. Null: nothing. */
interface Rest {
  part: Part;
  next: Rest | null;
}

export type Part =
  | { kind: "bytes"; bytes: Uint8Array; at: number }
  /** One of several ways to go on. */
  | { kind: "either"; ways: () => readonly (readonly Part[])[] }
  /** The inside of a text, up to and including its closing quote. */
  | { kind: "text"; least: number; most: number }
  /** What follows a backslash in a text. */
  | { kind: "escaped" }
  /** The other bytes of a character that has several; the next one is from `least` to `most`. */
  | { kind: "character"; bytes: number; least: number; most: number }
  | { kind: "digits"; least: number; most: number };

export interface Grammar {
  /** The state after these bytes; null if they may not follow. */
  after(state: GrammarState, bytes: Uint8Array): GrammarState | null;
  readonly start: GrammarState;
}

/** Ways to go on; `null` among them means that it may end here. */
export type GrammarState = readonly (Rest | null)[];

export const mayEnd = (state: GrammarState): boolean => state.includes(null);
export const mustEnd = (state: GrammarState): boolean => state.every((rest) => rest === null);

const MAX_WAYS = 256;
const MAX_EXPANSIONS = 2_000;

const encoder = new TextEncoder();
export const toBytes = (text: string): Uint8Array => encoder.encode(text);
export const bytes = (text: string): Part => literal(toBytes(text));
const literal = (given: Uint8Array): Part => ({ kind: "bytes", bytes: given, at: 0 });
export const either = (ways: () => readonly (readonly Part[])[]): Part => ({ kind: "either", ways: lazily(ways) });
export const optional = (...parts: Part[]): Part => either(() => [[], parts]);

export function createGrammar(parts: readonly Part[]): Grammar {
  const start = expand([followedBy(parts, null)]);
  return {
    start,
    after(state, added) {
      let now: GrammarState = state;
      for (const byte of added) {
        now = expand(now.flatMap((rest) => (rest === null ? [] : stepped(rest, byte))));
        if (now.length === 0) return null;
      }
      return now;
    },
  };
}

const followedBy = (parts: readonly Part[], next: Rest | null): Rest | null =>
  parts.reduceRight<Rest | null>((rest, part) => ({ part, next: rest }), next);

/** Replaces choices by their ways, each once, until each begins with a byte. */
function expand(ways: readonly (Rest | null)[]): GrammarState {
  const open = [...ways];
  const ready = new Set<Rest | null>();
  const opened = new Map<Part, Set<Rest | null>>();
  for (let count = 0; count < open.length && count < MAX_EXPANSIONS && ready.size < MAX_WAYS; count++) {
    const rest = open[count] ?? null;
    if (rest?.part.kind === "either") {
      const before = opened.get(rest.part) ?? new Set();
      if (before.has(rest.next)) continue;
      opened.set(rest.part, before.add(rest.next));
      for (const parts of rest.part.ways()) open.push(followedBy(parts, rest.next));
    } else {
      ready.add(rest);
      if (rest?.part.kind === "digits" && rest.part.least === 0) open.push(rest.next);
    }
  }
  return [...ready];
}

const BACKSLASH = 0x5c;
const QUOTE_BYTE = 0x22;
const ESCAPES = new Set(toBytes('"\\/nt'));

/** What may follow once this byte has been written; empty if it may not be. */
function stepped({ part, next }: Rest, byte: number): (Rest | null)[] {
  switch (part.kind) {
    case "bytes": {
      if (part.bytes[part.at] !== byte) return [];
      return [part.at + 1 === part.bytes.length ? next : { part: { ...part, at: part.at + 1 }, next }];
    }
    case "text": {
      if (byte === QUOTE_BYTE) return part.least > 0 ? [] : [next];
      if (byte < 0x20 || part.most === 0) return [];
      const rest = { part: { ...part, least: Math.max(0, part.least - 1), most: part.most - 1 }, next };
      if (byte === BACKSLASH) return [{ part: { kind: "escaped" }, next: rest }];
      if (byte < 0x80) return [rest];
      const others = othersOfCharacter(byte);
      return others === null ? [] : [{ part: others, next: rest }];
    }
    case "character": {
      if (byte < part.least || byte > part.most) return [];
      return [part.bytes === 1 ? next : { part: continuation(part.bytes - 1), next }];
    }
    case "escaped":
      return ESCAPES.has(byte) ? [next] : [];
    case "digits": {
      if (byte < 0x30 || byte > 0x39 || part.most === 0) return [];
      return [{ part: { ...part, least: Math.max(0, part.least - 1), most: part.most - 1 }, next }];
    }
    case "either":
      return [];
  }
}

const continuation = (bytes: number, least = 0x80, most = 0xbf): Part => ({ kind: "character", bytes, least, most });

/** What must follow the first byte of a character in UTF-8; null if none begins with it. */
function othersOfCharacter(first: number): Part | null {
  if (first >= 0xc2 && first <= 0xdf) return continuation(1);
  // No longer than needed, and no half of a surrogate pair.
  if (first >= 0xe0 && first <= 0xef)
    return continuation(2, first === 0xe0 ? 0xa0 : 0x80, first === 0xed ? 0x9f : 0xbf);
  if (first >= 0xf0 && first <= 0xf4)
    return continuation(3, first === 0xf0 ? 0x90 : 0x80, first === 0xf4 ? 0x8f : 0xbf);
  return null;
}

interface Choice {
  text: Uint8Array;
  /** What is written after it. */
  next: readonly Part[];
}

/** One of these. What several begin with is written once, so however many there are, there are few ways to go on. */
export function oneOf(choices: readonly Choice[]): readonly (readonly Part[])[] {
  const byFirst = Map.groupBy(choices, ({ text: [first] }) => first);
  return [...byFirst].flatMap(([first, those]) => {
    if (first === undefined || those.length === 1) return those.map(({ text, next }) => [...written(text), ...next]);
    const rests = () => those.map(({ text, next }) => ({ text: text.subarray(1), next }));
    return [[literal(Uint8Array.of(first)), either(() => oneOf(rests()))]];
  });
}

const written = (text: Uint8Array): Part[] => (text.length === 0 ? [] : [literal(text)]);
