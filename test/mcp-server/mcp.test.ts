import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { requireOwnOrigin } from "../../src/mcp-server/origin.ts";
import { startMockModelServer } from "../support/mock-model-server.ts";
import { scriptedTool } from "../support/scripted-tools.ts";
import { type Person, startTestServer, type TestServer } from "../support/test-server.ts";

const order = scriptedTool("order", "outside", async ({ key }) => `ordered ${key}`, { defaultPolicy: "ask" });
const mock = startMockModelServer();
let server: TestServer;
/** Whose MCP clients wait for no answer. */
let hasty: TestServer;
let owner: Person;
let instanceId: string;
let agentId: string;
let at: string;
const clients: Client[] = [];

beforeAll(async () => {
  const settings = { ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: mock.url };
  // However busy the machine is, the model answers within an hour.
  server = await startTestServer(settings, { moreTools: [order], mcpWaitMs: 3_600_000 });
  hasty = await startTestServer(settings, { mcpWaitMs: 1 });
  owner = await server.signUp();
  ({ instanceId } = (await owner.ask("POST", "/v1/instances", { name: "home" })).body);
  const agents = `/v1/instances/${instanceId}/agents`;
  const files = { "SOUL.md": "You are Ada.", "notes/today.md": "Buy bread." };
  ({ agentId } = (await owner.ask("POST", agents, { name: "Ada", useDefaults: false, files })).body);
  at = `${agents}/${agentId}`;
});
afterAll(async () => {
  await server.stop();
  await hasty.stop();
  await mock.stop();
});
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
});

const keyOf = async (whose: Person, limits: object = {}): Promise<string> =>
  (await whose.ask("POST", "/v1/auth/keys", limits)).body.key;

/** With `initialize`, as clients of 2025 do; or by the revision of 2026-07-28, which has none. */
type Era = "2025" | "2026-07-28";

