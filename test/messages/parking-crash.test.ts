import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newId } from "../../src/lib/id.ts";
import { UNKNOWN_OUTCOME } from "../../src/messages/runs/journal.ts";
import { type MockModelServer, startMockModelServer } from "../support/mock-model-server.ts";
import { type AskingTool, askingTool } from "../support/scripted-tools.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { kindsOf, readEvents, shownText } from "./conversation.ts";

const WAIT_ID = newId("appr");
const SUPPORT = join(import.meta.dir, "../support");
/** The server in a process of its own. It prints what the test reads, and lives until it is killed. */
const PROGRAM = `
  const { startTestServer } = await import(${JSON.stringify(join(SUPPORT, "test-server.ts"))});
  const { scriptedTool } = await import(${JSON.stringify(join(SUPPORT, "scripted-tools.ts"))});
  const { modelUrl, dataDir, waitId, runId, dies } = JSON.parse(process.argv[1]);
  const print = (line) => process.stdout.write(JSON.stringify(line) + "\\n");
  const send = scriptedTool("send", "outside", async (_, { goAhead }) => {
    if (goAhead === undefined) return { waitsFor: { kind: "approval", id: waitId } };
    print({ acts: goAhead });
    await new Promise(() => {});
  });
  const settings = { ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: modelUrl };
  const { app, foundation, signUp, url } = await startTestServer(settings, { dataDir, tools: [send] });
  app.runs.listen({ waiting: (run) => foundation.store.afterCommit(() => print({ waits: run.runId })) });
  if (runId) {
    foundation.store.transaction(() => app.runs.resume(runId, waitId, "go ahead"));
    if (dies) process.kill(process.pid, "SIGKILL");
  } else {
    const person = await signUp();
    const { instanceId } = (await person.ask("POST", "/v1/instances", { name: "one" })).body;
    const agents = "/v1/instances/" + instanceId + "/agents";
    const { agentId } = (await person.ask("POST", agents, { name: "Ada" })).body;
    const path = agents + "/" + agentId;
    print({ token: person.token, path });
    await person.ask("POST", path + "/messages", { message: "mail it" }, { Prefer: "respond-async" });
  }
`;

let dataDir: string;
let mock: MockModelServer;
let server: TestServer | undefined;
let send: AskingTool;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "roost-parking-"));
  mock = startMockModelServer({
    answer: ({ body }) =>
      body.messages.at(-1).role === "tool"
        ? { kind: "text", tokens: ["Done."] }
        : { kind: "tools", text: "Wait. ", calls: [{ id: "call_a", name: "send", arguments: { key: "a" } }] },
  });
  send = askingTool("send", "outside");
  send.asked.set("a", { kind: "approval", id: WAIT_ID });
});
afterEach(async () => {
  await server?.stop();
  server = undefined;
  await mock.stop();
  rmSync(dataDir, { recursive: true, force: true });
});

/**
 * Runs the server until it has printed `last`, then kills it, unless it kills itself. Returns everything it printed.
 */
async function runUntil(last: string, options: { runId?: string; dies?: boolean } = {}) {
  const asked = JSON.stringify({ modelUrl: mock.url, dataDir, waitId: WAIT_ID, ...options });
  const child = Bun.spawn([process.execPath, "-e", PROGRAM, asked], { stdout: "pipe", stderr: "pipe" });
  const printed: Record<string, string> = {};
  let rest = "";
  const decoder = new TextDecoder();
  for await (const bytes of child.stdout) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) Object.assign(printed, JSON.parse(line));
    if (last in printed) child.kill("SIGKILL");
  }
  await child.exited;
  expect([child.signalCode, await new Response(child.stderr).text()]).toEqual(["SIGKILL", ""]);
  return printed;
}

/** A run that waits, in a server that was killed. */
async function leaveWaiting() {
  const { token = "", path = "", waits: runId = "" } = await runUntil("waits");
  return { token, path, runId };
}

/** Starts the server in this process, with the data folder of the dead one. */
async function goOn({ token, path, runId }: Awaited<ReturnType<typeof leaveWaiting>>) {
  const settings = { ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: mock.url };
  const started = await startTestServer(settings, { dataDir, tools: [send.tool] });
  server = started;
  const headers = { Authorization: `Bearer ${token}` };
  return {
    run: async () => (await started.ask("GET", `${path}/runs/${runId}`, { token })).body,
    frames: async () =>
      await readEvents(await fetch(`${started.url}${path}/events?runId=${runId}`, { headers })).rest(),
    decide: () => started.foundation.store.transaction(() => started.app.runs.resume(runId, WAIT_ID, "go ahead")),
  };
}

const results = () => mock.requests.at(-1)?.body.messages.filter(({ role }: { role: string }) => role === "tool") ?? [];

test("a run that waits outlives its process, and the call it waits with is made once", async () => {
  const left = await leaveWaiting();
  const { run, frames, decide } = await goOn(left);
  expect(await run()).toMatchObject({ status: "waiting", waitingFor: WAIT_ID, usage: { promptTokens: 9 } });
  expect([mock.requests.length, decide(), decide()]).toEqual([1, true, false]);
  const shown = await frames();
  expect([shownText(shown), send.acted]).toEqual(["Wait. \n\nDone.", ["a"]]);
  expect(kindsOf(shown)).not.toContain("run.restarted");
});

test("a decision outlives the process that died right after it", async () => {
  const left = await leaveWaiting();
  await runUntil("", { runId: left.runId, dies: true });
  const { frames, decide } = await goOn(left);
  const shown = await frames();
  expect([shownText(shown), send.acted, decide()]).toEqual(["Wait. \n\nDone.", ["a"], false]);
});

test("a call that went ahead and was interrupted is not made again: its outcome is unknown", async () => {
  const left = await leaveWaiting();
  expect((await runUntil("acts", { runId: left.runId })).acts).toBe(WAIT_ID);
  const { run, frames } = await goOn(left);
  const shown = await frames();
  expect([shownText(shown), send.acted]).toEqual(["Wait. \n\nDone.", []]);
  expect(results()).toMatchObject([{ tool_call_id: "call_a", content: UNKNOWN_OUTCOME }]);
  expect(await run()).toMatchObject({ status: "completed", steps: 2 });
});
