import { expect, test } from "bun:test";
import { createSchemaCheck } from "../../src/lib/json-schema.ts";
import { type GrammarState, mayEnd, mustEnd } from "../../src/models/local/grammar.ts";
import { createJsonGrammar } from "../../src/models/local/json-grammar.ts";
import { seededRandom } from "../../src/models/local/sampling.ts";

const person = {
  type: "object",
  properties: {
    name: { type: "string", maxLength: 12 },
    age: { type: "integer", minimum: 0 },
    tags: { type: "array", items: { enum: ["a", "b", "é"] }, minItems: 1, maxItems: 3 },
    note: { anyOf: [{ type: "string" }, { type: "null" }] },
  },
  required: ["name", "tags"],
  additionalProperties: false,
};
const tree = {
  type: "object",
  properties: { left: { $ref: "#" }, value: { type: "number" } },
  required: ["value"],
  additionalProperties: false,
};

const after = (schema: Record<string, unknown>, text: string): GrammarState | null => {
  const grammar = createJsonGrammar(schema);
  return grammar.after(grammar.start, new TextEncoder().encode(text));
};

test.each<[Record<string, unknown>, string]>([
  [person, '{"name":"Ada","tags":["a","é"]}'],
  [person, '{"name": "A\\"b", "age": 36, "tags": ["b"], "note": null}'],
  [tree, '{"left":{"left":{"value":1},"value":-0.5},"value":20}'],
  [{ type: "object" }, '{"a":1,"b":["x",{}]}'],
  [{ enum: ["one", 2, null] }, "2"],
  [{}, '"anything"'],
  [{ type: "array", items: { type: "string", maxLength: 1 } }, '["é","日","🎉"]'],
  [{ type: "array", items: [{ type: "string" }, { type: "integer" }], additionalItems: false }, '["a",1]'],
  [{ type: "object", propertyNames: { enum: ["a", "b"] }, additionalProperties: { type: "integer" } }, '{"b":1}'],
  [{ type: "object", propertyNames: { type: "string", pattern: "^x" } }, '{"xy":1}'],
  [{ type: "object", required: ["a"], additionalProperties: { type: "integer" } }, '{"a":1}'],
  [{ type: "string", pattern: "^[a-z]+@[a-z]+$", format: "email" }, '"a@b"'],
])("%j may be %s", (schema, text) => {
  const state = after(schema, text);
  expect(state !== null && mayEnd(state)).toBe(true);
  expect(createSchemaCheck(schema)(JSON.parse(text))).toBeNull();
});

test.each<[Record<string, unknown>, string]>([
  [person, "Ada"],
  [person, '{"tags"'],
  [person, '{"name":"Ada","more"'],
  [person, '{"name":"Ada","age":-'],
  [person, '{"name":"Ada","age":1.'],
  [person, '{"name":"Ada","tags":[]'],
  [person, '{"name":"Ada","tags":["c'],
  [person, '{"name":"Ada","tags":["a","a","a",'],
  [person, '{"name":"a line\n'],
  [person, '{"name":"more than twelve'],
  [{ type: "number" }, "01"],
  [{ type: "boolean" }, "tr "],
  [{ type: "string", maxLength: 1 }, '"éé'],
  [{ type: "object", properties: { a: false, b: true } }, '{"a'],
  [{ type: "array", items: [{ type: "string" }], additionalItems: false }, "[1"],
  [{ type: "array", items: [{ type: "string" }], additionalItems: false }, '["a",'],
  [{ type: "object", propertyNames: { enum: ["a", "b"] } }, '{"c'],
  [{ type: "object", required: ["a"], additionalProperties: { type: "integer" } }, '{"a":"'],
])("%j can never begin with %s", (schema, text) => {
  expect(after(schema, text)).toBeNull();
});

