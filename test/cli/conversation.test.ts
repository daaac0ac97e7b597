import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { portOfItsOwn } from "../crash/dying-server.ts";
import { type MockModelServer, startMockModelServer } from "../support/mock-model-server.ts";
import { type Home, makeHome, onTerminal, run, type Server, signIn, startServer } from "./command-line.ts";

let home: Home;
let mock: MockModelServer;
let server: Server;
/** One that is killed may lose any other port before it is started again. */
const serve = (port = String(portOfItsOwn())) =>
  startServer(home, { ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: mock.url }, port);

beforeAll(async () => {
  home = makeHome();
  mock = startMockModelServer();
  server = await serve();
  expect((await signIn(home, server.url, "ada@example.org")).code).toBe(0);
  await run(home, ["instance", "create", "Hello"]);
});
afterAll(async () => {
  await server.stop();
  await mock.stop();
  home.remove();
});

/** A new agent, so that no test sees another's conversation; its slug. */
let made = 0;
async function makeAgent(): Promise<string> {
  const slug = `agent-${++made}`;
  const { code } = await run(home, [
    "agent",
    "create",
    "Hello",
    `Agent ${made}`,
    "--slug",
    slug,
    "--display-name",
    "Ada",
  ]);
  expect(code).toBe(0);
  return slug;
}
const HELLO = "Hello, I am the mock model.";
const requests = () => mock.requests.length;

test("a pipe gets only the answer's text, --json its record", async () => {
  const agent = await makeAgent();
  expect(await run(home, ["send", "Hello", agent, "Hi"])).toMatchObject({ code: 0, output: `${HELLO}\n`, errors: "" });
  expect((await run(home, ["send", "Hello", agent, "Hi", "--json"])).json()).toMatchObject({
    messageId: expect.stringMatching(/^msg_/),
    role: "agent",
    message: HELLO,
    finishReason: "stop",
  });
});

test("a terminal shows the answer as it streams, without its control characters", async () => {
  const agent = await makeAgent();
  const esc = String.fromCharCode(27);
  mock.script({ kind: "text", tokens: ["one", `${esc}[2J two`, " three"], delayMs: 50, ending: "end" });
  await using terminal = onTerminal(home, ["send", "Hello", agent, "Count"]);
  await terminal.until(/one/);
  await terminal.until(/two three/);
  expect(await terminal.exited).toBe(0);
  expect(terminal.screen()).not.toContain(`${esc}[2J`);
});

test("a model's failure exits with 1 and the server's message", async () => {
  const agent = await makeAgent();
  mock.script({ kind: "status", status: 400 });
  const ran = await run(home, ["send", "Hello", agent, "Hi"]);
  expect(ran).toMatchObject({ code: 1, output: "" });
  expect(ran.errors).toMatch(/^roost: .+; on the host, check the model: roost doctor\n$/);
});

test("a stopped instance is refused with the next step", async () => {
  await run(home, ["instance", "create", "Not now"]);
  await run(home, ["agent", "create", "Not now", "Ada"]);
  await run(home, ["instance", "stop", "Not now"]);
  const ran = await run(home, ["send", "Not now", "ada", "Hi"]);
  expect(ran.code).toBe(1);
  expect(ran.errors).toEndWith("); roost instance start 'Not now'\n");
});

test("Ctrl-C during an answer cancels it on the server", async () => {
  const agent = await makeAgent();
  mock.script({ kind: "text", tokens: ["begun"], delayMs: 1, ending: "hang" });
  await using terminal = onTerminal(home, ["send", "Hello", agent, "Go on"]);
  await terminal.until(/begun/);
  terminal.type("\x03");
  await terminal.until(/cancelled/);
  expect(await terminal.exited).toBe(1);
  const events = await run(home, ["send", "Hello", agent, "Next"]);
  expect(events.output).toBe(`${HELLO}\n`);
});

test("an answer continues after the server crashes, and the message is stored once", async () => {
  const agent = await makeAgent();
  const before = requests();
  mock.script({ kind: "text", tokens: ["lost"], delayMs: 1, ending: "hang" });
  await using terminal = onTerminal(home, ["send", "Hello", agent, "Survive"]);
  await terminal.until(/lost/);
  await server.kill();
  server = await serve(new URL(server.url).port);
  await terminal.until(/starts again[\s\S]*Hello, I am the mock model\./);
  expect(await terminal.exited).toBe(0);
  expect(requests() - before).toBe(2);
});

