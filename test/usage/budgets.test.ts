import { Database } from "bun:sqlite";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openFoundation } from "../../src/app/foundation.ts";
import { type RunningBinary, startBinary } from "../support/binary.ts";
import type { Answer } from "../support/test-server.ts";
import { SLOWLY, type Taken } from "./greedy-model.ts";

const AGENTS = 50;
const ANSWER_TOKENS = 700;
/** No call of these tests may take more. */
const ONE_CALL = 6_000;

const home = mkdtempSync(join(tmpdir(), "roost-budgets-"));
let dataDir: string;
let model: Bun.Subprocess<"ignore", "pipe", "inherit">;
let modelUrl: string;
let server: RunningBinary;
let token = "";

beforeAll(async () => {
  const program = join(import.meta.dir, "greedy-model.ts");
  model = Bun.spawn([process.execPath, program], { stdio: ["ignore", "pipe", "inherit"] });
  for await (const bytes of model.stdout) {
    modelUrl = new TextDecoder().decode(bytes).trim();
    break;
  }
});
// The next test starts one of its own.
afterEach(() => server.kill());
afterAll(() => {
  model.kill();
  rmSync(home, { recursive: true, force: true });
});

const start = () =>
  startBinary({
    dataDir,
    env: {
      ROOST_MODEL: "openai:greedy",
      ROOST_OPENAI_BASE_URL: `${modelUrl}/v1`,
      ROOST_ANSWER_TOKENS: String(ANSWER_TOKENS),
      ROOST_WRITES_PER_SECOND: "10000",
    },
  });

let turn = 0;
beforeEach(async () => {
  dataDir = join(home, `data-${++turn}`);
  await tellModel("hold");
  const foundation = openFoundation({ dataDir });
  const link = foundation.links.create("ada@example.com", 10_000_000n);
  foundation.store.close();
  server = await start();
  token = (await ask("POST", "/v1/auth/redeem-link", { link })).body.token;
});

async function ask(
  method: string,
  path: string,
  body?: unknown,
  headers = {},
): Promise<Pick<Answer, "status" | "body">> {
  const response = await fetch(server.url + path, {
    method,
    headers: { ...(token && { Authorization: `Bearer ${token}` }), "Content-Type": "application/json", ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Answer["body"] };
}
const taken = async () => (await (await fetch(`${modelUrl}/taken`)).json()) as Taken;
const tellModel = async (what: "hold" | "release") => void (await (await fetch(`${modelUrl}/${what}`)).text());

/** So many agents in one instance; their paths. */
async function newAgents(): Promise<string[]> {
  const { instanceId } = (await ask("POST", "/v1/instances", { name: "all" })).body;
  const path = `/v1/instances/${instanceId}/agents`;
  const made = await Promise.all(
    Array.from({ length: AGENTS }, (_, at) => ask("POST", path, { name: `agent ${at}`, slug: `agent-${at}` })),
  );
  return made.map(({ body }) => `${path}/${body.agentId}`);
}
/** On all days, since the tests may go on past midnight. */
async function used(): Promise<{ calls: number; tokens: number }> {
  const { data } = (await ask("GET", "/v1/usage?by=day")).body;
  const total = { calls: 0, tokens: 0 };
  for (const { modelCalls, promptTokens, completionTokens } of data) {
    total.calls += modelCalls;
    total.tokens += promptTokens + completionTokens;
  }
  return total;
}

function read<Row>(query: string): Row[] {
  const database = new Database(join(dataDir, "roost.db"), { readonly: true });
  try {
    return database.query<Row, []>(query).all();
  } finally {
    database.close();
  }
}

const statuses = () => read<{ status: string }>("SELECT DISTINCT status FROM runs").map(({ status }) => status);

test("50 agents at once against one limit exceed it by nothing, and use it up", async () => {
  const agents = await newAgents();
  const limit = 20 * ONE_CALL;
  await ask("PATCH", "/v1/auth/me", { modelLimits: { tokensPerMonth: limit } });
  const before = await taken();
  const answers = await Promise.all(
    [...agents, ...agents].map((agent) => ask("POST", `${agent}/messages`, { message: "Take all you can" })),
  );
  const after = await taken();
  const spent = after.tokens - before.tokens;
  expect(spent).toBeLessThanOrEqual(limit);
  // Nobody was refused while there was room for the most that a call may take.
  expect(spent).toBeGreaterThan(limit - ONE_CALL);
  expect(after.atOnce).toBeGreaterThan(1);
  expect((await used()).tokens).toBe(spent);
  const codes = answers.map(({ status, body }) => (status === 200 ? "answered" : body.error.code));
  expect(new Set(codes)).toEqual(new Set(["answered", "budget_exceeded"]));
  expect(codes.filter((code) => code === "answered")).toHaveLength(after.calls - before.calls);
});

test("calls without a limit that take longer than a second count after a crash too", async () => {
  const agents = await newAgents();
  const before = await taken();
  const send = (agent: string) => ask("POST", `${agent}/messages`, { message: SLOWLY }, { Prefer: "respond-async" });
  await Promise.all(agents.slice(0, 4).map(send));
  while (read("SELECT 1 FROM model_reservations").length < 4) await Bun.sleep(20);
  await server.kill();
  await tellModel("release");
  server = await start();
  while (statuses().some((status) => status !== "completed")) await Bun.sleep(20);
  const { tokens, calls } = await taken();
  const counted = await used();
  expect(counted.calls).toBe(calls - before.calls);
  expect(counted.tokens).toBeGreaterThanOrEqual(tokens - before.tokens);
  expect(read("SELECT 1 FROM model_calls WHERE outcome = 'interrupted' AND estimated = 1")).toHaveLength(4);
  expect(read("SELECT 1 FROM model_reservations")).toEqual([]);
});

test("a limit that is killed in the middle of 50 agents' calls is exceeded by nothing either", async () => {
  const agents = await newAgents();
  const limit = 20 * ONE_CALL;
  await ask("PATCH", "/v1/auth/me", { modelLimits: { tokensPerMonth: limit } });
  const before = await taken();
  const send = (agent: string, at: number) =>
    ask("POST", `${agent}/messages`, { message: at === 0 ? "Take all you can" : SLOWLY }, { Prefer: "respond-async" });
  // All of them are on disk, a call has ended, and others are with the model.
  await Promise.all([...agents, ...agents].map(send));
  const reserved = () => read("SELECT 1 FROM model_reservations").length;
  while (!statuses().includes("completed") || reserved() === 0) await Bun.sleep(1);
  await server.kill();
  await tellModel("release");
  const held = read<{ most: number }>("SELECT prompt_tokens + completion_tokens AS most FROM model_reservations");
  expect(held.length).toBeGreaterThan(0);
  server = await start();
  expect(read("SELECT 1 FROM model_calls WHERE outcome = 'interrupted'")).toHaveLength(held.length);
  while (statuses().some((status) => status === "running" || status === "queued")) await Bun.sleep(20);
  const spent = (await taken()).tokens - before.tokens;
  expect(spent).toBeLessThanOrEqual(limit);
  // What was in progress, or not yet written, when the server was killed counts with the most that it may have taken.
  expect((await used()).tokens).toBeGreaterThanOrEqual(spent);
  expect(new Set(statuses())).toEqual(new Set(["completed", "failed"]));
});
