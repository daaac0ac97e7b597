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
  const { modelUrl, dataDir } = JSON.parse(process.argv[1]);
  const settings = { ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: modelUrl };
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

test("a run that waits for others survives SIGKILL, and so do they: each is asked once, and answers once", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "roost-delegation-"));
  const { mock, beginToAnswer } = startModel();
  const child = Bun.spawn([process.execPath, "-e", PROGRAM, JSON.stringify({ modelUrl: mock.url, dataDir })], {
    stdout: "pipe",
    stderr: "pipe",
  });
  const reader = child.stdout.getReader();
  let text = "";
  while (!text.includes("\n")) text += new TextDecoder().decode((await reader.read()).value);
  const { token, path, other } = JSON.parse(text);
  // The parent's first call, and one of each copy.
  await mock.arrived(3);
  child.kill("SIGKILL");
  await child.exited;
  expect(await new Response(child.stderr).text()).toBe("");

  beginToAnswer();
  const server = await startTestServer({ ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: mock.url }, { dataDir });
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