test("a person who looks on is told that the connection is lost", async () => {
  const agent = await makeAgent();
  mock.script({ kind: "text", tokens: ["begun"], delayMs: 1, ending: "hang" });
  await using chat = onTerminal(home, ["chat", "Hello", agent]);
  await chat.until(/you> /);
  chat.type("Hi\r");
  await chat.until(/begun/);
  await using events = onTerminal(home, ["events", "Hello", agent, "--after", "0"]);
  await events.until(/message\.delta/);
  await using records = onTerminal(home, ["events", "Hello", agent, "--after", "0", "--json"]);
  await records.until(/message\.delta/);
  await server.kill();
  await chat.until(/^\r\n\S*the connection is lost; trying again for a minute/);
  await events.until(/the connection is lost; trying again for a minute/);
  server = await serve(new URL(server.url).port);
  await Promise.all([chat, events, records].map((terminal) => terminal.until(/Hello, I am|run\.completed/)));
  expect(records.screen()).not.toContain("connection is lost");
});

test("events are shown after the given one, one JSON object per line, and live", async () => {
  const agent = await makeAgent();
  await run(home, ["send", "Hello", agent, "Hi"]);
  await using events = onTerminal(home, ["events", "Hello", agent, "--after", "0", "--json"]);
  await events.until(/"type":"run\.completed"/);
  await run(home, ["send", "Hello", agent, "Again"]);
  await events.until(/"type":"run\.completed"/);
  events.type("\x03");
  expect(await events.exited).toBe(0);
  const lines = events
    .screen()
    .split(/\r?\n/)
    .filter((line) => line.startsWith("{"));
  const ids = lines.map((line) => JSON.parse(line).id);
  expect(ids).toEqual(ids.map((_, at) => at + 1));
});

test("a chat over pipes takes each line for a message, also one that is a command on a terminal", async () => {
  const agent = await makeAgent();
  const lines = ["Hi", "/clear", "/quit", "/help", "How are you?"];
  const ran = await run(home, ["chat", "Hello", agent], { input: `${lines.join("\n\n")}\n` });
  expect(ran).toEqual({ ...ran, code: 0, errors: "", output: `${HELLO}\n`.repeat(lines.length) });
  const asked = JSON.stringify(mock.requests.at(-1)?.body.messages);
  for (const line of lines) expect(asked).toContain(line);
});

test("a chat asks before it clears the conversation", async () => {
  const agent = await makeAgent();
  const count = async () =>
    (await run(home, ["conversation", "list", "Hello", agent, "--json"])).json()[0].messageCount;
  await run(home, ["send", "Hello", agent, "Hi"]);
  await using terminal = onTerminal(home, ["chat", "Hello", agent]);
  await terminal.until(/you> /);
  terminal.type("/clear\r");
  await terminal.until(/Delete this conversation with its messages\? \[y\/N\][\s\S]*you> /);
  terminal.type("n\r");
  await terminal.until(/Nothing was changed[\s\S]*you> /);
  expect(await count()).toBe(2);
  terminal.type("/clear\r");
  await terminal.until(/\[y\/N\][\s\S]*you> /);
  terminal.type("y\r");
  await terminal.until(/new conversation[\s\S]*you> /);
  expect(await count()).toBe(0);
  terminal.type("\x04");
  expect(await terminal.exited).toBe(0);
});

test("a chat on a terminal streams, cancels, clears, remembers and leaves", async () => {
  const agent = await makeAgent();
  await using terminal = onTerminal(home, ["chat", "Hello", agent]);
  await terminal.until(/you> /);
  terminal.type("Hi there\r");
  await terminal.until(/Hello, I am the mock model\.[\s\S]*you> /);

  mock.script({ kind: "text", tokens: ["begun"], delayMs: 1, ending: "hang" });
  terminal.type("go on\r");
  await terminal.until(/begun/);
  terminal.type("\x03");
  await terminal.until(/cancelled[\s\S]*you> /);

  terminal.type("/help\r");
  await terminal.until(/\/clear[\s\S]*you> /);
  terminal.type("/clear\r");
  await terminal.until(/\[y\/N\][\s\S]*you> /);
  terminal.type("y\r");
  await terminal.until(/new conversation[\s\S]*you> /);
  terminal.type("one line\ranother\r");
  await terminal.until(/Hello, I am the mock model\.[\s\S]*you> /);
  const asked = mock.requests.at(-1)?.body.messages;
  expect(asked.at(-1).content).toContain("one line\nanother");
  expect(JSON.stringify(asked)).not.toContain("Hi there");

  terminal.type("\x03");
  await terminal.until(/Ctrl-C again[\s\S]*you> /);
  terminal.type("\x03");
  expect(await terminal.exited).toBe(0);

  const history = join(home.configDir, "chat-history");
  expect(statSync(history).mode & 0o777).toBe(0o600);
  expect(readFileSync(history, "utf8")).toContain("Hi there\n");
  await using next = onTerminal(home, ["chat", "Hello", agent]);
  await next.until(/is listening[\s\S]*you> /);
  next.type("\x1b[A");
  await next.until(/one line\s+another/);
  next.type("\x04");
  next.type("\x15\x04");
  expect(await next.exited).toBe(0);
});

