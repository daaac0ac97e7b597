import { expect, test } from "bun:test";
import { type MessagePart, type ModelMessage, type ModelRequest, messagesIn } from "../../src/models/engine.ts";
import { STANDARD_DIALECT, writeRequest } from "../../src/models/openai/request.ts";

const write = (messages: readonly MessagePart[]): string => {
  const whose = { accountId: "acct_a", instanceId: "inst_a" };
  const request: ModelRequest = { model: "openai:mock", messages, tools: [], ...whose };
  return writeRequest({ ...request, maxTokens: 100 }, "mock", STANDARD_DIALECT);
};

const said = (number: number): ModelMessage =>
  number % 2 === 0
    ? { role: "user", content: `Question ${number}: "why?"\n` }
    : { role: "assistant", content: `Answer ${number}: 木` };

/** A request with its own first and last message, and these between. */
const around = (between: readonly MessagePart[]): MessagePart[] => [
  { role: "system", content: "You are Ada." },
  ...between,
  { role: "user", content: "And now?" },
];

test("messages that are given together are written as they are one by one", () => {
  const parts: MessagePart[] = [];
  for (let round = 0; round < 100; round++) {
    const several = Array.from({ length: round % 10 || 1 }, (_, at) => said(10 * round + at));
    parts.push(round % 3 === 0 ? said(10 * round) : several);
    if (round % 7 === 6) parts.splice(0, 3);
    if (round % 11 === 10) parts.splice(parts.length >> 1, 1);
    expect(write(around(parts))).toBe(write(around(messagesIn(parts))));
  }
});

test("what is given together is written once", () => {
  let reads = 0;
  const several = Array.from({ length: 40 }, (_, at): ModelMessage => {
    const { role, content } = said(at);
    return Object.defineProperty({ role, content } as ModelMessage, "content", {
      enumerable: true,
      get() {
        reads++;
        return content;
      },
    });
  });
  write(around([several]));
  expect(reads).toBe(40);
  write(around([said(1), several]));
  expect(reads).toBe(40);
});
