import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHash, randomBytes } from "node:crypto";
import { z } from "zod";
import { createIdempotency } from "../../src/http/idempotency.ts";
import { idempotencyQueries } from "../../src/http/queries.ts";
import { route } from "../../src/http/route.ts";
import { type Caller, requireVisible } from "../../src/limits/caller.ts";
import { DAY, handClock } from "../lib/hand-clock.ts";
import { plansOf } from "../support/query-plans.ts";
import { openGround, serve } from "../support/route-harness.ts";
import { type Person, startTestServer, type TestServer } from "../support/test-server.ts";
import { rawRequest } from "./raw-request.ts";

let server: TestServer;
let owner: Person;
let instanceId: string;
let agentId: string;
/** A key of the same account, limited to another instance. */
let elsewhere: string;

beforeAll(async () => {
  // Every address, so that any Host is answered.
  server = await startTestServer({ ROOST_HOST: "0.0.0.0" });
  owner = await server.signUp();
  const made = async (path: string, body: unknown) => (await owner.ask("POST", path, body)).body;
  ({ instanceId } = await made("/v1/instances", { name: "one" }));
  ({ agentId } = await made(`/v1/instances/${instanceId}/agents`, { name: "Ada" }));
  const other = await made("/v1/instances", { name: "other" });
  ({ key: elsewhere } = await made("/v1/auth/keys", { instanceId: other.instanceId }));
});
afterAll(() => server.stop());

const idempotencyKey = () => ({ "Idempotency-Key": crypto.randomUUID() });
const rowsOf = (key: Record<string, string>) =>
  server.foundation.store.sqlite
    .query<{ status: number; body: string | null; record: string | null; request_mac: Uint8Array }, [string]>(
      "SELECT * FROM idempotent_requests WHERE key = ?",
    )
    .all(key["Idempotency-Key"] ?? "");

describe("a key limited to another instance", () => {
  const BODIES: Record<string, unknown> = {
    "/v1/instances/:instanceId/agents": { name: "Bob", files: { "SOUL.md": "the owner's own" } },
    "/v1/instances/:instanceId/secrets": { key: "PIN", value: "123456" },
    "/v1/instances/:instanceId/skills": { name: "code-review" },
    "/v1/instances/:instanceId/agents/:agentId/messages": { message: " " },
  };
  /** Without an instance in the path, and yet for keys that are limited to one: to them, the owner's key is just taken. */
  const FOR_ANY_KEY = new Set(["/v1/chat/completions", "/v1/responses", "/v1/embeddings", "/v1/mcp"]);
  const placed = (path: string) =>
    path
      .replace(":instanceId", instanceId)
      .replace(":agentId", agentId)
      .replace(/:\w+|\*/g, "x");

  test("gets from no route the replay of an owner's Idempotency-Key", async () => {
    const replayable: string[] = [];
    for (const { method, path, idempotent } of server.app.routes) {
      // These two would end the owner's own token.
      if (/^\/v1\/auth\/(revoke-tokens|sign-out)$/.test(path)) continue;
      if (method !== "POST" || idempotent === false) continue;
      const headers = idempotencyKey();
      const body = BODIES[path] ?? {};
      await owner.ask(method, placed(path), body, headers);
      if (rowsOf(headers).length > 0) replayable.push(path);
      const theirs = await server.ask(method, placed(path), { key: elsewhere, body, headers });
      expect([path, theirs.headers.get("idempotent-replayed")]).toEqual([path, null]);
      const told = path.includes(":instanceId")
        ? [404, "instance not found"]
        : [FOR_ANY_KEY.has(path) ? 409 : 403, expect.any(String)];
      expect([path, theirs.status, theirs.body.error.message]).toEqual([path, ...told]);
    }
    expect(replayable.length).toBeGreaterThan(5);
  });

  test("gets 404 on every path of the instance, before its body is read", async () => {
    const paths = server.app.routes.filter(({ path }) => path.includes(":instanceId"));
    expect(paths.length).toBeGreaterThan(20);
    for (const { method, path } of paths) {
      const body = method === "GET" ? {} : { body: "{", headers: { "Content-Type": "text/nonsense" } };
      const { status, body: told } = await server.ask(method, placed(path), { key: elsewhere, ...body });
      expect([method, path, status, told.error.message]).toEqual([method, path, 404, "instance not found"]);
    }
  });

  test("gets no replay of a path without an instance, except those of keys limited like it", async () => {
    await using ground = openGround();
    const table = [
      route({
        method: "POST",
        path: "/v1/do",
        name: "doIt",
        tag: "host",
        summary: "Do it",
        access: "write",
        bound: "record",
        answer: z.unknown(),
        handle: ({ caller }) => ({ seenBy: caller.instanceId }),
      }),
    ];
    await using server = serve(table, ground);
    const whole = ground.account();
    const limited = (instanceId: string): Caller => ({ ...whole, instanceId });
    const ask = (caller: Caller) => server.send(caller, "POST", "/v1/do", {}, { "Idempotency-Key": "k" });
    expect((await ask(limited("inst_a"))).body).toEqual({ seenBy: "inst_a" });
    expect((await ask(limited("inst_a"))).headers.get("idempotent-replayed")).toBe("true");
    for (const other of [limited("inst_b"), whole]) expect((await ask(other)).status).toBe(409);
  });

  test("while a key without a limit gets the replay", () => {
    expect(() => requireVisible({ instanceId: null }, "inst_a")).not.toThrow();
    expect(() => requireVisible({ instanceId: "inst_a" }, "inst_a")).not.toThrow();
    expect(() => requireVisible({ instanceId: "inst_a" }, undefined)).not.toThrow();
    expect(() => requireVisible({ instanceId: "inst_a" }, "inst_b")).toThrow("instance not found");
  });
});

