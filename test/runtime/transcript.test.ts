import { expect, test } from "bun:test";
import { createTranscript } from "../../src/runtime/transcript.ts";

const step = (transcript: ReturnType<typeof createTranscript>, number: number, input: string, output: string) => {
  const call = { id: `call_${number}`, name: "read_file", input };
  transcript.addAnswer(`Step ${number}.`, [call]);
  transcript.addResult(call, { output, isError: false });
};

test("what a transcript holds is bounded: the oldest outputs and inputs give way to marks, the newest stay whole", () => {
  const transcript = createTranscript();
  for (let number = 0; number < 200; number++) {
    step(
      transcript,
      number,
      JSON.stringify({ name: `${number}`, text: "x".repeat(4_000) }),
      `${number} `.repeat(3_000),
    );
    expect(JSON.stringify(transcript.messages).length).toBeLessThan(300_000);
  }
  const { messages } = transcript;
  expect(messages).toHaveLength(400);
  expect(messages.at(-1)).toEqual({ role: "tool", toolCallId: "call_199", content: "199 ".repeat(3_000) });
  expect(messages.at(0)).toEqual({
    role: "assistant",
    content: "Step 0.",
    toolCalls: [{ id: "call_0", name: "read_file", input: '{"leftOut":"4022 characters"}' }],
  });
  expect(messages.at(1)).toEqual({
    role: "tool",
    toolCallId: "call_0",
    content: "[This output is left out here, because newer ones need its room: 6000 characters.]",
  });
});

test("a model with a small context is given no more than it can read", () => {
  const transcript = createTranscript(8_192);
  for (let at = 0; at < 20; at++) {
    transcript.addAnswer("", [{ id: `call_${at}`, name: "read_file", input: `{"name":"${at}"}` }]);
    transcript.addResult(
      { id: `call_${at}`, name: "read_file", input: `{"name":"${at}"}` },
      { output: `${at} `.repeat(2_000), isError: false },
    );
  }
  expect(transcript.messages.map(({ content }) => content).join("").length).toBeLessThan(3 * 8_192);
  expect(transcript.messages.at(-1)?.content).toBe("19 ".repeat(2_000));
});

test("what has been shown stays the same while there is room, and mostly after that: servers cache it", () => {
  const transcript = createTranscript();
  let shown: readonly unknown[] = [];
  let changes = 0;
  for (let number = 0; number < 100; number++) {
    step(transcript, number, `{"number":${number}}`, `${number}`.padEnd(12_000));
    if (JSON.stringify(transcript.messages.slice(0, shown.length)) !== JSON.stringify(shown)) changes++;
    shown = [...transcript.messages];
  }
  // 1,200,000 characters: each change makes room for 50,000.
  expect(changes).toBeWithin(1, 22);
});

test("short outputs are never left out, and a single one that is too long stays whole", () => {
  const transcript = createTranscript();
  step(transcript, 0, "{}", "short");
  step(transcript, 1, "{}", "x".repeat(500_000));
  expect(transcript.messages.map(({ content }) => content.length)).toEqual([7, 5, 7, 500_000]);
});

test("a long run does not keep the texts that gave way", () => {
  const CALLS = 1_000;
  const held = () => {
    Bun.gc(true);
    return process.memoryUsage().heapUsed;
  };
  const transcript = createTranscript();
  const before = held();
  for (let at = 0; at < CALLS; at++) {
    const input = String(at).padEnd(100_000, "x");
    transcript.addAnswer("", [{ id: `call_${at}`, name: "write_file", input }]);
    transcript.addResult({ id: `call_${at}`, name: "write_file", input }, { output: "written", isError: false });
  }
  // All inputs together are 100 MB.
  expect(held() - before).toBeLessThan(20_000_000);
  expect(transcript.messages).toHaveLength(2 * CALLS);
});
