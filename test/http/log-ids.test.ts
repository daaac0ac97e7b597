import { afterAll, expect, test } from "bun:test";
import { join } from "node:path";
import { pino } from "pino";
import { ROOT, readSources } from "../architecture/source.ts";
import { startMockModelServer } from "../support/mock-model-server.ts";
import { scriptedTool } from "../support/scripted-tools.ts";
import { startTestServer } from "../support/test-server.ts";

interface Line {
  level: number;
  msg: string;
  requestId?: string;
  runId?: string;
  runIds?: string[];
  accountId?: string;
  instanceId?: string;
  agentId?: string;
  status?: number;
  path?: string;
}

const lines: Line[] = [];
const log = pino({ level: "trace" }, { write: (line: string) => void lines.push(JSON.parse(line)) });
const mock = startMockModelServer();
const failing = scriptedTool("fail", "nothing", async () => {
  throw new Error("the tool fails");
});
const server = await startTestServer(
  {
    ROOST_MODEL: "openai:mock",
    ROOST_OPENAI_BASE_URL: mock.url,
    ROOST_NETWORKS: "base",
    ROOST_BASE_RPC_URL: "http://127.0.0.1:9",
    ROOST_FACILITATOR_URL: "http://127.0.0.1:9",
  },
  { log, moreTools: [failing] },
);
afterAll(async () => {
  await server.stop();
  await mock.stop();
});

/** Lines about no request and no run: of the start, the stop, timers, and processes that serve everybody. */
const OF_THE_HOST = [
  ...["scripts are off: nothing here can lock them in", "signed the audit log", "local model loaded"],
  ...["model process started", "model process ended", "model process ended: idle"],
];

test("every line that a lively server writes says which request or which run it is about", async () => {
  const person = await server.signUp("lively@example.com");
  const { instanceId } = (await person.ask("POST", "/v1/instances", { name: "home" })).body;
  const agents = `/v1/instances/${instanceId}/agents`;
  const { agentId } = (await person.ask("POST", agents, { name: "Ada" })).body;
  const at = `${agents}/${agentId}`;
  const asked = (name: string, input: object) => ({ kind: "tools" as const, calls: [{ name, arguments: input }] });

  // Messages, tools that fail, requests and scripts of agents.
  mock.script(
    asked("web_fetch", { url: "http://127.0.0.1:9/" }),
    asked("fail", {}),
    asked("run_javascript", { code: "return 1;" }),
  );
  await person.ask("POST", `${at}/messages`, { message: "hi" }, { "X-Request-Id": "message" });
  // A model that is retried, and one that fails.
  mock.script({ kind: "status", status: 503, headers: { "Retry-After": "0" } });
  await person.ask("POST", `${at}/messages`, { message: "hi" });
  mock.script({ kind: "status", status: 400 });
  const failed = await person.ask("POST", `${at}/messages`, { message: "hi" }, { "X-Request-Id": "failing" });
  // The same through OpenAI's API.
  mock.script({ kind: "status", status: 400 });
  const chat = { model: agentId, messages: [{ role: "user", content: "hi" }] };
  await person.ask("POST", "/v1/chat/completions", chat, { "X-Request-Id": "chat" });
  // Requests that are refused, payments that cannot be verified, and a failure of the host itself.
  await server.ask("GET", "/v1/auth/me", { token: "wrong" });
  const proof = { txHash: `0x${"ab".repeat(32)}`, network: "base" };
  await person.ask("POST", "/v1/billing/top-up", {}, { "X-PAYMENT": JSON.stringify(proof) });
  server.foundation.store.sqlite.run("ALTER TABLE conversations RENAME TO elsewhere");
  const broken = await person.ask("GET", `${at}/conversations`, undefined, { "X-Request-Id": "broken" });
  server.foundation.store.sqlite.run("ALTER TABLE elsewhere RENAME TO conversations");

  expect(lines.length).toBeGreaterThan(12);
  const about = (line: Line) => line.requestId ?? line.runId ?? line.runIds?.[0];
  expect(lines.filter((line) => about(line) === undefined && !OF_THE_HOST.includes(line.msg))).toEqual([]);

  const ofRuns = lines.filter(({ requestId, runId }) => requestId === undefined && runId !== undefined);
  expect([...new Set(ofRuns.map(({ msg }) => msg))].toSorted()).toEqual([
    "a model failed",
    "model server: retrying",
    "refused an agent's request",
  ]);
  expect(ofRuns.every((line) => line.accountId === person.accountId && line.instanceId === instanceId)).toBe(true);

  // From a request's line to those of its run, and from an error to its line.
  const ofRequest = (requestId: string) => lines.filter((line) => line.requestId === requestId);
  const { runId } = ofRequest("failing")[0] ?? {};
  expect(runId).toStartWith("run_");
  expect(ofRuns.find((line) => line.runId === runId)?.msg).toBe("a model failed");
  expect(failed.body.error.requestId).toBe("failing");
  expect(ofRequest("chat")[0]?.runId).toStartWith("run_");
  expect(ofRequest("message")[0]).toMatchObject({ accountId: person.accountId, status: 200 });
  expect([broken.status, broken.body.error.requestId]).toEqual([500, "broken"]);
  expect(ofRequest("broken")[0]).toMatchObject({ level: 50, msg: "request failed", accountId: person.accountId });
});