test("a stolen database has no hash that reveals a request's body", async () => {
  const path = `/v1/instances/${instanceId}/secrets`;
  const body = JSON.stringify({ key: "PIN", value: "271828" });
  const [first, second] = [idempotencyKey(), idempotencyKey()];
  for (const headers of [first, second]) {
    await owner.ask("POST", path, body, { ...headers, "Content-Type": "application/json" });
  }
  const macs = [...rowsOf(first), ...rowsOf(second)].map(({ request_mac }) => Buffer.from(request_mac).toString("hex"));
  expect(new Set(macs).size).toBe(2);
  for (const guess of [body, `POST ${path}\n${body}`]) {
    expect(macs).not.toContain(createHash("sha256").update(guess).digest("hex"));
  }
});

describe("an answer of more than 64 KiB", () => {
  const texts = { "SOUL.md": "s".repeat(100_000), "NOTES.md": "n".repeat(100_000) };
  const agents = () => `/v1/instances/${instanceId}/agents`;

  test("is not stored but read again, with the first status", async () => {
    const headers = idempotencyKey();
    const input = { name: "Large", useDefaults: false, files: texts };
    const first = await owner.ask("POST", agents(), input, headers);
    const [row] = rowsOf(headers);
    const record = { agentId: first.body.agentId };
    expect([row?.status, row?.body, JSON.parse(row?.record ?? "")]).toEqual([201, null, record]);
    const again = await owner.ask("POST", agents(), input, headers);
    expect([again.status, again.headers.get("idempotent-replayed")]).toEqual([201, "true"]);
    expect(again.body).toEqual(first.body);

    const agent = `${agents()}/${first.body.agentId}`;
    await owner.ask("PATCH", agent, { displayName: "Larger" });
    expect((await owner.ask("POST", agents(), input, headers)).body.displayName).toBe("Larger");
    await owner.ask("DELETE", agent);
    const gone = await owner.ask("POST", agents(), input, headers);
    expect([gone.status, gone.headers.get("idempotent-replayed")]).toEqual([404, "true"]);
  });

  test("is read again also where its path names more than its record", async () => {
    const path = `/v1/instances/${instanceId}/agents/${agentId}/schedules`;
    const headers = idempotencyKey();
    const input = { name: "Long", message: "日".repeat(32_000), everySeconds: 31_536_000, timeZone: "UTC" };
    const first = await owner.ask("POST", path, input, headers);
    expect([first.status, rowsOf(headers)[0]?.body]).toEqual([201, null]);
    const again = await owner.ask("POST", path, input, headers);
    expect([again.status, again.headers.get("idempotent-replayed")]).toEqual([201, "true"]);
    expect(again.body).toEqual(first.body);
  });

  test("of exactly that size is stored; of other routes, the replay says that it is gone", async () => {
    await using ground = openGround();
    let times = 0;
    const long = route({
      method: "POST",
      path: "/v1/long",
      name: "sayMuch",
      tag: "host",
      summary: "Say much",
      access: "write",
      bound: "record",
      body: z.object({ length: z.int() }),
      answer: z.unknown(),
      async handle({ body }) {
        times++;
        return "x".repeat((await body()).length - 2);
      },
    });
    await using server = serve([long], ground);
    const caller = ground.account();
    const ask = (length: number) =>
      server.send(caller, "POST", "/v1/long", { length }, { "Idempotency-Key": String(length) });
    for (const length of [65_536, 65_537]) expect((await ask(length)).status).toBe(200);
    const [kept, tooLong] = [await ask(65_536), await ask(65_537)];
    expect([kept.status, kept.body.length]).toEqual([200, 65_534]);
    expect([tooLong.status, tooLong.body.error.code, tooLong.headers.get("idempotent-replayed")]).toEqual([
      409,
      "conflict",
      "true",
    ]);
    expect(times).toBe(2);
  });
});

