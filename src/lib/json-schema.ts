import { AppError } from "./app-error.ts";
import { isMultiple } from "./is-multiple.ts";
import { isObject } from "./is-object.ts";

/**
 * JSON Schema, as far as it can be checked in a bounded time: a schema comes from a stranger. A regular expression is never
 * run, because a malicious one may take forever: `pattern` is for the model, as `format` is. What is not supported is
 * refused, never ignored.
 */

export type JsonSchema = Record<string, unknown>;

/** What is wrong with a value, and where; null if it fits. */
export type SchemaCheck = (value: unknown) => string | null;

const MAX_DEPTH = 32;
/** Of one check, about a microsecond each: `anyOf` within `anyOf` multiplies, and a `$ref` may lead back to itself. */
const MAX_STEPS = 100_000;
/** What a step may look at: items of a list or members of an object, characters of JSON, characters of a text. */
const AT_ONCE = { items: 10, json: 100, characters: 500 };
const MAX_NESTED = 500;

const TYPES = ["object", "array", "string", "number", "integer", "boolean", "null"] as const;
type TypeName = (typeof TYPES)[number];

/** They describe, and check nothing. `format` is one of them, as the standard has it. */
const ANNOTATIONS = new Set([
  ..."title description default examples example deprecated readOnly writeOnly discriminator".split(" "),
  ..."format pattern contentEncoding contentMediaType $schema $id $comment".split(" "),
]);
const COUNTS = new Set("minLength maxLength minItems maxItems minProperties maxProperties".split(" "));
const NUMBERS = new Set("minimum maximum exclusiveMinimum exclusiveMaximum multipleOf".split(" "));
const LISTS = new Set(["anyOf", "oneOf", "allOf", "prefixItems"]);
const MAPS = new Set(["properties", "$defs", "definitions"]);
const ONES = new Set(["items", "additionalItems", "additionalProperties", "propertyNames", "not"]);

/** What in a schema cannot be checked, and why, as `"<where>: expected <what>"`; null if all of it can. */
export function schemaFault(schema: unknown): string | null {
  return faultAt(schema, schema, "", 0);
}

/** docs/contract/api.md, Structured answers. */
const MAX_SCHEMA_BYTES = 16 * 1024;

/** The schema of an answer. Throws `invalid_request`, naming the field `param`, for one that cannot be checked. */
export function requireSchema(schema: JsonSchema, param: string): JsonSchema {
  const refuse = (what: string) => new AppError("invalid_request", `${param}: ${what}`, { param });
  const bytes = Buffer.byteLength(JSON.stringify(schema));
  if (bytes > MAX_SCHEMA_BYTES) throw refuse(`expected at most ${MAX_SCHEMA_BYTES} bytes, not ${bytes}`);
  const fault = schemaFault(schema);
  if (fault !== null) throw refuse(fault);
  return schema;
}

function faultAt(schema: unknown, root: unknown, at: string, depth: number): string | null {
  const where = at === "" ? "schema" : `schema${at}`;
  if (typeof schema === "boolean" && at !== "") return null;
  if (!isObject(schema)) return `${where}: expected a JSON Schema`;
  if (depth > MAX_DEPTH) return `${where}: expected at most ${MAX_DEPTH} levels`;
  for (const [name, given] of Object.entries(schema)) {
    const fault = keywordFault(name, given, root, `${at}.${name}`, depth);
    if (fault !== null) return fault;
  }
  return null;
}

function keywordFault(name: string, given: unknown, root: unknown, at: string, depth: number): string | null {
  const expected = (what: string) => `schema${at}: expected ${what}`;
  const first = (faults: Iterable<string | null>) => {
    for (const fault of faults) if (fault !== null) return fault;
    return null;
  };
  if (ANNOTATIONS.has(name)) return null;
  const isList = LISTS.has(name) || (name === "items" && Array.isArray(given));
  if (ONES.has(name) && !isList) return faultAt(given, root, at, depth + 1);
  if (MAPS.has(name)) {
    if (!isObject(given)) return expected("an object of schemas");
    return first(Object.entries(given).map(([key, inner]) => faultAt(inner, root, `${at}.${key}`, depth + 1)));
  }
  if (isList) {
    if (!Array.isArray(given) || given.length === 0) return expected("a list of schemas");
    return first(given.map((inner, index) => faultAt(inner, root, `${at}.${index}`, depth + 1)));
  }
  if (COUNTS.has(name)) return Number.isSafeInteger(given) && Number(given) >= 0 ? null : expected("a whole number");
  if (NUMBERS.has(name))
    return Number.isFinite(given) && (name !== "multipleOf" || Number(given) > 0) ? null : expected("a number");
  switch (name) {
    case "type": {
      const names = Array.isArray(given) ? given : [given];
      return names.length > 0 && names.every((one) => TYPES.includes(one))
        ? null
        : expected(`one of ${TYPES.join(", ")}`);
    }
    case "enum":
      return Array.isArray(given) && given.length > 0 ? null : expected("a list of values");
    case "const":
      return null;
    case "required":
      return Array.isArray(given) && given.every((one) => typeof one === "string") ? null : expected("a list of names");
    case "uniqueItems":
      return typeof given === "boolean" ? null : expected("true or false");
    case "$ref":
      return typeof given === "string" && resolve(root, given) !== undefined
        ? null
        : expected("a reference within the schema, such as #/$defs/name");
    default:
      return `schema${at.slice(0, -name.length - 1)}: the keyword ${name} is not supported`;
  }
}

