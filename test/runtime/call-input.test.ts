import { expect, test } from "bun:test";
import fc from "fast-check";
import { canonical, inputAsJson, inputAsText } from "../../src/runtime/call-input.ts";

/** As an event keeps it. */
const kept = (text: string): unknown => JSON.parse(JSON.stringify(inputAsJson(text)));

test("an input is shown as the JSON that it is, else as its text", () => {
  expect(inputAsJson('{ "a": [1] }')).toEqual({ a: [1] });
  expect(inputAsJson("{no JSON")).toBe("{no JSON");
  // A JSON string too: otherwise it could not be told from text that is not JSON.
  expect(inputAsJson('"a"')).toBe('"a"');
});

test("an input comes out of an event as it went in, with the meaning that the model wrote", () => {
  const nested = fc.json().map((text) => JSON.stringify(text));
  fc.assert(
    fc.property(fc.oneof(fc.json(), nested, fc.string({ unit: "binary" }), fc.constant("")), (text) => {
      const input = canonical(text);
      expect(inputAsText(kept(input))).toBe(input);
      expect(inputAsJson(input)).toEqual(kept(text) as object);
    }),
  );
});
