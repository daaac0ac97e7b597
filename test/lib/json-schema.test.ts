import { expect, test } from "bun:test";
import { z } from "zod";
import { createSchemaCheck, type JsonSchema, requireSchema, schemaFault } from "../../src/lib/json-schema.ts";

const person = {
  type: "object",
  properties: { name: { type: "string", minLength: 1 }, age: { type: ["integer", "null"], minimum: 0 } },
  required: ["name"],
  additionalProperties: false,
};
const tree = {
  $ref: "#/$defs/node",
  $defs: { node: { type: "object", properties: { next: { $ref: "#/$defs/node" } } } },
};

test.each<[JsonSchema, unknown, string | null]>([
  [person, { name: "Ada", age: 36 }, null],
  [person, { name: "Ada", age: null }, null],
  [person, { age: 1 }, "name is missing"],
  [person, { name: "" }, "name has 0 characters"],
  [person, { name: "Ada", age: 1.5 }, "age is not integer or null"],
  [person, { name: "Ada", age: -1 }, "age is out of its range"],
  [person, { name: "Ada", more: 1 }, "more is not allowed"],
  [person, JSON.parse('{"name":"Ada","__proto__":1}'), "__proto__ is not allowed"],
  [person, [], "the value is not object"],
  [{ enum: ["a", 1, null] }, null, null],
  [{ enum: ["a", { b: 1 }] }, { b: 1 }, null],
  [{ enum: ["a"] }, "b", 'the value is none of ["a"]'],
  [{ const: 2 }, 3, "the value is not 2"],
  [{ type: "array", items: { type: "string" }, maxItems: 2 }, ["a", 1], "[1] is not string"],
  [{ type: "array", maxItems: 1 }, [1, 2], "the value has 2 items"],
  [{ type: "array", uniqueItems: true }, [1, 1], "the value has the same item twice"],
  [
    { uniqueItems: true },
    [
      { a: 1, b: [{ c: 1, d: 2 }] },
      { b: [{ d: 2, c: 1 }], a: 1 },
    ],
    "the value has the same item twice",
  ],
  [{ uniqueItems: true }, [[1, 2], [2, 1], JSON.parse('{"__proto__":1}'), {}, "1", 1], null],
  [{ prefixItems: [{ type: "string" }], items: false }, ["a", 1], "[1] is not allowed"],
  [{ anyOf: [{ type: "string" }, { type: "number" }] }, true, "the value fits none of anyOf (the value is not string)"],
  [{ oneOf: [{ type: "number" }, { type: "integer" }] }, 1, "the value fits 2 of oneOf, not one"],
  [{ allOf: [{ type: "number" }, { maximum: 3 }] }, 4, "the value is out of its range"],
  [{ not: { type: "null" } }, null, "the value fits what it must not"],
  [{ type: "number", multipleOf: 0.1 }, 0.3, null],
  [{ multipleOf: 0.01 }, 1_000_000.19, null],
  [{ multipleOf: 0.01 }, -99_999_999.99, null],
  [{ multipleOf: 0.01 }, 1_000_000.195, "the value is out of its range"],
  [{ multipleOf: 1 }, 1e-10, "the value is out of its range"],
  [{ multipleOf: 1e-10 }, 3e-10, null],
  [{ multipleOf: 10 }, 1e300, null],
  [{ multipleOf: 2.5 }, 0, null],
  [{ multipleOf: 1 }, Number.POSITIVE_INFINITY, "the value is out of its range"],
  [tree, { next: { next: { next: 5 } } }, "next.next.next is not object"],
  [{ type: "object", additionalProperties: { type: "number" } }, { a: "x" }, "a is not number"],
  [{ items: [{ type: "string" }, { type: "number" }], additionalItems: false }, ["a", 1], null],
  [{ items: [{ type: "string" }, { type: "number" }], additionalItems: false }, ["a", 1, 2], "[2] is not allowed"],
  [{ items: [{ type: "string" }] }, [1], "[0] is not string"],
  [{ properties: { to: { propertyNames: { enum: ["a", "b"] } } } }, { to: { b: 1 } }, null],
  [{ properties: { to: { propertyNames: { enum: ["a"] } } } }, { to: { b: 1 } }, 'the name to.b is none of ["a"]'],
  [{ propertyNames: { type: "string", maxLength: 2 } }, { long: 1 }, "the name long has 4 characters"],
  [{ type: "string", pattern: "^(a+)+$", format: "email", contentEncoding: "base64" }, `${"a".repeat(50)}!`, null],
])("%j of %j: %p", (schema, value, fault) => {
  expect(schemaFault(schema)).toBeNull();
  expect(createSchemaCheck(schema)(value)).toBe(fault);
});