/** The schema that a JSON pointer within the document names. An anchor, such as `#name`, names none. */
function resolve(root: unknown, ref: string): unknown {
  if (ref !== "#" && !ref.startsWith("#/")) return undefined;
  const parts = ref.slice(1).split("/").slice(1);
  let found = root;
  for (const part of parts) {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
    if (Array.isArray(found)) found = found[Number(key)];
    else if (isObject(found) && Object.hasOwn(found, key)) found = found[key];
    else return undefined;
  }
  return isObject(found) || typeof found === "boolean" ? found : undefined;
}

/** Thrown through `not`, `oneOf` and `anyOf`: a fault there is an answer like any other, and may let the value fit. */
class TooMuch extends Error {}

/** The check of a schema without a `schemaFault`. A value that takes too long to check does not fit. */
export function createSchemaCheck(schema: JsonSchema): SchemaCheck {
  /** The steps that a schema's own lists cost, whatever the value is. */
  const listSteps = new Map<JsonSchema, number>();
  const stepsOfLists = (inner: JsonSchema): number => {
    const { $ref, enum: values, const: constant, required } = inner;
    const steps = listSteps.get(inner) ?? JSON.stringify([$ref, values, constant, required]).length / AT_ONCE.json;
    listSteps.set(inner, steps);
    return steps;
  };
  return (value) => {
    let steps = 0;
    let nested = 0;
    const check = (inner: unknown, part: unknown, at: string): string | null => {
      if (++steps > MAX_STEPS || nested > MAX_NESTED) throw new TooMuch();
      if (inner === true) return null;
      if (!isObject(inner)) return `${at || "the value"} is not allowed`;
      steps += stepsOfLists(inner) + stepsOfValue(inner, part);
      nested++;
      const fault = checkOne(inner, part, at);
      nested--;
      return fault;
    };
    const checkOne = (inner: JsonSchema, part: unknown, at: string): string | null => {
      const here = at || "the value";
      if (typeof inner.$ref === "string") {
        const fault = check(resolve(schema, inner.$ref), part, at);
        if (fault !== null) return fault;
      }
      const types = inner.type === undefined ? [] : ([inner.type].flat() as TypeName[]);
      if (types.length > 0 && !types.some((type) => isType(part, type))) return `${here} is not ${types.join(" or ")}`;
      if (Array.isArray(inner.enum) && !inner.enum.some((one) => Bun.deepEquals(one, part, true))) {
        return `${here} is none of ${shown(inner.enum)}`;
      }
      if ("const" in inner && !Bun.deepEquals(inner.const, part, true)) return `${here} is not ${shown(inner.const)}`;
      const fault = boundsFault(inner, part, here);
      if (fault !== null) return fault;
      for (const each of listOf(inner.allOf)) {
        const wrong = check(each, part, at);
        if (wrong !== null) return wrong;
      }
      const any = listOf(inner.anyOf);
      if (any.length > 0) {
        const faults = any.map((each) => check(each, part, at));
        if (!faults.includes(null))
          return any.length === 1 ? (faults[0] ?? null) : `${here} fits none of anyOf (${faults[0]})`;
      }
      const one = listOf(inner.oneOf);
      if (one.length > 0) {
        const fits = one.filter((each) => check(each, part, at) === null).length;
        if (fits !== 1) return `${here} fits ${fits} of oneOf, not one`;
      }
      if (inner.not !== undefined && check(inner.not, part, at) === null) return `${here} fits what it must not`;
      if (Array.isArray(part)) return checkItems(inner, part, at);
      if (isObject(part)) return checkProperties(inner, part, at);
      return null;
    };
    const checkItems = (inner: JsonSchema, part: unknown[], at: string): string | null => {
      const { first, others } = itemsOf(inner);
      for (const [index, item] of part.entries()) {
        const of = index < first.length ? first[index] : others;
        const fault = of === undefined ? null : check(of, item, `${at}[${index}]`);
        if (fault !== null) return fault;
      }
      return null;
    };
    const checkProperties = (inner: JsonSchema, part: JsonSchema, at: string): string | null => {
      const known = isObject(inner.properties) ? inner.properties : {};
      const of = (name: string) => (at === "" ? name : `${at}.${name}`);
      for (const name of listOf(inner.required) as string[]) {
        if (!Object.hasOwn(part, name)) return `${of(name)} is missing`;
      }
      for (const [name, item] of Object.entries(part)) {
        if (inner.propertyNames !== undefined) {
          const wrong = check(inner.propertyNames, name, `the name ${of(name).slice(0, 200)}`);
          if (wrong !== null) return wrong;
        }
        const isKnown = Object.hasOwn(known, name);
        const rule = isKnown ? known[name] : inner.additionalProperties;
        const fault = rule === undefined ? null : check(rule, item, of(name).slice(0, 200));
        if (fault !== null) return fault;
      }
      return null;
    };
    try {
      return check(schema, value, "");
    } catch (error) {
      if (error instanceof TooMuch) return "it is too much to check";
      throw error;
    }
  };
}

