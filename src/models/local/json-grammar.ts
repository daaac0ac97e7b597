/**
 * The grammar of JSON that fits a schema, so that the model can write nothing else. It is a little narrower than
 * JSON: properties come in the schema's order, and what has no bound gets one. What it cannot hold a model to (ranges of
 * numbers, `not`, `allOf`, `pattern`) is left to the check of the whole answer.
 */
import { isObject } from "../../lib/is-object.ts";
import { itemsOf } from "../../lib/json-schema.ts";
import { bytes, createGrammar, either, type Grammar, oneOf, optional, type Part, toBytes } from "./grammar.ts";

type Schema = Record<string, unknown>;

/** The whole schema that a value belongs to. */
interface Whole {
  schema: Schema;
  /** The most bytes of a text of which the schema does not say it. */
  maxText: number;
  /** The part for each schema within it, by its depth: where several ways lead to the same, they go on as one. */
  made: Map<unknown, Part[]>;
}

const MAX_TEXT = 400;
const MAX_ITEMS = 8;
const MAX_DIGITS = 12;
const MAX_DECIMALS = 4;
/** Of a value about which the schema says nothing. */
const FREE_DEPTH = 2;

const SPACE = optional(bytes(" "));
const QUOTE = bytes('"');
const COMMA = [bytes(","), SPACE];

const numberOr = (value: unknown, other: number): number => (typeof value === "number" ? value : other);
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

/** The schema has no `schemaFault` (lib/json-schema.ts). */
export const createJsonGrammar = (schema: Schema): Grammar => createGrammar([jsonOf(schema)]);

/** JSON of a schema. */
export const jsonOf = (schema: Schema, maxText = MAX_TEXT): Part =>
  valueFor(schema, { schema, maxText, made: new Map() }, FREE_DEPTH);

/** `depth` is how deep what the schema leaves open may be. */
function valueFor(schema: unknown, whole: Whole, depth: number): Part {
  const made = whole.made.get(schema) ?? [];
  whole.made.set(schema, made);
  made[depth] ??= newValueFor(schema, whole, depth);
  return made[depth];
}

function newValueFor(schema: unknown, whole: Whole, depth: number): Part {
  return either(() => {
    if (!isObject(schema)) return schema === false ? [] : anyValue(whole, depth);
    if (typeof schema.$ref === "string") return [[valueFor(resolved(whole.schema, schema.$ref), whole, depth)]];
    if ("const" in schema) return [[bytes(JSON.stringify(schema.const))]];
    if (Array.isArray(schema.enum))
      return oneOf(schema.enum.map((one) => ({ text: toBytes(JSON.stringify(one)), next: [] })));
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
      // Those that may be left out, and the first that may not.
      const next = all.findIndex(([name], index) => index >= at && required.has(name));
      const members = all.slice(at, next < 0 ? all.length : next + 1).map(([name, of], index) => ({
        text: toBytes(`${JSON.stringify(name)}:`),
        next: [SPACE, valueFor(of, whole, depth), from(at + index + 1, false)],
      }));
      const more = [...(isFirst ? [] : COMMA), either(() => oneOf(members))];
      return [...(members.length > 0 ? [more] : []), ...(next < 0 ? [[bytes("}")]] : [])];
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
