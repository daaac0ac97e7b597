import { afterAll, expect, test } from "bun:test";
import { workedExamples } from "../../src/lib/worked-examples.ts";
import { chat, collect, never, openLocalEngine, textOf } from "./local-setting.ts";

const { engine, close } = openLocalEngine();
afterAll(close);

/** The answer of a new assistant, in a prompt as runtime/short-prompt.ts writes it. */
async function answerTo(question: string): Promise<string> {
  const messages = [
    { role: "system" as const, content: "You are a friendly, honest assistant.\n\nYour name is Ada." },
    ...workedExamples(question).exchanges.flatMap(([user, assistant]) => [
      { role: "user" as const, content: user },
      { role: "assistant" as const, content: assistant },
    ]),
    { role: "user" as const, content: question },
  ];
  return textOf(await collect(engine.stream(chat("", { messages, maxTokens: 150 }), never)));
}

test("the real model lists as many things as were asked for", async () => {
  const lines = (await answerTo("Name four trees")).split("\n").filter((line) => line !== "");
  expect(lines.map((line) => line.slice(0, 2))).toEqual(["1.", "2.", "3.", "4."]);
});

test("the real model writes code between its marks, in the language that was asked for", async () => {
  const code = /^```python\n(def [\s\S]+)\n```/.exec(await answerTo("Write a Python function that adds two numbers"));
  expect(code?.[1]).toContain("return");
});

test("the real model writes an e-mail from its subject on", async () => {
  expect(await answerTo("Write an email to cancel my gym membership")).toMatch(/^Subject: .+\n\n/);
});

test("the real model recommends kinds of films, and no titles", async () => {
  expect(await answerTo("Recommend a film")).toMatch(/^I recommend films in genres such as \p{Ll}/u);
});

test("what is true of it is said in full, and nothing is added", async () => {
  expect(await answerTo("Are you ChatGPT?")).toBe(
    "No, I am Ada. I run on SmolLM2, a small language model on this host.",
  );
  expect(await answerTo("thanks!")).toBe("You are welcome!");
  expect(await answerTo("I feel so lonely today.")).toMatch(/^I am sorry to hear that\. What has made you [^.]*\?$/);
});