function stepsOfValue({ uniqueItems }: JsonSchema, value: unknown): number {
  if (typeof value === "string") return value.length / AT_ONCE.characters;
  if (!Array.isArray(value)) return isObject(value) ? Object.keys(value).length / AT_ONCE.items : 0;
  const compared = uniqueItems === true ? JSON.stringify(value).length : 0;
  return value.length / AT_ONCE.items + compared / AT_ONCE.json;
}

/** What the first items of a list must be, and what all others: draft 7 has both in `items`, and `additionalItems`. */
export const itemsOf = ({ prefixItems, items, additionalItems }: JsonSchema): { first: unknown[]; others: unknown } =>
  Array.isArray(items) ? { first: items, others: additionalItems } : { first: listOf(prefixItems), others: items };

const listOf = (given: unknown): unknown[] => (Array.isArray(given) ? given : []);

/** JSON in which the order of members makes no difference. */
const comparable = (value: unknown): string =>
  JSON.stringify(value, (_, part) =>
    isObject(part) ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1))) : part,
  );

const shown = (value: unknown): string => JSON.stringify(value).slice(0, 200);

function isType(value: unknown, type: TypeName): boolean {
  switch (type) {
    case "object":
      return isObject(value);
    case "array":
      return Array.isArray(value);
    case "integer":
      return Number.isInteger(value);
    case "null":
      return value === null;
    default:
      return typeof value === type;
  }
}

/** Sizes and ranges. */
function boundsFault(schema: JsonSchema, value: unknown, here: string): string | null {
  const number = (name: string) => (typeof schema[name] === "number" ? (schema[name] as number) : undefined);
  const within = (size: number, least: string, most: string, what: string) => {
    const [min = 0, max = Number.POSITIVE_INFINITY] = [number(least), number(most)];
    return size >= min && size <= max ? null : `${here} has ${size} ${what}`;
  };
  if (typeof value === "string") return within([...value].length, "minLength", "maxLength", "characters");
  if (Array.isArray(value)) {
    const isRepeated = schema.uniqueItems === true && new Set(value.map(comparable)).size < value.length;
    return isRepeated ? `${here} has the same item twice` : within(value.length, "minItems", "maxItems", "items");
  }
  if (isObject(value)) return within(Object.keys(value).length, "minProperties", "maxProperties", "properties");
  if (typeof value !== "number") return null;
  const step = number("multipleOf");
  const fits =
    value >= (number("minimum") ?? Number.NEGATIVE_INFINITY) &&
    value <= (number("maximum") ?? Number.POSITIVE_INFINITY) &&
    value > (number("exclusiveMinimum") ?? Number.NEGATIVE_INFINITY) &&
    value < (number("exclusiveMaximum") ?? Number.POSITIVE_INFINITY) &&
    (step === undefined || isMultiple(value, step));
  return fits ? null : `${here} is out of its range`;
}