describe("an account's stored answers", () => {
  const asked = { method: "POST", path: "/", limitedTo: null, payment: null, body: new Uint8Array() };

  test("are at most 10,000: each new one replaces the oldest, found by the index", async () => {
    await using ground = openGround();
    const { store, clock } = ground;
    const idempotency = createIdempotency(store, clock, randomBytes(32));
    const add = ({ accountId }: Caller, key: string) => {
      const judged = idempotency.begin(accountId, key, asked);
      if (judged.kind === "first") judged.attempt.save({ status: 200, body: "{}" });
    };
    const [busy, quiet] = [ground.account(), ground.account()];
    add(quiet, "1");
    store.sqlite.run(
      `WITH RECURSIVE places(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM places WHERE n < 9999)
       INSERT INTO idempotent_requests SELECT ?, 'key ' || n, n, x'', 200, '{}', NULL, NULL, 0 FROM places`,
      [busy.accountId],
    );
    for (let at = 1; at <= 4; at++) add(busy, String(at));
    const held = ({ accountId }: Caller) =>
      store.sqlite
        .query("SELECT count(*) AS n, min(place) AS oldest FROM idempotent_requests WHERE account_id = ?")
        .get(accountId);
    expect(held(busy)).toEqual({ n: 10_000, oldest: 4 });
    expect(held(quiet)).toEqual({ n: 1, oldest: 1 });
    const plans = plansOf(store, () => {
      const row = { accountId: busy.accountId, key: "one more", requestMac: Buffer.alloc(32), status: 200, body: "{}" };
      idempotencyQueries(store.db).save({ ...row, record: null, runId: null, createdAt: 0 }, 10_000);
    });
    expect(plans.filter((plan) => /SCAN|TEMP B-TREE/.test(plan))).toEqual([]);
    expect(plans.filter((plan) => /SEARCH.*by_place/.test(plan))).toHaveLength(2);
  });

  test("are forgotten after a day, in slices", async () => {
    const clock = handClock();
    await using ground = openGround(clock);
    const { store } = ground;
    const idempotency = createIdempotency(store, clock, randomBytes(32));
    const { accountId } = ground.account();
    const add = (key: string) => {
      const judged = idempotency.begin(accountId, key, asked);
      if (judged.kind === "first") judged.attempt.save({ status: 200, body: "{}" });
    };
    store.transaction(() => {
      for (let at = 0; at < 250; at++) add(`old ${at}`);
    });
    clock.advance(DAY + 1);
    add("new");
    let slices = 1;
    while (store.transaction(() => idempotency.prune(100))) slices++;
    expect(slices).toBe(3);
    expect(store.sqlite.query("SELECT key FROM idempotent_requests").all()).toEqual([{ key: "new" }]);
  });
});

test.each([
  ["a b", 201],
  ["[", 201],
  ["x:y:z", 201],
  // A short host name is a valid one.
  ["app", 201],
])("a Host of %p with an Idempotency-Key is no fault of the host", async (host, expected) => {
  const body = JSON.stringify({ name: "raw" });
  const head = [
    "POST /v1/instances HTTP/1.1",
    `Host: ${host}`,
    `Authorization: Bearer ${owner.token}`,
    `Idempotency-Key: ${crypto.randomUUID()}`,
    "Content-Type: application/json",
    `Content-Length: ${body.length}`,
    "",
    body,
  ].join("\r\n");
  const { status } = await rawRequest(server.url.replace("0.0.0.0", "127.0.0.1"), head);
  expect(status).toBe(expected);
});