async function connect(era: Era, key: string, { url } = server): Promise<Client> {
  const mode = era === "2025" ? "legacy" : { pin: era };
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode } });
  clients.push(client);
  const requestInit = { headers: { Authorization: `Bearer ${key}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL("/v1/mcp", url), { requestInit }));
  return client;
}

async function call(client: Client, name: string, args: Record<string, unknown> = {}) {
  const { isError = false, content, structuredContent, _meta } = await client.callTool({ name, arguments: args });
  // Clients hold it against the schema of the tool's results, and throw away an error that is none of those.
  if (isError) expect(structuredContent).toBeUndefined();
  const [first] = content;
  const text = first?.type === "text" ? first.text : "";
  // biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects and fails where it is not there
  return { isError, text, data: structuredContent as any, error: _meta?.error as any };
}

describe.each(["2025", "2026-07-28"] as const)("a client of the era of %s", (era) => {
  test("finds the tools, each with schemas, a description, and what it may do", async () => {
    const client = await connect(era, await keyOf(owner));
    const { tools } = await client.listTools();
    expect(
      tools.map(({ name, annotations }) => [name, annotations?.readOnlyHint, annotations?.destructiveHint]),
    ).toEqual([
      ["list_agents", true, undefined],
      ["send_message", false, true],
      ["get_run", true, undefined],
      ["list_files", true, undefined],
      ["read_file", true, undefined],
      ["list_approvals", true, undefined],
      ["decide_approval", false, true],
    ]);
    for (const { description = "", inputSchema, outputSchema } of tools) {
      expect(description.length).toBeGreaterThan(40);
      expect([inputSchema.type, outputSchema?.type]).toEqual(["object", "object"]);
    }
    expect(client.getNegotiatedProtocolVersion()).toBe(era === "2025" ? "2025-11-25" : era);
    expect(client.getServerVersion()?.name).toBe("roost");
    // There is no stream on which a change could be told.
    expect(client.getServerCapabilities()?.tools?.listChanged).not.toBe(true);
  });

  test("talks with an agent, and goes on with the conversation", async () => {
    const client = await connect(era, await keyOf(owner));
    // What the last page says is next may be passed on.
    const { data } = await call(client, "list_agents", { cursor: null });
    expect(data).toEqual({ agents: [{ agentId, name: "Ada", instance: "home" }], nextCursor: null });
    const first = await call(client, "send_message", { agentId, message: "Hello!" });
    expect(first).toMatchObject({ isError: false, text: "Hello, I am the mock model." });
    expect(first.data).toMatchObject({ status: "completed", answer: first.text, approvalId: null, error: null });
    const { conversationId, runId } = first.data;
    await call(client, "send_message", { agentId, message: "Do you remember?", conversationId });
    expect(JSON.stringify(mock.requests.at(-1)?.body.messages)).toContain("Hello, I am the mock model.");
    expect((await call(client, "get_run", { agentId, runId })).data).toEqual(first.data);
    expect((await owner.ask("GET", `${at}/runs/${runId}`)).body.status).toBe("completed");
  });

  test("reads the agent's files", async () => {
    const client = await connect(era, await keyOf(owner));
    const { data } = await call(client, "list_files", { agentId });
    expect(data.files.map(({ name }: { name: string }) => name)).toEqual(["SOUL.md", "notes/today.md"]);
    const file = await call(client, "read_file", { agentId, path: "notes/today.md" });
    expect(file).toEqual({
      ...{ isError: false, text: "Buy bread.", error: undefined },
      data: { path: "notes/today.md", text: "Buy bread.", isCut: false },
    });
  });

  test("is told at once that a call waits, and decides about exactly what it was shown", async () => {
    const client = await connect(era, await keyOf(owner, { scopes: ["chat", "approve"] }));
    mock.script({ kind: "tools", calls: [{ name: "order", arguments: { key: era } }] });
    const sent = await call(client, "send_message", { agentId, message: "Order!" });
    expect(sent.data).toMatchObject({ status: "waiting", answer: null });
    const { approvalId, runId } = sent.data;
    const open = (await call(client, "list_approvals")).data.approvals;
    expect(open).toMatchObject([{ approvalId, runId, tool: "order", input: { key: era, method: "GET" } }]);
    const other = { approvalId, decision: "approve", inputHash: "0".repeat(64) };
    expect(await call(client, "decide_approval", other)).toMatchObject({
      isError: true,
      error: { code: "conflict" },
    });
    const { inputHash } = open[0];
    const decided = await call(client, "decide_approval", { approvalId, decision: "approve", inputHash });
    expect(decided).toMatchObject({ isError: false, data: { approvalId, status: "approved" } });
    let status = "";
    while (status !== "completed") ({ status } = (await call(client, "get_run", { agentId, runId })).data);
    expect(JSON.stringify(mock.requests.at(-1)?.body.messages)).toContain(`ordered ${era}`);
  });

  test("gets the answer of an agent that has had a copy of itself work, not the copy's wait", async () => {
    const client = await connect(era, await keyOf(owner));
    const tasks = [{ title: "Count", message: "Count the files." }];
    mock.script(
      { kind: "tools", calls: [{ name: "delegate", arguments: { tasks } }] },
      { kind: "text", tokens: ["Two files."] },
      { kind: "text", tokens: ["There are two."] },
    );
    const sent = await call(client, "send_message", { agentId, message: "Have the files counted." });
    expect(sent).toMatchObject({ text: "There are two.", data: { status: "completed", approvalId: null } });
  });

  test("gets the API's own errors as errors of the tool, with what to do", async () => {
    const client = await connect(era, await keyOf(owner));
    const unknown = await call(client, "send_message", { agentId: `agt_${"0".repeat(32)}`, message: "hi" });
    expect(unknown).toMatchObject({ isError: true, error: { code: "not_found", status: 404 } });
    expect(unknown.text).toBe("not_found: agent not found; list_agents lists them");
    expect(unknown.error.requestId).toBeString();
    for (const [name, args] of [
      ["list_agents", {}],
      ["list_files", { agentId }],
      ["list_approvals", {}],
    ] as const) {
      const { text } = await call(client, name, { ...args, cursor: "x" });
      expect([name, text]).toEqual([name, "invalid_request: cursor: expected the nextCursor of an earlier call"]);
    }
    mock.script({ kind: "status", status: 400 });
    const failed = await call(client, "send_message", { agentId, message: "hi" });
    expect(failed).toMatchObject({ isError: false, data: { status: "failed", error: { code: "model_error" } } });
    expect(failed.text).toContain("model_error");
    const missing = await call(client, "read_file", { agentId, path: "../../master.key" });
    expect(missing.isError).toBe(true);
  });

  test("may do what its key may do, and sees what its key may see", async () => {
    const stranger = await server.signUp();
    const theirs = await connect(era, await keyOf(stranger));
    expect((await call(theirs, "list_agents")).data.agents).toEqual([]);
    for (const [name, more] of [
      ["send_message", { message: "hi" }],
      ["list_files", {}],
      ["read_file", { path: "SOUL.md" }],
    ] as const) {
      expect((await call(theirs, name, { agentId, ...more })).error.code).toBe("not_found");
    }
    const reader = await connect(era, await keyOf(owner, { scopes: ["read"] }));
    expect((await call(reader, "list_files", { agentId })).isError).toBe(false);
    expect((await call(reader, "send_message", { agentId, message: "hi" })).error.code).toBe("forbidden");
    const usual = await connect(era, await keyOf(owner));
    const decision = { approvalId: `appr_${"0".repeat(32)}`, decision: "deny" };
    expect((await call(usual, "decide_approval", decision)).error.code).toBe("forbidden");
    const { body } = await owner.ask("POST", "/v1/instances", { name: "elsewhere" });
    const limited = await connect(era, await keyOf(owner, { instanceId: body.instanceId }));
    expect((await call(limited, "list_agents")).data.agents).toEqual([]);
    expect((await call(limited, "list_files", { agentId })).error.code).toBe("not_found");
  });

  test("gets the run's id when the agent takes longer, and its answer later", async () => {
    const person = await hasty.signUp();
    const { instanceId } = (await person.ask("POST", "/v1/instances", { name: "home" })).body;
    const { agentId } = (await person.ask("POST", `/v1/instances/${instanceId}/agents`, { name: "Ada" })).body;
    const client = await connect(era, await keyOf(person), hasty);
    const { promise, resolve } = Promise.withResolvers<void>();
    mock.script({ kind: "text", tokens: ["At last."], after: promise });
    const sent = await call(client, "send_message", { agentId, message: "Think." });
    expect(sent).toMatchObject({ isError: false, data: { status: "running", answer: null } });
    const { runId } = sent.data;
    expect(sent.text).toContain(`get_run with runId ${runId}`);
    resolve();
    let run = sent;
    while (run.data.answer === null) run = await call(client, "get_run", { agentId, runId });
    expect(run).toMatchObject({ text: "At last.", data: { status: "completed" } });
  });

  test("that hangs up ends the wait, not the run", async () => {
    const client = await connect(era, await keyOf(owner));
    const { promise, resolve } = Promise.withResolvers<void>();
    mock.script({ kind: "text", tokens: ["Late."], after: promise });
    const arrived = mock.arrived(mock.requests.length + 1);
    const abort = new AbortController();
    const sent = client.callTool(
      { name: "send_message", arguments: { agentId, message: "Take your time." } },
      { signal: abort.signal },
    );
    sent.catch(() => undefined);
    await arrived;
    abort.abort();
    expect(await sent.catch(() => "gone")).toBe("gone");
    resolve();
    const newest = async () => (await owner.ask("GET", `${at}/runs`)).body.data[0];
    while ((await newest()).status !== "completed");
    const { data } = (await owner.ask("GET", `${at}/messages?order=desc&limit=1`)).body;
    expect(data[0].message).toBe("Late.");
  });
});

const INITIALIZE = {
  ...{ jsonrpc: "2.0", id: 1, method: "initialize" },
  params: { protocolVersion: "2025-03-26", capabilities: {}, clientInfo: { name: "t", version: "1" } },
};
const post = async (headers: Record<string, string>, body: unknown = INITIALIZE) =>
  fetch(new URL("/v1/mcp", server.url), {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: "application/json, text/event-stream", ...headers },
    body: JSON.stringify(body),
  });

test("the oldest revision is answered in its own words, and so are several messages at once", async () => {
  const Authorization = `Bearer ${await keyOf(owner)}`;
  expect(await (await post({ Authorization })).text()).toContain('"protocolVersion":"2025-03-26"');
  const many = (count: number) =>
    Array.from({ length: count }, (_, id) => ({ jsonrpc: "2.0", id, method: "tools/list" }));
  expect((await post({ Authorization, "MCP-Protocol-Version": "2025-03-26" }, many(2))).status).toBe(200);
  for (const count of [0, 17]) {
    const refused = await post({ Authorization }, many(count));
    expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining("or 1 to 16 of them")]);
  }
});

test("a revision before the oldest is answered with the newest that has `initialize`, and refused in a header", async () => {
  const Authorization = `Bearer ${await keyOf(owner)}`;
  const params = { ...INITIALIZE.params, protocolVersion: "2024-11-05" };
  const begun = await post({ Authorization }, { ...INITIALIZE, params });
  expect(await begun.text()).toContain('"protocolVersion":"2025-11-25"');
  const list = { jsonrpc: "2.0", id: 1, method: "tools/list" };
  const refused = await post({ Authorization, "MCP-Protocol-Version": "2024-11-05" }, list);
  expect([refused.status, await refused.text()]).toEqual([
    400,
    expect.stringContaining("(supported versions: 2025-11-25, 2025-06-18, 2025-03-26)"),
  ]);
});

test.each([
  ["*/*", 200],
  ["application/*, text/*", 200],
  ["text/event-stream, application/json;q=0.9", 200],
  ["application/json", 406],
  ["text/event-stream;q=0, */*", 406],
])("a client has to take both forms of an answer, by name or by range: %s is %d", async (Accept, status) => {
  expect((await post({ Authorization: `Bearer ${await keyOf(owner)}`, Accept })).status).toBe(status);
});

test("no answer may be cached, whatever its form", async () => {
  const Authorization = `Bearer ${await keyOf(owner)}`;
  const cacheOf = async (body: unknown, headers: Record<string, string> = {}) => {
    const answer = await post({ Authorization, ...headers }, body);
    return [answer.status, answer.headers.get("content-type")?.split(";")[0], answer.headers.get("cache-control")];
  };
  const list = { jsonrpc: "2.0", id: 1, method: "tools/list" };
  expect(await cacheOf(INITIALIZE)).toEqual([200, "text/event-stream", "no-store, no-transform"]);
  expect(await cacheOf({ jsonrpc: "2.0", method: "notifications/initialized" })).toEqual([202, undefined, "no-store"]);
  expect(await cacheOf(list, { Accept: "application/json" })).toEqual([406, "application/json", "no-store"]);
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const modern = { "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list" };
  expect(await cacheOf({ ...list, params: { _meta } }, modern)).toEqual([200, "application/json", "no-store"]);
});

test("nobody is served without a key, by a foreign name, or for a page of another origin", async () => {
  const Authorization = `Bearer ${await keyOf(owner)}`;
  const { host } = new URL(server.url);
  expect((await post({})).status).toBe(401);
  expect((await post({ Authorization: "Bearer rst_live_wrong" })).status).toBe(401);
  expect((await post({ Authorization, Host: "rebound.example" })).status).toBe(403);
  expect((await post({ Authorization, Origin: "https://evil.example" })).status).toBe(403);
  expect((await post({ Authorization, Origin: "null" })).status).toBe(403);
  expect((await post({ Authorization, Origin: "http://localhost:1" })).status).toBe(403);
  expect((await post({ Authorization, Origin: `http://${host}` })).status).toBe(200);
  expect((await owner.ask("GET", "/v1/mcp")).status).toBe(405);
});

