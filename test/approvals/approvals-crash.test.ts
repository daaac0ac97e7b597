import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { UNKNOWN_OUTCOME } from "../../src/messages/runs/journal.ts";
import { readEvents } from "../messages/conversation.ts";
import { type MockModelServer, startMockModelServer } from "../support/mock-model-server.ts";

const SUPPORT = join(import.meta.dir, "../support");
/** The server in a process of its own, whose tool writes down each time that it acts. It lives until it is killed. */
const PROGRAM = `
  const { appendFileSync } = await import("node:fs");
  const { startTestServer } = await import(${JSON.stringify(join(SUPPORT, "test-server.ts"))});
  const { scriptedTool } = await import(${JSON.stringify(join(SUPPORT, "scripted-tools.ts"))});
  const { modelUrl, dataDir, isNew } = JSON.parse(process.argv[1]);
  const print = (line) => process.stdout.write(JSON.stringify(line) + "\\n");
  const mail = scriptedTool("mail", "outside", async ({ key }) => {
    appendFileSync(dataDir + "/acted", key);
    return "mailed " + key;
  }, { defaultPolicy: undefined });
  const settings = { ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: modelUrl };
  const { signUp, url } = await startTestServer(settings, { dataDir, tools: [mail] });
  if (isNew) {
    const person = await signUp();
    const { instanceId } = (await person.ask("POST", "/v1/instances", { name: "one" })).body;
    const agents = "/v1/instances/" + instanceId + "/agents";
    const { agentId } = (await person.ask("POST", agents, { name: "Ada" })).body;
    print({ url, token: person.token, path: agents + "/" + agentId });
  } else print({ url });
`;

let dataDir: string;
let mock: MockModelServer;
const children: ReturnType<typeof spawn>[] = [];
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "roost-approvals-"));
  mock = startMockModelServer({
    answer: ({ body }) =>
      body.messages.at(-1).role === "tool"
        ? { kind: "text", tokens: ["Done."] }
        : { kind: "tools", calls: [{ id: "call_a", name: "mail", arguments: { key: "a" } }] },
  });
});
afterEach(async () => {
  for (const child of children.splice(0)) await kill(child);
  await mock.stop();
  rmSync(dataDir, { recursive: true, force: true });
});

function spawn(isNew: boolean) {
  const asked = JSON.stringify({ modelUrl: mock.url, dataDir, isNew });
  return Bun.spawn([process.execPath, "-e", PROGRAM, asked], { stdout: "pipe", stderr: "inherit" });
}

async function kill(child: ReturnType<typeof spawn>): Promise<void> {
  child.kill("SIGKILL");
  await child.exited;
}

async function start(isNew = false) {
  const child = spawn(isNew);
  children.push(child);
  let text = "";
  for await (const bytes of child.stdout) {
    text += new TextDecoder().decode(bytes);
    if (text.includes("\n")) break;
  }
  return { child, ...(JSON.parse(text) as { url: string; token: string; path: string }) };
}

const acted = () => (existsSync(join(dataDir, "acted")) ? readFileSync(join(dataDir, "acted"), "utf8") : "");

/** A run that waits, in a server that was killed when its approval had been told. */
async function leaveWaiting() {
  const { child, url, token, path } = await start(true);
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  const ask = async (at: string, method: string, path: string, body?: object) => {
    const response = await fetch(at + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    // biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects and fails where it is not there
    return (await response.json()) as any;
  };
  const sent = await fetch(`${url}${path}/messages`, {
    ...{ method: "POST", headers: { ...headers, Prefer: "respond-async" }, body: '{"message":"mail it"}' },
  });
  const { runId } = (await sent.json()) as { runId: string };
  const stream = readEvents(await fetch(`${url}${path}/events?runId=${runId}`, { headers }));
  const frames = await stream.until(({ event }) => event === "approval.requested");
  await kill(child);
  return { runId, path, headers, ask, approval: frames.at(-1)?.data.approval };
}
type Left = Awaited<ReturnType<typeof leaveWaiting>>;

const decision = ({ approval }: Left) => ({ decision: "approve", inputHash: approval.inputHash });
const decide = (left: Left, url: string) =>
  left.ask(url, "POST", `/v1/approvals/${left.approval.approvalId}/decision`, decision(left));

async function end(left: Left, url: string): Promise<string> {
  const { path, runId, headers } = left;
  const frames = await readEvents(await fetch(`${url}${path}/events?runId=${runId}`, { headers })).rest();
  const [result] = mock.requests.at(-1)?.body.messages.filter(({ role }: { role: string }) => role === "tool") ?? [];
  expect(frames.at(-1)?.event).toBe("run.completed");
  return result.content;
}

test("an approval outlives the process that asked, and what was approved is done once", async () => {
  const left = await leaveWaiting();
  const { url } = await start();
  const open = await left.ask(url, "GET", "/v1/approvals?status=open");
  expect(open.data).toEqual([left.approval]);
  expect((await decide(left, url)).status).toBe("approved");
  expect(await end(left, url)).toBe("mailed a");
  expect(acted()).toBe("a");
});

test.each([0, 1, 3])(
  "a decision that was acknowledged is carried out, also if the host dies %d requests later",
  async (more) => {
    const left = await leaveWaiting();
    const { child, url } = await start();
    expect((await decide(left, url)).status).toBe("approved");
    for (let asked = 0; asked < more; asked++) await left.ask(url, "GET", "/v1/approvals");
    await kill(child);
    const next = await start();
    const known = await left.ask(next.url, "GET", `/v1/approvals/${left.approval.approvalId}`);
    expect(known.status).toBe("approved");
    // Either it was not begun yet, and was done after the restart; or it was cut off, and is never repeated.
    const result = await end(left, next.url);
    expect(["mailed a", UNKNOWN_OUTCOME]).toContain(result);
    expect(acted().length).toBeLessThanOrEqual(1);
    if (result === "mailed a") expect(acted()).toBe("a");
    expect((await decide(left, next.url)).error.status).toBe(409);
  },
);
