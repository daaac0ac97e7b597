import { expect, test } from "bun:test";
import { saysNothing } from "../../src/schedules/duties.ts";

test.each([
  ["", true],
  ["# One\n## Two\n\n\t\n", true],
  ["#\r\n<!-- a -->\r\n<!-- b\n\n- c -->", true],
  ["<!-- never closed\n- call", true],
  ["#tag", false],
  ["- [ ] call", false],
  ["<!-- a --> call", false],
  ["---", false],
])("%j says nothing: %p", (text, nothing) => {
  expect(saysNothing(text)).toBe(nothing);
});
