import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Frame, readEvents } from "../messages/conversation.ts";
import { type MockAnswer, type MockRequest, startMockModelServer } from "../support/mock-model-server.ts";
import { startTestServer } from "../support/test-server.ts";
import { askedOf, resultsOf } from "./agents.ts";

const SUPPORT = join(import.meta.dir, "../support");
/** The server in a process of its own, with two agents, of which the first is sent a message. It lives until it is killed. */
const PROGRAM = `
  const { startTestServer } = await import(${JSON.stringify(join(SUPPORT, "test-server.ts"))});
  const { settings, dataDir } = JSON.parse(process.argv[1]);
  const { signUp } = await startTestServer(settings, { dataDir });
  const person = await signUp();
  const { instanceId } = (await person.ask("POST", "/v1/instances", { name: "one" })).body;
  const agents = "/v1/instances/" + instanceId + "/agents";
  const path = agents + "/" + (await person.ask("POST", agents, { name: "Ada" })).body.agentId;
  const other = agents + "/" + (await person.ask("POST", agents, { name: "Bob" })).body.agentId;
  process.stdout.write(JSON.stringify({ token: person.token, path, other }) + "\\n");
  await person.ask("POST", path + "/messages", { message: "start" }, { Prefer: "respond-async" });
`;

/** The parent messages another agent, and delegates to two copies; whoever is asked answers only after the restart. */
function startModel() {
  let isAnswering = false;
  const mock = startMockModelServer({
    answer(request: MockRequest): MockAnswer {
      const asked = askedOf(request);
      if (asked !== "start") return isAnswering ? { kind: "text", tokens: [`Said: ${asked}`] } : { kind: "hang" };
      const step = resultsOf(request).length;
      const [name, input] = CALLS[step] ?? [];
      if (name === undefined) return { kind: "text", tokens: ["Done."] };
      return { kind: "tools", calls: [{ id: `call_${step}`, name, arguments: input ?? {} }] };
    },
  });
  const beginToAnswer = () => {
    isAnswering = true;
  };
  return { mock, beginToAnswer };
}
const copy = (title: string) => ({ title, message: title });
const CALLS: [string, object][] = [
  ["delegate", { tasks: [copy("left"), copy("right")] }],
  ["message_agent", { agent: "Bob", message: "and you?" }],
];

/** Starts the server, lets the parent and both copies call their model once, and kills it. */
async function killAmidCalls({ mock }: ReturnType<typeof startModel>) {
  const dataDir = mkdtempSync(join(tmpdir(), "roost-delegation-"));
  const settings = { ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: mock.url };
  const child = Bun.spawn([process.execPath, "-e", PROGRAM, JSON.stringify({ settings, dataDir })], {
    stdout: "pipe",
    stderr: "pipe",
  });
  const reader = child.stdout.getReader();
  let text = "";
  while (!text.includes("\n")) text += new TextDecoder().decode((await reader.read()).value);
  const begun: { token: string; path: string; other: string } = JSON.parse(text);
  // The parent's first call, and one of each copy.
  await mock.arrived(3);
  child.kill("SIGKILL");
  await child.exited;
  expect(await new Response(child.stderr).text()).toBe("");
  return { ...begun, dataDir, settings };
}

test("a run that waits for others survives SIGKILL, and so do they: each is asked once, and answers once", async () => {
  const model = startModel();
  const { mock } = model;
  const { token, path, other, dataDir, settings } = await killAmidCalls(model);

  model.beginToAnswer();
  const server = await startTestServer(settings, { dataDir });
  try {
    const headers = { Authorization: `Bearer ${token}` };
    const get = async (of: string) => (await server.ask("GET", of, { token })).body;
    await using stream = readEvents(await fetch(`${server.url}${path}/events?after=0`, { headers }));
    const isEnd = ({ event, data }: Frame) => event === "message.completed" && data.message.message === "Done.";
    const frames = await stream.until(isEnd);
    const outputs = frames.filter(({ event }) => event === "tool.completed").map(({ data }) => data.output);
    expect(outputs).toHaveLength(2);
    expect(outputs[0]).toContain("Said: left");
    expect(outputs[0]).toContain("Said: right");
    expect(outputs[1]).toContain("Said: and you?");
    expect(frames.filter(({ event }) => event === "delegation.started")).toHaveLength(2);
    const runs = [...(await get(`${path}/runs`)).data, ...(await get(`${other}/runs`)).data];
    expect(runs.map(({ status }: { status: string }) => status)).toEqual(Array(4).fill("completed"));
    const { sqlite } = server.foundation.store;
    expect(sqlite.query("SELECT count(*) AS rows, sum(is_open) AS open FROM delegations").get()).toEqual({
      rows: 3,
      open: 0,
    });
  } finally {
    await server.stop();
    await mock.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
});

test("calls that SIGKILL interrupted count to their runs, and to what may be delegated for one message", async () => {
  const model = startModel();
  const { token, path, dataDir, settings } = await killAmidCalls(model);
  const killed = new Database(join(dataDir, "roost.db"), { readonly: true });
  const most = killed
    .query<{ runId: string; tokens: number }, []>(
      `SELECT run_id AS runId, prompt_tokens + completion_tokens AS tokens
       FROM model_reservations JOIN delegations USING (run_id)`,
    )
    .all();
  killed.close();
  expect(most).toHaveLength(2);
  const reserved = most.reduce((sum, { tokens }) => sum + tokens, 0);

  model.beginToAnswer();
  // What is left is not enough for another call of a copy.
  const limited = { ...settings, ROOST_DELEGATED_TOKENS: String(reserved + 1) };
  const server = await startTestServer(limited, { dataDir });
  try {
    const headers = { Authorization: `Bearer ${token}` };
    await using stream = readEvents(await fetch(`${server.url}${path}/events?after=0`, { headers }));
    const frames = await stream.until(({ event }: Frame) => event === "tool.completed");
    expect(frames.at(-1)?.data.output).toContain(`has used ${reserved} of ${reserved + 1} tokens`);
    for (const { runId, tokens } of most) {
      const { body } = await server.ask("GET", `${path}/runs/${runId}`, { token });
      expect(body).toMatchObject({ status: "failed", usage: { totalTokens: tokens } });
    }
  } finally {
    await server.stop();
    await model.mock.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
});
