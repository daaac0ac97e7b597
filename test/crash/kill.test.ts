import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openFoundation } from "../../src/app/foundation.ts";
import { type Frame, kindsOf, readEvents, shownText } from "../messages/conversation.ts";
import { type RunningBinary, runBinary, startBinary } from "../support/binary.ts";
import { type MockModelServer, startMockModelServer } from "../support/mock-model-server.ts";
import type { Answer } from "../support/test-server.ts";
import { isDead, portOfItsOwn, turn } from "./dying-server.ts";

const KILLS = 20;
const LEAST_KEPT = 4;
const MOST_KILLS = 400;
const AGENTS = 3;
const MAX_LIFE_MS = 400;

const home = mkdtempSync(join(tmpdir(), "roost-crash-"));
const dataDir = join(home, "data");
let mock: MockModelServer;
let server: RunningBinary;

const CALLS = 3;
const callsOf = (asked: number) =>
  Array.from({ length: CALLS }, (_, at) => ({ id: `call_${asked}_${at}`, name: "now", arguments: {} }));

const start = () =>
  startBinary({
    dataDir,
    port: portOfItsOwn(),
    env: { ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: mock.url, ROOST_LOG_LEVEL: "info" },
  });

beforeAll(async () => {
  let asked = 0;
  mock = startMockModelServer({
    record: false,
    // Every third message calls tools first; every answer takes a while, so that kills find runs in progress.
    answer: ({ body }) =>
      ++asked % 3 === 0 && body.messages.at(-1).role === "user"
        ? { kind: "tools", text: "Let me see. ", calls: callsOf(asked) }
        : { kind: "text", tokens: Array.from({ length: 12 }, (_, at) => `word${at} `), delayMs: 2 },
  });
  const foundation = openFoundation({ dataDir });
  const { code } = foundation.invites.create({ uses: 1, credit: 10_000_000n, lifeMs: 3_600_000 });
  foundation.store.close();
  server = await start();
  await ask("POST", "/v1/auth/send-code", { email: "crash@example.com", inviteCode: code });
  const database = new Database(join(dataDir, "roost.db"), { readonly: true });
  const mail = database.query<{ code: string }, []>("SELECT code FROM outbox ORDER BY id DESC").get();
  database.close();
  token = (await ask("POST", "/v1/auth/verify-code", { email: "crash@example.com", code: mail?.code })).body.token;
});

afterAll(async () => {
  await server.kill();
  await mock.stop();
  rmSync(home, { recursive: true, force: true });
});

