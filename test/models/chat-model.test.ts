import { afterEach, expect, spyOn, test } from "bun:test";
import { createChatModel } from "../../src/models/local/chat-model.ts";
import type { Generate, ModelToHost } from "../../src/models/local/protocol.ts";
import { SAMPLING } from "../../src/models/local/sampling.ts";
import type { Stepper } from "../../src/models/local/stepper.ts";
import type { Tokenizer } from "../../src/models/local/tokenizer.ts";

const clock = spyOn(performance, "now");
afterEach(() => clock.mockRestore());

test("while an answer has nothing to show, the host is told now and then that the process works", async () => {
  let now = 0;
  clock.mockImplementation(() => now);
  const sent: [at: number, type: ModelToHost["type"]][] = [];
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const model = createChatModel({
    tokenizer: {} as Tokenizer,
    stepper: { copyRows() {}, discard() {} } as unknown as Stepper,
    slots: 1,
    cacheTokens: 10,
    contextTokens: 100,
    sampling: SAMPLING,
    send(message) {
      sent.push([now, message.type]);
      if (message.type === "done") end();
    },
    // As a text that is composed for a file is written: each turn shows nothing.
    useTools: () => ({
      completionTokens: () => 9,
      async takeTurn() {
        now += 300;
        return now < 3_000 ? { text: "" } : { text: "", reason: "tool_calls", call: { name: "write_file", input: {} } };
      },
    }),
  });
  model.generate({
    ...{
      type: "generate",
      id: 1,
      accountId: "a",
      instanceId: "i",
      messages: [],
      maxTokens: 9,
      stop: [],
      guarded: true,
    },
    tools: { question: "", offered: [], isTold: false, made: [] },
  } as Generate);
  await ended;
  expect(sent).toEqual([
    [1_200, "working"],
    [2_400, "working"],
    [3_000, "done"],
  ]);
});