test.each([
  ["a byte in the middle of a character without its first", [0x9f]],
  ["an end of the text within a character", [0xf0, 0x9f, 0x22]],
  ["a letter within a character", [0xc3, 0x61]],
  ["a character written in too many bytes", [0xe0, 0x80]],
  ["half of a surrogate pair", [0xed, 0xa0]],
  ["a byte that no character has", [0xff]],
])("a text is never broken by %s", (_, bytes) => {
  const { start, after } = createJsonGrammar({ type: "string" });
  expect(after(start, Uint8Array.of(0x22, ...bytes))).toBeNull();
});

test("each of very many values of an enum may be written", () => {
  const values = Array.from({ length: 2_000 }, (_, at) => `${at}`);
  const states = values.map((value) => after({ enum: values }, `"${value}"`));
  expect(states.filter((state) => state === null || !mustEnd(state))).toEqual([]);
  expect(after({ enum: values }, '"2000')).toBeNull();
});

const texts = (names: string[]) => Object.fromEntries(names.map((name) => [name, { type: "string" }]));

test("each of very many properties may be written, all are left out, and required ones are not", () => {
  const names = Array.from({ length: 500 }, (_, at) => `p${at}`);
  const schema = { type: "object", properties: texts(names) };
  for (const name of names) expect([name, after(schema, `{"${name}":"x"}`)]).toEqual([name, [null]]);
  expect(after(schema, "{}")).toEqual([null]);
  expect(after(schema, '{"p7":"x", "p499":"x"}')).toEqual([null]);
  expect(after(schema, '{"p7":"x","p6"')).toBeNull();
  const strict = { ...schema, required: ["p3", "p40"] };
  expect(after(strict, '{"p2":"x","p3":"x","p39":"x","p40":"x","p400":"x"}')).toEqual([null]);
  for (const wrong of ['{"p4"', '{"p3":"x","p41"', '{"p3":"x"}', "{}"]) expect(after(strict, wrong)).toBeNull();
});

test("however many ways lead to the same, and however many properties begin the same, few are followed at once", () => {
  const levels = Array.from({ length: 9 }, (_, at) => [
    `d${at}`,
    { anyOf: Array(8).fill({ $ref: `#/$defs/d${at + 1}` }) },
  ]);
  const wide = { $defs: { ...Object.fromEntries(levels), d9: { type: "string" } }, $ref: "#/$defs/d0" };
  const long = { type: "object", properties: texts(Array.from({ length: 500 }, (_, at) => `p${at}`)) };
  const mostWays = (schema: Record<string, unknown>, text: string) =>
    Math.max(...Array.from(text, (_, at) => after(schema, text.slice(0, at + 1))?.length ?? 0));
  expect(mostWays(wide, '"any text"')).toBe(1);
  expect(mostWays(long, '{"p1":"x","p20":"y"}')).toBeWithin(2, 16);
});

test("whatever is written at random within the grammar is JSON that fits", () => {
  const alphabet = [...new TextEncoder().encode('{}[]",: ntfabcdegilmorsuv\\0123456789.-é日🎉'), 0xff];
  for (const schema of [person, tree, { type: "object" }, {}]) {
    const check = createSchemaCheck(schema);
    for (let seed = 1; seed <= 60; seed++) {
      const random = seededRandom(seed);
      const grammar = createJsonGrammar(schema);
      const written: number[] = [];
      let state = grammar.start;
      while (!mustEnd(state) && written.length < 4_000 && !(mayEnd(state) && random() < 0.3)) {
        const ways = alphabet.flatMap((byte) => {
          const next = grammar.after(state, Uint8Array.of(byte));
          return next === null ? [] : [{ byte, next }];
        });
        // What closes something is taken often, so that it comes to an end.
        const closing = ways.filter(({ byte }) => '"]}'.includes(String.fromCharCode(byte)));
        const from = closing.length > 0 && random() < 0.5 ? closing : ways;
        const way = from[Math.floor(random() * from.length)];
        if (way === undefined) throw new Error(`nothing may follow ${Buffer.from(written)}`);
        written.push(way.byte);
        state = way.next;
      }
      if (!mayEnd(state)) continue;
      const text = Buffer.from(written).toString();
      expect([text, check(JSON.parse(text))]).toEqual([text, null]);
    }
  }
});
