import { expect, jest, test } from "bun:test";
import { streamAnswer } from "../../src/openai/stream.ts";

const WRITER = { begin: () => "", text: (piece: string) => piece, end: () => "", fail: () => "" };

test("a stream whose answer cannot be begun leaves nothing behind that goes on", () => {
  jest.useFakeTimers();
  try {
    streamAnswer(WRITER, () => {});
    expect(jest.getTimerCount()).toBe(0);
  } finally {
    jest.useRealTimers();
  }
});
