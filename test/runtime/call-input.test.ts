import { expect, test } from "bun:test";
import fc from "fast-check";
import { canonical, inputAsJson, inputAsText } from "../../src/runtime/call-input.ts";

/** The input after being stored in an event. */
const kept = (text: string): unknown => JSON.parse(JSON.stringify(inputAsJson(text)));

test("an input is shown as JSON if it is JSON, else as its text", () => {
  expect(inputAsJson('{ "a": [1] }')).toEqual({ a: [1] });
  expect(inputAsJson("{no JSON")).toBe("{no JSON");
  const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
  expect(inputAsJson(deep)).toBe(deep);
  // A JSON string too: otherwise it could not be told from text that is not JSON.
  expect(inputAsJson('"a"')).toBe('"a"');
});

test("an input read back from an event means what the model wrote", () => {
  const nested = fc.json().map((text) => JSON.stringify(text));
  fc.assert(
    fc.property(fc.oneof(fc.json(), nested, fc.string({ unit: "binary" }), fc.constant("")), (text) => {
      const input = canonical(text);
      expect(inputAsText(kept(input))).toBe(input);
      expect(inputAsJson(input)).toEqual(kept(text) as object);
    }),
  );
});
