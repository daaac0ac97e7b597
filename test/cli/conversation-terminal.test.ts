import { afterAll, beforeAll, expect, test } from "bun:test";
import type { MockModelServer } from "../support/mock-model-server.ts";
import { askingTool } from "../support/scripted-tools.ts";
import { startTestServer } from "../support/test-server.ts";
import { type Home, onTerminal, run, serveSignedIn } from "./command-line.ts";
import { shownOn } from "./screen.ts";

let home: Home;
let mock: MockModelServer;
let stop: () => Promise<void>;
beforeAll(async () => {
  ({ home, mock, stop } = await serveSignedIn());
  await run(home, ["instance", "create", "Hello"]);
});
afterAll(() => stop());

/** A new agent, so that no test sees another's conversation; its slug. */
let made = 0;
async function makeAgent(): Promise<string> {
  const slug = `agent-${++made}`;
  const words = ["agent", "create", "Hello", slug, "--slug", slug, "--display-name", "Ada"];
  expect((await run(home, words)).code).toBe(0);
  return slug;
}

/** What a terminal shows after this output, without colours. */
const rendered = (written: string, cols = 120): string[] => shownOn(written, cols).rows;

const ESC = String.fromCharCode(27);

test("an error before the first word is shown without the agent's name", async () => {
  const agent = await makeAgent();
  await using terminal = onTerminal(home, ["chat", "Hello", agent]);
  await terminal.until(/you> /);
  mock.script({ kind: "status", status: 400 });
  terminal.type("Hi\r");
  await terminal.until(/roost doctor[\s\S]*you> /);
  const lines = rendered(terminal.screen());
  expect(lines.filter((line) => line.startsWith("roost: "))).toHaveLength(1);
  expect(lines.join("\n")).not.toContain("Ada> ");
  expect(lines.join("\n")).not.toContain("thinking");
});

test("the greeting and errors of a chat wrap at words", async () => {
  const agent = await makeAgent();
  await using terminal = onTerminal(home, ["chat", "Hello", agent], {}, 40);
  await terminal.until(/you> /);
  mock.script({ kind: "status", status: 400 });
  terminal.type("Hi\r");
  await terminal.until(/roost: [\s\S]*you> /);
  const lines = rendered(terminal.screen());
  expect(lines.slice(0, 2)).toEqual(["Ada is listening. /help shows the", "commands, Ctrl-D leaves."]);
  const failure = lines.slice(
    lines.findIndex((line) => line.startsWith("roost: ")),
    -1,
  );
  expect(failure.length).toBeGreaterThan(1);
  for (const line of failure) expect(line.length).toBeLessThan(40);
  expect(failure.join(" ")).toEndWith("; on the host, check the model: roost doctor");
});

test("an error in mid-answer is on a line of its own", async () => {
  const agent = await makeAgent();
  await using terminal = onTerminal(home, ["chat", "Hello", agent]);
  await terminal.until(/you> /);
  mock.script({ kind: "text", tokens: ["Once ", "upon"], ending: "cut" });
  terminal.type("A story\r");
  await terminal.until(/roost: [\s\S]*you> /);
  const lines = rendered(terminal.screen());
  expect(lines).toContain("Ada> Once upon");
  expect(lines.filter((line) => line.startsWith("roost: "))).toHaveLength(1);
});

test("words of a streamed answer are not broken at the terminal's width", async () => {
  const agent = await makeAgent();
  // Pieces that end within words, as a model's do.
  const tokens = [
    "The qui",
    "ck brown f",
    "ox jum",
    "ps over the la",
    "zy dog, and the 日本",
    "語 too, in the even",
    "ing.",
  ];
  mock.script({ kind: "text", tokens, delayMs: 1, ending: "end" });
  await using terminal = onTerminal(home, ["chat", "Hello", agent], {}, 24);
  await terminal.until(/you> /);
  terminal.type("Tell\r");
  await terminal.until(/ing\.[\s\S]*you> /);
  const lines = rendered(terminal.screen(), 24);
  const from = lines.findIndex((line) => line.startsWith("Ada> "));
  expect(lines.slice(from, from + 4)).toEqual([
    "Ada> The quick brown",
    "fox jumps over the lazy",
    "dog, and the 日本語",
    "too, in the evening.",
  ]);
});

test("a resumed chat shows its last messages, dim and wrapped at the terminal's width", async () => {
  const agent = await makeAgent();
  for (let n = 1; n <= 4; n++) await run(home, ["send", "Hello", agent, `Question ${n} of a person with many words`]);
  await using terminal = onTerminal(home, ["chat", "Hello", agent], {}, 40);
  await terminal.until(/is listening[\s\S]*you> /);
  const lines = rendered(terminal.screen(), 40);
  expect(lines.slice(0, 4)).toEqual([
    "…",
    "you> Question 2 of a person with many",
    "  words",
    "Ada> Hello, I am the mock model.",
  ]);
  expect(terminal.screen()).toContain(`${ESC}[2myou> Question 4 of a person with many`);
  expect(terminal.screen()).not.toContain("Question 1");
});

