/**
 * Which bytes may follow in JSON that fits a schema, so that the model can write nothing else. It is a little narrower than
 * JSON: properties come in the schema's order, and what has no bound gets one. What it cannot hold a model to (ranges of
 * numbers, `not`, `allOf`, `pattern`) is left to the check of the whole answer.
 */
import { isObject } from "../../lib/is-object.ts";
import { itemsOf } from "../../lib/json-schema.ts";
import { lazily } from "../../lib/lazily.ts";

type Schema = Record<string, unknown>;

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

/** The whole schema that a value belongs to. */
interface Whole {
  schema: Schema;
  /** The most bytes of a text of which the schema does not say it. */
  maxText: number;
}

export interface JsonGrammar {
  /** The state after these bytes; null if they may not follow. */
  after(state: GrammarState, bytes: Uint8Array): GrammarState | null;
  readonly start: GrammarState;
}

/** Ways to go on; `null` among them means that the JSON may end here. */
export type GrammarState = readonly (Rest | null)[];

export const mayEnd = (state: GrammarState): boolean => state.includes(null);
export const mustEnd = (state: GrammarState): boolean => state.every((rest) => rest === null);

const MAX_TEXT = 400;
const MAX_ITEMS = 8;
const MAX_DIGITS = 12;
const MAX_DECIMALS = 4;
/** Of a value about which the schema says nothing. */
const FREE_DEPTH = 2;
const MAX_WAYS = 256;
const MAX_EXPANSIONS = 2_000;

const encoder = new TextEncoder();
export const bytes = (text: string): Part => literal(encoder.encode(text));
const literal = (given: Uint8Array): Part => ({ kind: "bytes", bytes: given, at: 0 });
export const either = (ways: () => readonly (readonly Part[])[]): Part => ({ kind: "either", ways: lazily(ways) });
export const optional = (...parts: Part[]): Part => either(() => [[], parts]);
const SPACE = optional(bytes(" "));
const QUOTE = bytes('"');
const COMMA = [bytes(","), SPACE];

const numberOr = (value: unknown, other: number): number => (typeof value === "number" ? value : other);
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

/** The schema has no `schemaFault` (lib/json-schema.ts). */
export const createJsonGrammar = (schema: Schema): JsonGrammar => createGrammar([jsonOf(schema)]);

/** JSON of a schema. */
export const jsonOf = (schema: Schema, maxText = MAX_TEXT): Part => valueFor(schema, { schema, maxText }, FREE_DEPTH);

