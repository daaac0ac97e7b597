/** How `roost chat` reads what a person types, on a real terminal. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { MockModelServer } from "../support/mock-model-server.ts";
import { type Home, onTerminal, run, serveSignedIn, type Terminal } from "./command-line.ts";
import { shownOn } from "./screen.ts";

let home: Home;
let mock: MockModelServer;
let stop: () => Promise<void>;
beforeAll(async () => {
  ({ home, mock, stop } = await serveSignedIn());
  await run(home, ["instance", "create", "Hello"]);
});
afterAll(() => stop());

let made = 0;
/** A chat with a new agent, at its first prompt. */
async function chatting(cols?: number, env: Record<string, string> = {}): Promise<Terminal> {
  const slug = `agent-${++made}`;
  const words = ["agent", "create", "Hello", slug, "--slug", slug, "--display-name", "Ada"];
  expect((await run(home, words)).code).toBe(0);
  const terminal = onTerminal(home, ["chat", "Hello", slug], env, cols);
  await terminal.until(/you> /);
  return terminal;
}

const lastAsked = (): string => mock.requests.at(-1)?.body.messages.at(-1).content;
const promptOf = (terminal: Terminal, cols: number): string => {
  const { rows } = shownOn(terminal.screen(), cols);
  return rows.slice(rows.findLastIndex((row) => row.startsWith("you> "))).join("\n");
};

test("what is pasted in pieces waits in the line, whole, until Enter sends it", async () => {
  await using terminal = await chatting();
  const asked = mock.requests.length;
  terminal.type("Look: \x1b[200~alpha 1\nalpha 2\nal");
  terminal.type("pha 3\r\nalpha 4\x1b[201~");
  await terminal.until(/alpha 4/);
  expect(promptOf(terminal, 120)).toBe("you> Look: alpha 1\nalpha 2\nalpha 3\nalpha 4");
  expect(mock.requests.length).toBe(asked);
  terminal.type(", please\r");
  await terminal.until(/mock model/);
  expect(lastAsked()).toContain("Look: alpha 1\nalpha 2\nalpha 3\nalpha 4, please");
});

test("a long paste is one message", async () => {
  await using terminal = await chatting();
  const text = Array.from({ length: 400 }, (_, n) => `line ${n} of a long paste`).join("\n");
  terminal.type(`\x1b[200~${text}\x1b[201~`);
  await terminal.until(/line 399 of a long paste/);
  terminal.type("\r");
  await terminal.until(/mock model/);
  expect(lastAsked()).toContain(text);
  expect(shownOn(terminal.screen(), 120).rows.filter((row) => row.includes("of a long paste"))).toHaveLength(400);
});

test("escape sequences that are pasted do not reach the terminal", async () => {
  await using terminal = await chatting();
  terminal.type("\x1b[200~a\x1b]0;title\x07b\x1b[2Jc\x1b[201~");
  await terminal.until(/c/);
  expect(promptOf(terminal, 120)).toBe("you> a]0;titleb[2Jc");
  expect(terminal.screen()).not.toContain("\x1b]");
  expect(terminal.screen()).not.toContain("\x1b[2J");
});