test("a resumed chat cuts a long message", async () => {
  const agent = await makeAgent();
  await run(home, ["send", "Hello", agent, "-"], {
    input: Array.from({ length: 50 }, (_, n) => `line ${n}`).join("\n"),
  });
  await using terminal = onTerminal(home, ["chat", "Hello", agent]);
  await terminal.until(/is listening[\s\S]*you> /);
  expect(rendered(terminal.screen()).slice(0, 10)).toEqual([
    "you> line 0",
    ...[1, 2, 3, 4, 5, 6, 7].map((n) => `  line ${n}`),
    "  …",
    "Ada> Hello, I am the mock model.",
  ]);
});

test("send takes the message from standard input for -, and refuses an empty one", async () => {
  const agent = await makeAgent();
  const { code } = await run(home, ["send", "Hello", agent, "-"], { input: "two\nlines\n" });
  expect(code).toBe(0);
  expect(mock.requests.at(-1)?.body.messages.at(-1).content).toContain("two\nlines");
  const empty = await run(home, ["send", "Hello", agent, "-"], { input: "\n" });
  expect([empty.code, empty.output]).toEqual([1, ""]);
  expect(empty.errors).toStartWith("roost: the message is empty");
});

test.each([
  [120, (command: string) => [`· to decide: ${command} (send)`]],
  [60, (command: string) => ["· to decide: send", `  ${command}`]],
])(
  "an answer that waits for a decision says so, with the whole command at %d columns, and goes on",
  async (cols, told) => {
    const tool = askingTool("send", "outside");
    const settings = { ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: mock.url };
    const server = await startTestServer(settings, { tools: [tool.tool] });
    try {
      const person = await server.signUp();
      const { key } = (await person.ask("POST", "/v1/auth/keys", {})).body;
      const { instanceId } = (await person.ask("POST", "/v1/instances", { name: "one" })).body;
      const agents = `/v1/instances/${instanceId}/agents`;
      const { agentId } = (await person.ask("POST", agents, { name: "Ada" })).body;
      mock.script({ kind: "tools", calls: [{ name: "send", arguments: { key: "a" } }], text: "I will write. " });
      mock.script({ kind: "text", tokens: ["It is sent."] });
      const words = ["send", instanceId, agentId, "Mail it", "--url", server.url, "--key", key];
      await using terminal = onTerminal(home, words, {}, cols);
      await terminal.until(/to decide/);
      const [run] = (await person.ask("GET", `${agents}/${agentId}/runs?status=waiting`)).body.data;
      const { app, foundation } = server;
      foundation.store.transaction(() => app.runs.resume(run.runId, run.waitingFor, "go ahead"));
      expect(await terminal.exited).toBe(0);
      expect(rendered(terminal.screen(), cols).filter((line) => line !== "")).toEqual([
        "I will write.",
        '· send {"key":"a"}',
        ...told(`roost approval show ${run.waitingFor}`),
        '· send {"key":"a"}',
        "It is sent.",
      ]);
    } finally {
      await server.stop();
    }
  },
);

/** A server that starts an answer, never ends it, and reports when it is asked to cancel. */
function startStuckServer() {
  const cancelled = Promise.withResolvers<string>();
  const agentId = `agt_${"0".repeat(32)}`;
  const instanceId = `inst_${"0".repeat(32)}`;
  const events = ["run.queued", "message.delta"]
    .map(
      (type, at) =>
        `id: ${at + 1}\ndata: ${JSON.stringify({ id: at + 1, type, agentId, runId: "run_1", delta: "begun" })}\n\n`,
    )
    .join("");
  const stuck = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    fetch(request) {
      const { pathname } = new URL(request.url);
      if (pathname.endsWith("/cancel")) {
        cancelled.resolve(pathname);
        return new Promise<Response>(() => {});
      }
      if (!pathname.endsWith("/messages")) return Response.json({ agentId, displayName: "Ada" });
      if (request.method === "GET") return Response.json({ data: [], nextCursor: null });
      const body = new ReadableStream({
        start: (controller) => controller.enqueue(new TextEncoder().encode(events)),
      });
      return new Response(body, { headers: { "Content-Type": "text/event-stream" } });
    },
  });
  return {
    words: [instanceId, agentId, "--url", `http://127.0.0.1:${stuck.port}`, "--key", "rst_live_x"],
    cancelled: cancelled.promise,
    [Symbol.asyncDispose]: () => stuck.stop(true),
  };
}

test("Ctrl-C twice during an answer leaves, after cancelling it on the server", async () => {
  await using stuck = startStuckServer();
  await using terminal = onTerminal(home, ["chat", ...stuck.words]);
  await terminal.until(/you> /);
  terminal.type("Hi\r");
  await terminal.until(/begun/);
  terminal.type("\x03");
  expect(await stuck.cancelled).toEndWith("/runs/run_1/cancel");
  terminal.type("\x03");
  expect(await terminal.exited).toBe(0);
});