test("a page that fails is logged under the id that its answer has", async () => {
  server.foundation.store.sqlite.run("ALTER TABLE claims RENAME TO elsewhere");
  const answer = await server.ask("GET", "/metrics", { headers: { "X-Request-Id": "page" } });
  server.foundation.store.sqlite.run("ALTER TABLE elsewhere RENAME TO claims");
  expect([answer.status, answer.body.error.requestId]).toEqual([500, "page"]);
  expect(lines.filter(({ requestId }) => requestId === "page")).toMatchObject([
    { level: 50, msg: "request failed", path: "/metrics" },
  ]);
});

/** Calls of the log whose fields have no id of a request or a run: what they tell is about neither. */
const WITHOUT = new Set([
  ...["agents/reindexer.ts", "agents/workspaces.ts", "agents/workspace-changes.ts"],
  ...["app/features.ts", "app/identity.ts", "app/housekeeping.ts", "app/start.ts", "app/traces.ts"],
  ...["backup/schedule.ts", "cli/operator/serve.ts", "http/listener.ts", "meter/meter-timer.ts"],
  ...["meter/runway-notice.ts", "models/local/supervisor.ts", "payments/finality.ts", "payments/payment-timer.ts"],
  ...["payments/facilitator/facilitated-payments.ts", "runtime/host.ts", "sandbox/sandbox.ts"],
  ...["storage/audit-checkpoints.ts", "schedules/notice.ts", "schedules/schedule-timer.ts", "bundles/import.ts"],
  ...["memory/embedding.ts", "memory/indexing.ts", "memory/memory.ts", "memory/search-thread.ts"],
  ...["storage/background-check.ts", "usage/call-log.ts", "models/added.ts", "lib/log.ts"],
]);

test("files that serve requests and runs write no line without an id", async () => {
  const bare: string[] = [];
  for (const { path } of await readSources()) {
    if (path.startsWith("console/browser/")) continue;
    const text = await Bun.file(join(ROOT, "src", path)).text();
    for (const [call] of text.matchAll(/\blog\.(?:info|warn|error)\([^\n]*(?:\n(?! *\}?\)[;,)]*\n)[^\n]*){0,4}/g)) {
      if (!/requestId|runId|whose|idsOf|\.\.\.fields|fields,|\.\.\.about|retry/.test(call)) bare.push(path);
    }
  }
  expect([...new Set(bare)].filter((path) => !WITHOUT.has(path))).toEqual([]);
  expect([...WITHOUT].filter((path) => !bare.includes(path))).toEqual([]);
});
