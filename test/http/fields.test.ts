import { expect, test } from "bun:test";
import { z } from "zod";
import { email, parse } from "../../src/http/fields.ts";
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

test.each([
  [" Ada@Example.ORG ", "ada@example.org"],
  ["Jürgen.ÄPFEL@Bücher.Example", "jürgen.äpfel@xn--bcher-kva.example"],
  ["ΟΔΟΣ@日本.jp", "οδοσ@xn--wgv71a.jp"],
  ["user@xn--bcher-kva.example", "user@xn--bcher-kva.example"],
  ["a@EXAMPLE.com", "a@example.com"],
  ["a@123", "a@123"],
  // Lower-casing these letters would name another mailbox: that of i with a mark, of k, of ß.
  ["İ@example.com", "İ@example.com"],
  ["\u212a@example.com", "\u212a@example.com"],
  ["ẞ@example.com", "ẞ@example.com"],
])("the e-mail %p is compared as %p", (given, compared) => {
  expect(parse(z.object({ email }), { email: given })).toEqual({ email: compared });
  expect(parse(z.object({ email }), { email: compared })).toEqual({ email: compared });
});

test.each([
  "a@ex／a.com",
  "a@b＠c.de",
  "a@ü%41.com",
  "a@ü..com",
  "a@ü_.com",
  "a@xn--a.ü",
  "a@٣.com",
  `a@${"ü".repeat(250)}.com`,
])("the e-mail %p has no domain in ASCII, and is refused", (given) => {
  expect(() => parse(z.object({ email }), { email: given })).toThrow("email: expected a valid e-mail address");
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