test("a chat continues after an answer that failed", async () => {
  const agent = await makeAgent();
  await using terminal = onTerminal(home, ["chat", "Hello", agent]);
  await terminal.until(/you> /);
  mock.script({ kind: "status", status: 400 });
  terminal.type("Hi\r");
  await terminal.until(/roost doctor[\s\S]*you> /);
  terminal.type("Hi\r");
  await terminal.until(/Hello, I am the mock model\./);
  await terminal.until(/you> /);
  terminal.type("\x04");
  expect(await terminal.exited).toBe(0);
});

test("conversations are started, used, renamed, forked, listed and deleted, by title or id", async () => {
  const agent = await makeAgent();
  const conversation = (...words: string[]) =>
    run(home, ["conversation", words[0] ?? "", "Hello", agent, ...words.slice(1)]);
  const made = await conversation("new", "--title", "Trips");
  expect([made.code, made.output]).toEqual([0, expect.stringMatching(/^Begun Trips {2}conv_[0-9a-f]{32}\n$/)]);
  const chat = (where: string, input: string) =>
    run(home, ["chat", "Hello", agent, "--conversation", where], { input });
  expect(await chat("Trips", "To Oslo\n")).toMatchObject({ code: 0, output: `${HELLO}\n`, errors: "" });
  const sent = await run(home, ["send", "Hello", agent, "And back", "--conversation", "Trips", "--json"]);
  expect(sent.json().conversationId).toBe(made.output.trim().split("  ")[1]);
  expect(await chat("default", "Hi\nAgain\n")).toMatchObject({ code: 0, output: `${HELLO}\n${HELLO}\n` });
  const forked = (await conversation("fork", "Trips", "--json")).json();
  expect(forked).toMatchObject({ title: "Trips", messageCount: 4, isDefault: false });
  const rows = (await conversation("list", "--json")).json();
  expect(rows.map(({ messageCount }: { messageCount: number }) => messageCount)).toEqual([4, 4, 4]);
  expect((await conversation("list")).output).toContain(forked.conversationId);
  await conversation("rename", forked.conversationId, "--title", "default");
  const { output } = await conversation("list");
  expect(output).toMatch(new RegExp(`^   default .*${forked.conversationId}$`, "m"));
  expect(output.match(/^\* {2}default .*conv_/gm)).toHaveLength(1);
  await conversation("rename", forked.conversationId, "--title", "Trips");
  // Two have the title now.
  const twice = await conversation("delete", "Trips", "--yes");
  expect([twice.code, twice.errors]).toEqual([1, expect.stringContaining("2 match conversation")]);
  expect((await conversation("rename", forked.conversationId, "--title", "Holidays")).output).toBe(
    `Renamed to Holidays  ${forked.conversationId}\n`,
  );
  expect((await conversation("delete", "Holidays", "--yes")).output).toBe(`Deleted ${forked.conversationId}.\n`);
  expect((await conversation("delete", "Trips", "--yes")).code).toBe(0);
  const left = (await conversation("list", "--json")).json();
  expect(left.map(({ messageCount }: { messageCount: number }) => messageCount)).toEqual([4]);
  const nowhere = await chat("Nowhere", "Hi\n");
  const list = `to see what there is: roost conversation list Hello ${agent}`;
  expect([nowhere.code, nowhere.errors]).toEqual([1, `roost: there is no conversation "Nowhere"; ${list}\n`]);
  const kept = await conversation("delete", "default", "--yes");
  expect([kept.code, kept.errors]).toEqual([1, expect.stringContaining(`/clear in roost chat Hello ${agent}`)]);
});

test("context shows what the next prompt holds, with the tokens of each part", async () => {
  const agent = await makeAgent();
  await run(home, ["send", "Hello", agent, "Hi"]);
  const { code, output } = await run(home, ["context", "Hello", agent]);
  expect(code).toBe(0);
  expect(output).toMatch(/^SOUL\.md +\d+ +#+$/m);
  expect(output).toMatch(/^messages \(2\) +\d+ +#+$/m);
  expect(output).toMatch(/^\d+ of 32768 tokens, for openai:mock$/m);
  const { pieces } = (await run(home, ["context", "Hello", agent, "--conversation", "default", "--json"])).json();
  expect(pieces.filter(({ kind }: { kind: string }) => kind === "message")).toHaveLength(2);
});