test("a message longer than the line can be edited everywhere in it", async () => {
  await using terminal = await chatting(60);
  terminal.type(`${"x".repeat(80)}y`);
  await terminal.until(/y/);
  terminal.type("\x1b[D".repeat(5));
  terminal.type("Z");
  await terminal.until(/Z/);
  await terminal.until(/y/);
  expect(promptOf(terminal, 60)).toBe(`you> ${"x".repeat(54)}\n${"x".repeat(22)}Zxxxxy`);
  terminal.type("\x1b[HA");
  await terminal.until(/A[\s\S]*y\u001b\[1A\u001b\[7G/);
  expect(promptOf(terminal, 60)).toBe(`you> A${"x".repeat(53)}\n${"x".repeat(23)}Zxxxxy`);
  const { row, column, rows } = shownOn(terminal.screen(), 60);
  expect([rows.length - row, column]).toEqual([2, 6]);
  terminal.type("\x1b[F\x15now");
  await terminal.until(/now/);
  expect(promptOf(terminal, 60).trimEnd()).toBe("you> now");
});

test("a narrower window shows the same message", async () => {
  await using terminal = await chatting(60);
  terminal.type("A message of some length in 日本語");
  await terminal.until(/日本語/);
  const before = terminal.screen().length;
  terminal.resize(20);
  await terminal.until(/語/);
  expect(shownOn(`\n\n\n${terminal.screen().slice(before)}`, 20).rows.filter(Boolean)).toEqual([
    "you> A message of s",
    "ome length in 日本",
    "語",
  ]);
});

/** A chat whose first message is sent and not answered until `answer` is called. */
async function answering() {
  const terminal = await chatting();
  const going = Promise.withResolvers<void>();
  mock.script({ kind: "text", tokens: ["Once ", "upon"], after: going.promise });
  const arrived = mock.arrival(({ body }) => JSON.stringify(body.messages.at(-1)).includes("A story"));
  // Of a terminal that marks what is pasted, lines that come together were typed.
  terminal.type("A \x1b[200~story\x1b[201~\r");
  await arrived;
  return { terminal, answer: going.resolve, [Symbol.asyncDispose]: () => terminal[Symbol.asyncDispose]() };
}

test("each line sent during an answer is a message of its own, and the rest waits in the line", async () => {
  await using chat = await answering();
  const { terminal, answer } = chat;
  terminal.type("second\rthird\rnot yet");
  answer();
  await terminal.until(/Once upon[\s\S]*second[\s\S]*mock model[\s\S]*third[\s\S]*mock model[\s\S]*not yet/);
  expect(shownOn(terminal.screen(), 120).rows.slice(1)).toEqual([
    "you> A story",
    "Ada> Once upon",
    "you> second",
    "Ada> Hello, I am the mock model.",
    "you> third",
    "Ada> Hello, I am the mock model.",
    "you> not yet",
  ]);
  expect(lastAsked()).toContain("third");
});

test("after an answer that is stopped, what was sent during it waits in the line", async () => {
  await using chat = await answering();
  const { terminal } = chat;
  terminal.type("second\rthird\x03");
  await terminal.until(/· cancelled[\s\S]*second\s+third/);
  const asked = mock.requests.length;
  expect(promptOf(terminal, 120)).toBe("you> second\nthird");
  terminal.type("\r");
  await terminal.until(/mock model/);
  expect([mock.requests.length, lastAsked()]).toEqual([asked + 1, expect.stringContaining("second\nthird")]);
});

test("Ctrl-D during an answer leaves after it", async () => {
  await using chat = await answering();
  chat.terminal.type("\x04");
  chat.answer();
  expect(await chat.terminal.exited).toBe(0);
  expect(chat.terminal.screen()).toContain("Once upon");
});

test("the terminal no longer marks what is pasted, however the chat ends", async () => {
  const marks = ({ screen }: Terminal) =>
    screen()
      .match(/\u001b\[\?2004[hl]/g)
      ?.at(-1);
  const isMarked = "\u001b[?2004h";
  const ends: [(terminal: Terminal) => void, number][] = [
    [(terminal) => terminal.type("\x04"), 0],
    [(terminal) => terminal.type("\x03\x03"), 0],
    [(terminal) => terminal.type("/quit\r"), 0],
    [(terminal) => terminal.kill("SIGTERM"), 128 + 15],
    [(terminal) => terminal.kill("SIGHUP"), 128 + 1],
  ];
  for (const [end, code] of ends) {
    await using terminal = await chatting();
    expect(marks(terminal)).toBe(isMarked);
    end(terminal);
    expect([await terminal.exited, marks(terminal)]).toEqual([code, "\u001b[?2004l"]);
  }
  await using chat = await answering();
  expect(marks(chat.terminal)).toBe(isMarked);
  chat.terminal.kill("SIGTERM");
  expect([await chat.terminal.exited, marks(chat.terminal)]).toEqual([128 + 15, "\u001b[?2004l"]);
});

test("a question is answered only by who has seen it, and what was sent before it waits in the line", async () => {
  await using chat = await answering();
  const { terminal, answer } = chat;
  terminal.type("/clear\ry\r");
  answer();
  await terminal.until(/Delete this conversation with its messages\? \[y\/N\]\s+[\s\S]*you> /);
  terminal.type("n\r");
  await terminal.until(/Nothing was changed[\s\S]*you> .*y/);
  expect(promptOf(terminal, 120)).toBe("you> y");
  terminal.type("\x15/clear\r");
  await terminal.until(/\[y\/N\]\s+[\s\S]*you> /);
  terminal.type("yes\r");
  await terminal.until(/This is a new conversation/);
});

test("Ctrl-C drops what is in the line, and leaves only where there is nothing", async () => {
  await using terminal = await chatting();
  terminal.type("one\x03");
  await terminal.until(/to leave[\s\S]*you> /);
  terminal.type("two\x03");
  await terminal.until(/to leave[\s\S]*you> /);
  terminal.type("\x03");
  expect(await terminal.exited).toBe(0);
});

test("a message that the server refuses is in the line again, and in the history with its lines", async () => {
  await using terminal = await chatting();
  const long = `one\ntwo${"x".repeat(32_000)}`;
  terminal.type(`\x1b[200~${long}\x1b[201~`);
  terminal.type("\r");
  await terminal.until(/at most 32000[\s\S]*xxx/);
  terminal.type("\x15short \x1b[200~one\n  two\x1b[201~\r");
  await terminal.until(/mock model[\s\S]*you> /);
  terminal.type("\x1b[A!\r");
  await terminal.until(/mock model[\s\S]*you> /);
  expect(lastAsked()).toContain("short one\n  two!");
});

test("Ctrl-Z where nobody controls jobs changes nothing", async () => {
  await using terminal = await chatting();
  terminal.type("ab\x1a");
  await terminal.until(/2004l[\s\S]*you> .*ab/);
  terminal.type("c\r");
  await terminal.until(/mock model/);
  expect(lastAsked()).toContain("abc");
});

test("a chat ends with its window, also during an answer", async () => {
  await using terminal = await chatting();
  terminal.type("Hel");
  expect(await terminal.hangUp()).toBe(128 + 1);
  await using chat = await answering();
  expect(await chat.terminal.hangUp()).toBe(128 + 1);
});

test("a terminal that knows no sequences gets none, and what is typed is sent", async () => {
  await using terminal = await chatting(120, { TERM: "dumb" });
  terminal.type("Hi, Bob\x7f\x7f\x7fAda\r");
  await terminal.until(/mock model[\s\S]*you> /);
  expect(lastAsked()).toContain("Hi, Ada");
  expect(terminal.screen()).not.toContain("\x1b");
});