test.each<[unknown, string]>([
  [[], "schema: expected a JSON Schema"],
  [{ type: "thing" }, "schema.type: expected one of"],
  [{ properties: { a: { if: {} } } }, "schema.properties.a: the keyword if is not supported"],
  [{ patternProperties: { "^a": {} } }, "schema: the keyword patternProperties is not supported"],
  [{ items: [{ type: "thing" }] }, "schema.items.0.type: expected one of"],
  [{ propertyNames: { type: "thing" } }, "schema.propertyNames.type: expected one of"],
  [{ $ref: "https://example.org/schema" }, "schema.$ref: expected a reference within the schema"],
  [{ $ref: "#amount", $defs: { amount: { $id: "#amount" } } }, "schema.$ref: expected a reference within the schema"],
  [{ $ref: "#/$defs/none" }, "schema.$ref: expected a reference within the schema"],
  [{ anyOf: [] }, "schema.anyOf: expected a list of schemas"],
  [{ required: "a" }, "schema.required: expected a list of names"],
  [{ minLength: -1 }, "schema.minLength: expected a whole number"],
  [{ multipleOf: 0 }, "schema.multipleOf: expected a number"],
  [{ multipleOf: Number.POSITIVE_INFINITY }, "schema.multipleOf: expected a number"],
  [Array.from({ length: 40 }).reduce((inner) => ({ items: inner }), {}), "expected at most 32 levels"],
])("a schema that cannot be checked is refused, and not in part ignored: %j", (schema, fault) => {
  expect(schemaFault(schema)).toContain(fault);
});

test.each(["draft-2020-12", "draft-7"] as const)("what zod writes of everyday types can be checked: %s", (target) => {
  const given = {
    email: "ada@example.com",
    id: "0190f5e2-c4a8-7b3d-8e1f-6a2b4c5d7e90",
    at: "2026-11-28T12:00:00Z",
    day: "2026-11-28",
    code: "AB",
    url: "https://example.com",
    file: "aGk=",
    counts: { a: 1 },
    moods: { glad: true, sad: false },
    pair: ["a", 1],
    kind: { type: "one", value: 1 },
    size: 3,
    note: null,
  };
  const schema = z.toJSONSchema(
    z.object({
      email: z.email(),
      id: z.uuid(),
      at: z.iso.datetime(),
      day: z.iso.date(),
      code: z.string().regex(/^[A-Z]+$/),
      url: z.url(),
      file: z.base64(),
      counts: z.record(z.string(), z.number()),
      moods: z.record(z.enum(["glad", "sad"]), z.boolean()),
      pair: z.tuple([z.string(), z.number()]),
      kind: z.discriminatedUnion("type", [z.object({ type: z.literal("one"), value: z.int() })]),
      size: z.int().positive(),
      note: z.string().nullish(),
    }),
    { target },
  ) as JsonSchema;
  expect(schemaFault(schema)).toBeNull();
  const check = createSchemaCheck(schema);
  expect(check(given)).toBeNull();
  expect(check({ ...given, pair: ["a", "b"] })).toBe("pair[1] is not number");
  expect(check({ ...given, counts: { a: "1" } })).toBe("counts.a is not number");
  expect(check({ ...given, moods: { angry: true, glad: true, sad: true } })).toStartWith(
    "the name moods.angry is none",
  );
});

test("a schema that leads back to itself, or multiplies, is checked in a bounded time", () => {
  const itself = { anyOf: [{ $ref: "#" }, { type: "null" }] };
  expect(createSchemaCheck(itself)(1)).toBe("it is too much to check");
  const level = (depth: number): JsonSchema =>
    depth === 0 ? { type: "null" } : { anyOf: Array.from({ length: 8 }, () => level(depth - 1)) };
  expect(createSchemaCheck(level(6))(1)).not.toBeNull();
});

const numbers = Array.from({ length: 3_000 }, (_, index) => index);
const names = numbers.map((number) => `n${number}`);
test.each<[string, JsonSchema, unknown]>([
  ["unique items", { uniqueItems: true }, numbers],
  ["a large constant", { const: numbers }, numbers],
  ["many values", { enum: [...names, "other"] }, "other"],
  ["many required members", { required: names.slice(0, 1_000) }, Object.fromEntries(names.map((name) => [name, 1]))],
  ["many members", { type: "object" }, Object.fromEntries(names.map((name) => [name, 1]))],
  ["a long text", { maxLength: 1_000_000 }, "x".repeat(100_000)],
])("what is large counts as many steps, since it is looked at as often: %s", (_, once, value) => {
  const often = (times: number): JsonSchema => ({
    $defs: { once },
    allOf: Array(times).fill({ $ref: "#/$defs/once" }),
  });
  expect(createSchemaCheck(often(10))(value)).toBeNull();
  expect(createSchemaCheck(often(3_000))(value)).toBe("it is too much to check");
});

const tooMuch = { allOf: Array(3_000).fill({ const: numbers }) };
test.each<[string, JsonSchema]>([
  ["not", { not: tooMuch }],
  ["not within not", { not: { not: tooMuch } }],
  ["oneOf", { oneOf: [tooMuch, { type: "array" }] }],
  ["anyOf", { anyOf: [tooMuch, { type: "array" }] }],
  ["not, of a schema that leads back to itself", { not: { $ref: "#" } }],
])("what is too much to check does not fit, whatever it is part of: %s", (_, schema) => {
  expect(schemaFault(schema)).toBeNull();
  expect(createSchemaCheck(schema)(numbers)).toBe("it is too much to check");
});

test("a schema over 16 KiB is refused", () => {
  expect(() => requireSchema({ description: "x".repeat(16_384) }, "output.schema")).toThrow("output.schema: expected");
});