let token = "";
const request = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
  fetch(server.url + path, {
    method,
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json", ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
async function ask(method: string, path: string, body?: unknown): Promise<Pick<Answer, "status" | "body">> {
  const response = await request(method, path, body);
  return { status: response.status, body: (await response.json()) as Answer["body"] };
}

/**
 * A client of one agent: sends messages with keys, to its conversations in turn, until each is acknowledged, and
 * follows the agent's events.
 */
function startClient(path: string, conversations: readonly string[]) {
  let sends = true;
  let follows = true;
  let leave = async () => {};
  const keys: string[] = [];
  const acknowledged = new Set<string>();
  const frames: Frame[] = [];
  // Every fifth is waited for: the conversations have runs in progress at once.
  const prefer = (at: number): Record<string, string> => (at % 5 === 0 ? {} : { Prefer: "respond-async" });

  const sending = (async () => {
    while (sends) {
      const key = crypto.randomUUID();
      const conversationId = conversations[keys.length % conversations.length];
      keys.push(key);
      for (;;) {
        try {
          const headers = { "Idempotency-Key": key, ...prefer(keys.length) };
          const response = await request(
            "POST",
            `${path}/messages`,
            { message: key, conversationId, stream: false },
            headers,
          );
          const { runId } = (await response.json()) as { runId?: string };
          if (response.ok && runId !== undefined) {
            acknowledged.add(runId);
            break;
          }
          if (response.status !== 409 && response.status !== 429) expect(response.status).toBe(200);
        } catch (error) {
          if (!isDead(error)) throw error;
        }
        await turn();
      }
    }
  })();

  const ended = (runId: string) => frames.some(({ event, data }) => ENDS.test(event) && data.runId === runId);
  const following = (async () => {
    while (follows) {
      try {
        await using stream = readEvents(
          await request("GET", `${path}/events`, undefined, { "Last-Event-ID": String(frames.at(-1)?.id ?? 0) }),
        );
        expect(stream.response.status).toBe(200);
        leave = stream.close;
        // It may have been opened after the client left.
        if (!follows) break;
        for (let frame = await stream.next(); frame; frame = await stream.next()) frames.push(frame);
      } catch (error) {
        if (!isDead(error)) throw error;
      }
      await turn();
    }
  })();

  return {
    keys,
    acknowledged,
    frames,
    async stop() {
      sends = false;
      await sending;
      // A fault in the stream fails the test at once.
      while (![...acknowledged].every(ended)) await Promise.race([turn(), following]);
      follows = false;
      await leave();
      await following;
    },
  };
}

/**
 * Acknowledged changes other than messages: agents with a file, accounts with their credit, credits by the operator.
 */
function startKeeper(instance: string) {
  let keeps = true;
  const agents = new Map<string, string>();
  const accounts: string[] = [];
  let credits = 0;

  async function untilAnswered(path: string, body: unknown, headers: Record<string, string> = {}) {
    for (;;) {
      try {
        const response = await request("POST", path, body, headers);
        // While the first request with a key still runs, its repetition must wait.
        if (response.status !== 409) return { status: response.status, body: await response.json() };
      } catch (error) {
        if (!isDead(error)) throw error;
      }
      await turn();
    }
  }

  async function keep(number: number): Promise<void> {
    const key = crypto.randomUUID();
    const agent = { name: `Kept ${number}`, useDefaults: false, files: { "NOTE.md": key } };
    const made = await untilAnswered(`/v1/instances/${instance}/agents`, agent, { "Idempotency-Key": key });
    expect(made.status).toBe(201);
    agents.set(made.body.agentId, key);

    const foundation = openFoundation({ dataDir });
    const email = `kept${number}@example.com`;
    const link = foundation.links.create(email, 1_234_567n);
    foundation.store.close();
    // 401: it was redeemed, but the answer was lost with the server; the account exists.
    expect([200, 401]).toContain((await untilAnswered("/v1/auth/redeem-link", { link })).status);
    accounts.push(email);

    const credited = await runBinary([
      "account",
      "credit",
      "crash@example.com",
      "0.01",
      "--note",
      key,
      "--data",
      dataDir,
    ]);
    expect(credited).toMatchObject({ code: 0 });
    credits++;
  }

  const keeping = (async () => {
    for (let number = 0; keeps; number++) await keep(number);
  })();
  return {
    agents,
    accounts,
    credits: () => credits,
    async stop() {
      keeps = false;
      await keeping;
    },
  };
}

/** The credits in the ledger, by e-mail, in micro-USDC. */
function creditsOf(): Record<string, number> {
  const database = new Database(join(dataDir, "roost.db"), { readonly: true });
  const rows = database
    .query<{ email: string; total: number }, []>(
      `SELECT email, sum(amount) AS total FROM journal_entries JOIN postings USING (entry_id)
       JOIN accounts USING (account_id) WHERE type = 'credit' AND ledger_account = 'customer:' || account_id GROUP BY email`,
    )
    .all();
  database.close();
  return Object.fromEntries(rows.map(({ email, total }) => [email, total]));
}

const ENDS = /^run\.(completed|failed|cancelled)$/;

test("killed at any moment: nothing acknowledged is lost, nothing runs twice, and every stream continues where it was", async () => {
  const instance = (await ask("POST", "/v1/instances", { name: "crash" })).body.instanceId;
  const agents = await Promise.all(
    Array.from({ length: AGENTS }, (_, at) => ask("POST", `/v1/instances/${instance}/agents`, { name: `Agent ${at}` })),
  );
  const paths = agents.map(({ body }) => `/v1/instances/${instance}/agents/${body.agentId}`);
  const conversations = await Promise.all(
    paths.map((path) =>
      Promise.all(
        Array.from(
          { length: 4 },
          async () => (await ask("POST", `${path}/conversations`, {})).body.conversationId as string,
        ),
      ),
    ),
  );
  const clients = paths.map((path, at) => startClient(path, conversations[at] ?? []));
  const keeper = startKeeper(instance);
  const isEnough = () =>
    keeper.agents.size >= LEAST_KEPT && clients.some(({ frames }) => kindsOf(frames).includes("run.restarted"));
  // On a slow machine some more, until there is enough that could be lost.
  for (let kill = 0; kill < KILLS || (kill < MOST_KILLS && !isEnough()); kill++) {
    await Bun.sleep(Math.random() * MAX_LIFE_MS);
    await server.kill();
    server = await start();
  }
  await Promise.all([keeper.stop(), ...clients.map((client) => client.stop())]);

  let restarts = 0;
  for (const [at, { keys, acknowledged, frames }] of clients.entries()) {
    expect(frames.map(({ id }) => id)).toEqual(frames.map((_, index) => index + 1));
    const theirs = conversations[at] ?? [];
    const histories = await Promise.all(theirs.map((id) => wholeHistory(paths[at] ?? "", id)));
    for (const [place, history] of histories.entries()) {
      const asked = history.filter(({ role }) => role === "user").map(({ message }) => message);
      expect(asked).toEqual(keys.filter((_, number) => number % theirs.length === place));
    }
    for (const conversationId of theirs) expect(mostAtOnce(frames, conversationId)).toBe(1);
    const history = histories.flat();
    const sent = history.filter(({ role }) => role === "user");
    expect(sent).toHaveLength(keys.length);
    expect(acknowledged.size).toBe(keys.length);
    for (const { runId } of sent) {
      expect(acknowledged).toContain(runId);
      const own = frames.filter(({ data }) => data.runId === runId);
      expect(kindsOf(own).filter((kind) => ENDS.test(kind))).toEqual(["run.completed"]);
      const { message } = own.find(({ event }) => event === "message.completed")?.data ?? {};
      expect(message.message).toBe(shownText(own));
      expect(history.filter((one) => one.runId === runId && one.role === "agent")).toEqual([message]);
      const calls = own.filter(({ event }) => event === "tool.started").map(({ data }) => data.toolCallId);
      expect(new Set(calls).size).toBe(calls.length);
      // Every step that began has ended, with each of its calls.
      expect(calls.length % CALLS).toBe(0);
      restarts += restartsOf(own);
    }
  }
  // Otherwise the kills found nothing in progress, and this test proves nothing.
  expect(keeper.agents.size).toBeGreaterThanOrEqual(LEAST_KEPT);
  expect(restarts).toBeGreaterThan(0);

  const listed = (await ask("GET", `/v1/instances/${instance}/agents?limit=100`)).body;
  expect(listed.hasMore).toBe(false);
  const known = [...agents.map(({ body }) => body.agentId), ...keeper.agents.keys()];
  expect(listed.data.map(({ agentId }: { agentId: string }) => agentId).sort()).toEqual(known.sort());
  for (const [agentId, key] of keeper.agents) {
    const { files } = (await ask("GET", `/v1/instances/${instance}/agents/${agentId}`)).body;
    expect(files).toEqual({ "NOTE.md": key });
  }
  expect((await ask("GET", `/v1/instances/${instance}`)).body).toMatchObject({
    status: "running",
    agentCount: known.length,
  });
  expect(creditsOf()).toEqual({
    "crash@example.com": 10_000_000 + 10_000 * keeper.credits(),
    ...Object.fromEntries(keeper.accounts.map((email) => [email, 1_234_567])),
  });
  const doctor = JSON.parse((await runBinary(["doctor", "--json", "--data", dataDir])).output);
  expect(doctor.find(({ check }: { check: string }) => check === "database")).toMatchObject({ ok: true });
});

/** How often the run was restarted after it had shown something. */
function restartsOf(own: Frame[]): number {
  const kinds = kindsOf(own);
  let restarts = 0;
  let shown = false;
  for (const kind of kinds) {
    if (kind === "run.restarted") {
      expect(shown).toBe(true);
      restarts++;
      shown = false;
    } else if (kind === "message.delta" || kind.startsWith("tool.")) shown = true;
  }
  expect(kinds.filter((kind) => kind === "run.started")).toHaveLength(1);
  return restarts;
}

/** The most runs in progress at once in a conversation. */
function mostAtOnce(frames: Frame[], conversationId: string): number {
  let most = 0;
  let now = 0;
  for (const { event, data } of frames) {
    if (data.conversationId !== conversationId) continue;
    if (event === "run.started") most = Math.max(most, ++now);
    else if (ENDS.test(event)) now--;
  }
  return most;
}

async function wholeHistory(
  path: string,
  conversationId: string,
): Promise<{ role: string; message: string; runId: string }[]> {
  const all = [];
  for (let after = ""; ; ) {
    const { body } = await ask("GET", `${path}/messages?limit=100&conversationId=${conversationId}${after}`);
    all.push(...body.data);
    if (!body.hasMore) return all;
    after = `&after=${body.nextCursor}`;
  }
}
