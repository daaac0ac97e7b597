import { afterAll, expect, test } from "bun:test";
import { chat, collect, never, openLocalEngine, textOf } from "./local-setting.ts";

const { engine, close } = openLocalEngine();
afterAll(close);

test("an answer comes token by token and ends with usage and a reason", async () => {
  const events = await collect(engine.stream(chat("What is a library?", { maxTokens: 24 }), never));
  const pieces = events.filter((event) => event.type === "text");
  expect(pieces.length).toBeGreaterThan(10);
  expect(textOf(events)).toMatch(/librar/i);
  expect(events.slice(-2)).toEqual([
    { type: "usage", promptTokens: expect.any(Number), completionTokens: 24 },
    { type: "finish", reason: "length" },
  ]);
});