test("no stream can be kept open", async () => {
  const Authorization = `Bearer ${await keyOf(owner)}`;
  const meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": { name: "t", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const listen = {
    ...{ jsonrpc: "2.0", id: 1, method: "subscriptions/listen" },
    params: { _meta: meta, notifications: { toolsListChanged: true } },
  };
  const headers = { Authorization, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen" };
  const answer = await (await post(headers, listen)).json();
  expect(answer.error.message).toBe("Subscription limit reached");
});

const OWN = ["http://127.0.0.1:7373", "https://roost.example"];

test.each([
  [{ host: "roost.example" }, true],
  [{ host: "192.0.2.7:7373" }, true],
  [{ host: "[2001:db8::1]:7373" }, true],
  [{ host: "localhost:7373", origin: "http://localhost:7373" }, true],
  [{ host: "roost.example", origin: "https://roost.example" }, true],
  [{ host: "rebound.example:7373" }, false],
  [{ host: "roost.example.evil.example" }, false],
  [{ host: "" }, false],
  [{ host: "roost.example", origin: "http://roost.example" }, false],
  [{ host: "192.0.2.7:7373", origin: "http://192.0.2.7:8080" }, false],
])("a server that listens on every address judges %p as its own: %p", (headers, isOwn) => {
  const judge = () => requireOwnOrigin(new Headers(headers as Record<string, string>), OWN);
  if (isOwn) expect(judge).not.toThrow();
  else expect(judge).toThrow(/^(Host|Origin): /);
});