export function createGrammar(parts: readonly Part[]): JsonGrammar {
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

/** Replaces choices by their ways, until each begins with a byte. */
function expand(ways: readonly (Rest | null)[]): GrammarState {
  const open = [...ways];
  const ready = new Set<Rest | null>();
  for (let count = 0; open.length > 0 && count < MAX_EXPANSIONS && ready.size < MAX_WAYS; count++) {
    const rest = open.shift() ?? null;
    if (rest?.part.kind === "either") open.push(...rest.part.ways().map((parts) => followedBy(parts, rest.next)));
    else {
      ready.add(rest);
      if (rest?.part.kind === "digits" && rest.part.least === 0) open.push(rest.next);
    }
  }
  return [...ready];
}

const BACKSLASH = 0x5c;
const QUOTE_BYTE = 0x22;
const ESCAPES = new Set(encoder.encode('"\\/nt'));

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

/** One of these texts. What several begin with is written once, so however many there are, there are few ways to go on. */
function oneOf(texts: readonly Uint8Array[]): readonly (readonly Part[])[] {
  const byFirst = Map.groupBy(texts, ([first]) => first);
  return [...byFirst].map(([first, those]) => {
    const [text = new Uint8Array()] = those;
    if (first === undefined) return [];
    if (those.length === 1) return [literal(text)];
    return [literal(text.subarray(0, 1)), either(() => oneOf(those.map((each) => each.subarray(1))))];
  });
}

/** `depth` is how deep what the schema leaves open may be. */
function valueFor(schema: unknown, whole: Whole, depth: number): Part {
  return either(() => {
    if (!isObject(schema)) return schema === false ? [] : anyValue(whole, depth);
    if (typeof schema.$ref === "string") return [[valueFor(resolved(whole.schema, schema.$ref), whole, depth)]];
    if ("const" in schema) return [[bytes(JSON.stringify(schema.const))]];
    if (Array.isArray(schema.enum)) return oneOf(schema.enum.map((one) => encoder.encode(JSON.stringify(one))));
    for (const name of ["anyOf", "oneOf", "allOf"] as const) {
      // Of `allOf` the first is followed; whether all of them fit is checked at the end.
      const ways = listOf(schema[name]).slice(0, name === "allOf" ? 1 : undefined);
      if (ways.length > 0)
        return ways.map((way) => [valueFor(isObject(way) ? { ...schema, [name]: [], ...way } : way, whole, depth)]);
    }
    const types = [schema.type ?? inferredType(schema)].flat();
    return types.flatMap((type) => ofType(type, schema, whole, depth));
  });
}

const inferredType = (schema: Schema): string[] =>
  isObject(schema.properties)
    ? ["object"]
    : schema.items === undefined
      ? ["object", "array", "string", "number", "boolean", "null"]
      : ["array"];

const anyValue = (whole: Whole, depth: number) =>
  ["object", "array", "string", "number", "boolean", "null"].flatMap((type) => ofType(type, {}, whole, depth));

function ofType(type: unknown, schema: Schema, whole: Whole, depth: number): readonly (readonly Part[])[] {
  switch (type) {
    case "string": {
      const least = numberOr(schema.minLength, 0);
      return [[QUOTE, { kind: "text", least, most: Math.max(least, numberOr(schema.maxLength, whole.maxText)) }]];
    }
    case "integer":
    case "number": {
      const sign = numberOr(schema.minimum, numberOr(schema.exclusiveMinimum, -1)) >= 0 ? [] : [optional(bytes("-"))];
      const first = "123456789"
        .split("")
        .map((digit) => [bytes(digit), { kind: "digits", least: 0, most: MAX_DIGITS } as const]);
      const whole = either(() => [[bytes("0")], ...first]);
      const decimals = optional(bytes("."), { kind: "digits", least: 1, most: MAX_DECIMALS });
      return [[...sign, whole, ...(type === "number" ? [decimals] : [])]];
    }
    case "boolean":
      return [[bytes("true")], [bytes("false")]];
    case "null":
      return [[bytes("null")]];
    case "array":
      return arrayOf(schema, whole, depth);
    default:
      return objectOf(schema, whole, depth);
  }
}

function arrayOf(schema: Schema, whole: Whole, depth: number): readonly (readonly Part[])[] {
  const { first, others } = itemsOf(schema);
  if (others === undefined && first.length === 0 && depth === 0) return [[bytes("[]")]];
  const deeper = others === undefined ? depth - 1 : depth;
  const least = numberOr(schema.minItems, 0);
  const most = Math.max(
    least,
    Math.min(numberOr(schema.maxItems, MAX_ITEMS), others === false ? first.length : Number.POSITIVE_INFINITY),
  );
  const itemsFrom = (at: number): Part =>
    either(() => {
      const of = at < first.length ? first[at] : others;
      const item = () => [...(at === 0 ? [] : COMMA), valueFor(of, whole, deeper), itemsFrom(at + 1)];
      return [...(at >= least ? [[bytes("]")]] : []), ...(at < most ? [item()] : [])];
    });
  return [[bytes("["), itemsFrom(0)]];
}

function objectOf(schema: Schema, whole: Whole, depth: number): readonly (readonly Part[])[] {
  const required = new Set(listOf(schema.required));
  const known = Object.entries(isObject(schema.properties) ? schema.properties : {}).filter(
    ([name, of]) => of !== false || required.has(name),
  );
  const member = (name: string, of: unknown) => [
    bytes(JSON.stringify(name)),
    bytes(":"),
    SPACE,
    valueFor(of, whole, depth),
  ];
  const names = new Set(known.map(([name]) => name));
  const all = [
    ...known,
    ...[...required].flatMap((name) =>
      typeof name === "string" && !names.has(name) ? [[name, schema.additionalProperties || true] as const] : [],
    ),
  ];
  if (all.length === 0) return freeObject(schema, whole, depth);
  const from = (at: number, isFirst: boolean): Part =>
    either(() => {
      const [name, of] = all[at] ?? [];
      if (name === undefined) return [[bytes("}")]];
      const written = [...(isFirst ? [] : COMMA), ...member(name, of), from(at + 1, false)];
      return required.has(name) ? [written] : [written, [from(at + 1, isFirst)]];
    });
  return [[bytes("{"), from(0, true)]];
}

/** One whose names the schema does not say. */
function freeObject(schema: Schema, whole: Whole, depth: number): readonly (readonly Part[])[] {
  if (depth === 0 || schema.additionalProperties === false) return [[bytes("{}")]];
  const names = isObject(schema.propertyNames) ? schema.propertyNames : {};
  const name = valueFor({ type: "string", minLength: 1, maxLength: 40, ...names }, whole, 0);
  const value = () => valueFor(schema.additionalProperties ?? true, whole, depth - 1);
  const from = (at: number): Part =>
    either(() => [
      [bytes("}")],
      ...(at < MAX_ITEMS ? [[...(at === 0 ? [] : COMMA), name, bytes(":"), SPACE, value(), from(at + 1)]] : []),
    ]);
  return [[bytes("{"), from(0)]];
}

function resolved(root: Schema, ref: string): unknown {
  return ref
    .split("/")
    .slice(1)
    .reduce<unknown>((found, part) => {
      const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
      return isObject(found) || Array.isArray(found) ? (found as Schema)[name] : undefined;
    }, root);
}
