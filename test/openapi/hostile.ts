import type { OpenApi } from "../support/openapi-check.ts";
import type { Random } from "./random.ts";

type Json = Record<string, unknown>;

const TEXTS = [
  "",
  " ",
  "\u0000",
  "a\u0000b",
  "\ud800",
  "\udfff\ud800x",
  "\ufeff",
  "\u202egnp.exe",
  "\u2028",
  "\u001b[31m",
  "e\u0301\u0323".repeat(40),
  "👩‍👩‍👧‍👦".repeat(20),
  "x".repeat(101),
  "x".repeat(33_000),
  "💥".repeat(32_000),
  "x".repeat(300_000),
  "../../../etc/passwd",
  "..\\..\\x",
  "a/./b",
  "C:\\x",
  "__proto__",
  "constructor",
  "toString",
  "'; DROP TABLE accounts; --",
  "{{7*7}}",
  "<script>alert(1)</script>",
  "%00%s%n",
  "x\r\nX-Injected: 1",
  "NaN",
  "null",
  "-1",
  "0x10",
  "١٢٣",
  "1e3",
  "99999999999999999999",
];

const VALUES = [
  "null",
  "true",
  "false",
  "0",
  "-0",
  "-1",
  "1.5",
  "1e400",
  "-1e400",
  "1e-400",
  "9007199254740993",
  "1".repeat(400),
  "[]",
  "{}",
  "[null]",
  "[[],{}]",
  '{"__proto__":{"admin":true}}',
  '{"constructor":{"prototype":{"x":1}}}',
  '{"toString":null,"length":1e9}',
  "[".repeat(5_000) + "]".repeat(5_000),
  `${'{"a":'.repeat(5_000)}1${"}".repeat(5_000)}`,
  '"\\ud800"',
  '"\\u0000"',
  `[${"1,".repeat(20_000)}1]`,
];

/** Text that an attacker would try. */
export const hostileText = (random: Random): string => random.pick(TEXTS);

/** An unexpected JSON value, as JSON text. */
const hostileValue = (random: Random): string =>
  random.chance(0.5) ? random.pick(VALUES) : JSON.stringify(hostileText(random));

const MIB = 1024 * 1024;
const bytes = (...numbers: number[]): Uint8Array => Uint8Array.from(numbers);
const BODIES: (() => string | Uint8Array)[] = [
  ...[
    "",
    " ",
    "{",
    "[",
    "nul",
    "null",
    "1",
    '"x"',
    "[]",
    '{"name":"a",}',
    "{'name':1}",
    "\ufeff{}",
    "{}{}",
    "{}\u0000",
  ].map((body) => () => body),
  () => '{"name":"a","name":["b"],"email":1,"email":"x"}',
  () => '{"__proto__":{"name":"x"},"name":"y"}',
  () => "[".repeat(200_000),
  () => '{"a":'.repeat(100_000),
  () => bytes(0x7b, 0xff, 0xfe, 0x7d),
  () => bytes(0xc0, 0x80),
  () => bytes(0x22, 0xed, 0xa0, 0x80, 0x22),
  () => Buffer.from('{"name":"x"}', "utf16le"),
  () => bytes(0x1f, 0x8b, 8, 0, 0, 0, 0, 0),
  () => `{"name":"${"x".repeat(MIB - 11)}"}`,
  () => `{"name":"${"x".repeat(MIB - 10)}"}`,
  () => `{"name":"x"${" ".repeat(MIB)}}`,
];

/** A body that matches no schema. */
export const hostileBody = (random: Random): string | Uint8Array => random.pick(BODIES)();

/** Values for the patterns and formats of the document; a schema's value is chosen among them. */
const SAMPLES = [
  "Ada",
  "ada-2",
  "TOKEN",
  "12345678",
  "local:mini",
  "openai:mock",
  "10.00",
  "0.000001",
  "person@example.com",
  "2030-01-01T00:00:00.000Z",
  "2026-01-31",
  "desc",
];

/** JSON text that matches a schema; with `spoil`, some of it is replaced. */
export function valueFor(given: Json, document: OpenApi, random: Random, spoil: number, depth = 0): string {
  if (spoil > 0 && random.chance(spoil)) return hostileValue(random);
  const again = (schema: Json): string => valueFor(schema, document, random, spoil, depth + 1);
  if (typeof given.$ref === "string")
    return again(document.components.schemas[given.$ref.split("/").at(-1) ?? ""] ?? {});
  if (given.const !== undefined) return JSON.stringify(given.const);
  if (Array.isArray(given.enum)) return JSON.stringify(random.pick(given.enum));
  const options = given.anyOf ?? given.oneOf;
  if (Array.isArray(options)) return again(random.pick(options));
  const type = Array.isArray(given.type) ? random.pick<unknown>(given.type) : given.type;
  switch (type) {
    case "string":
      return JSON.stringify(textFor(given, random));
    case "integer":
    case "number":
      return String(random.pick([given.minimum ?? 0, given.maximum ?? 100, 1, 2]));
    case "boolean":
      return String(random.chance(0.5));
    case "array": {
      const count = random.pick([Number(given.minItems ?? 0), 1, 2]);
      return `[${Array.from({ length: count }, () => again((given.items ?? {}) as Json)).join()}]`;
    }
    case "object":
      return objectFor(given, random, spoil, again);
    default:
      return random.pick(["null", '"x"', "1"]);
  }
}

function objectFor(schema: Json, random: Random, spoil: number, again: (schema: Json) => string): string {
  const required = (schema.required ?? []) as string[];
  const members = Object.entries((schema.properties ?? {}) as Record<string, Json>)
    .filter(([name]) => (required.includes(name) ? !random.chance(spoil / 2) : random.chance(0.5)))
    .map(([name, value]) => `${JSON.stringify(name)}:${again(value)}`);
  if (schema.properties === undefined) {
    const names = spoil > 0 ? ["A", "SKILL.md", "__proto__", "a/b.md", "../x", "", "A", "a"] : ["A", "B_2"];
    const more = (
      typeof schema.additionalProperties === "object" ? schema.additionalProperties : { type: "string" }
    ) as Json;
    for (let left = random.below(4); left >= 0; left--)
      members.push(`${JSON.stringify(random.pick(names))}:${again(more)}`);
  }
  if (random.chance(spoil)) members.push(`${JSON.stringify(hostileText(random))}:${hostileValue(random)}`);
  return `{${members.join()}}`;
}

function textFor(schema: Json, random: Random): string {
  const fits = typeof schema.pattern === "string" ? new RegExp(schema.pattern, "u") : null;
  const format: Record<string, string> = { email: "person@example.com", "date-time": "2030-01-01T00:00:00.000Z" };
  const formatted = format[String(schema.format)];
  if (formatted !== undefined) return formatted;
  if (fits) return random.pick([...SAMPLES.filter((sample) => fits.test(sample)), "a"]);
  const { minLength = 0, maxLength = 40 } = schema as { minLength?: number; maxLength?: number };
  const length = random.chance(0.7) ? Math.max(minLength, 5) : random.pick([minLength, maxLength]);
  return random.pick(["x", "é", "字", "💥"]).repeat(length);
}
