import { expect, test } from "bun:test";
import { z } from "zod";
import { parse } from "../../src/http/fields.ts";
import { untilFirstWrong } from "../../src/lib/until-first-wrong.ts";
import { startTestServer } from "../support/test-server.ts";

test("a list is checked up to its first wrong element, which the error names", () => {
  let checked = 0;
  const even = z.number().refine((one) => ++checked && one % 2 === 0, { error: "an even number" });
  const schema = z.object({ given: untilFirstWrong(z.array(even).min(1)) });
  expect(parse(schema, { given: [2, 4] })).toEqual({ given: [2, 4] });
  checked = 0;
  const wrong = { given: [2, ...Array.from({ length: 10_000 }, () => 3)] };
  expect(() => parse(schema, wrong)).toThrow("given.1: expected an even number");
  // Once to find it, and once for the error.
  expect(checked).toBe(4);
  expect(() => parse(schema, { given: [] })).toThrow("given: ");
  expect(() => parse(schema, { given: 2 })).toThrow("given: expected array");
});

test("a body of more values than anybody needs is refused before they are checked", async () => {
  const server = await startTestServer();
  await using _ = { [Symbol.asyncDispose]: () => server.stop() };
  const { ask } = await server.signUp();
  const answer = await ask("POST", "/v1/responses", { model: "x", input: Array.from({ length: 50_001 }, () => ({})) });
  expect([answer.status, answer.body.error.message]).toEqual([
    400,
    "body: expected JSON that is nested at most 200 levels deep and has at most 50000 values and 524288 escapes",
  ]);
});
