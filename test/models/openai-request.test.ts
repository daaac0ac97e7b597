import { expect, test } from "bun:test";
import type { MessageRange, ModelMessage, ModelRequest } from "../../src/models/engine.ts";
import { STANDARD_DIALECT, writeRequest } from "../../src/models/openai/request.ts";

const write = (messages: ModelMessage[], lasting: MessageRange[]): string => {
  const whose = { accountId: "acct_a", instanceId: "inst_a" };
  const request: ModelRequest = { model: "openai:mock", messages, lasting, tools: [], ...whose };
  return writeRequest({ ...request, maxTokens: 100 }, "mock", STANDARD_DIALECT);
};

const said = (number: number): ModelMessage =>
  number % 2 === 0
    ? { role: "user", content: `Question ${number}: "why?"\n` }
    : { role: "assistant", content: `Answer ${number}: 木` };

/** A request with its own first and last message, and these between. */
const around = (lasting: ModelMessage[]): ModelMessage[] => [
  { role: "system", content: "You are Ada." },
  ...lasting,
  { role: "user", content: "And now?" },
];

test("a conversation that grows, is cut at its start or is changed is written as if none of it had been written before", () => {
  const conversation: ModelMessage[] = [];
  for (let round = 0; round < 200; round++) {
    conversation.push(said(2 * round), said(2 * round + 1));
    if (round % 7 === 6) conversation.splice(0, round % 3 === 0 ? 8 : 3);
    if (round % 11 === 10) conversation[conversation.length >> 1] = said(5_000 + round);
    if (round % 13 === 12) conversation.splice(conversation.length >> 2, 1);
    const messages = around(conversation);
    expect(write(messages, [{ from: 1, to: messages.length - 1 }])).toBe(write(messages, []));
    // Between them a message that is not the same object in the next request.
    const middle = messages.length >> 1;
    const apart = messages.with(middle, said(10_000 + round));
    const ranges = [
      { from: 1, to: middle },
      { from: middle + 1, to: apart.length - 1 },
    ];
    expect(write(apart, ranges)).toBe(write(apart, []));
  }
});

test("what lasts of a conversation is written once", () => {
  let reads = 0;
  const conversation = Array.from({ length: 40 }, (_, at): ModelMessage => {
    const { role, content } = said(at);
    return Object.defineProperty({ role, content } as ModelMessage, "content", {
      enumerable: true,
      get() {
        reads++;
        return content;
      },
    });
  });
  const messages = around(conversation);
  write(messages, [{ from: 1, to: 41 }]);
  expect(reads).toBe(40);
  write(messages, [{ from: 1, to: 41 }]);
  expect(reads).toBe(40);
});
