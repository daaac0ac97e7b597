import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { z } from "zod";
import { Reply } from "../../src/http/answer.ts";
import type { ServingParts } from "../../src/http/exchange.ts";
import { createIdempotency } from "../../src/http/idempotency.ts";
import { type Route, route } from "../../src/http/route.ts";
import { AppError, type ErrorCode } from "../../src/lib/app-error.ts";
import { DAY, handClock, SECOND } from "../lib/hand-clock.ts";
import { type Ground, openGround, serve } from "../support/route-harness.ts";
import { type Person, startTestServer, type TestServer } from "../support/test-server.ts";

const clock = handClock();
let server: TestServer;
let owner: Person;
let keys = 0;
let key: Record<string, string>;

beforeAll(async () => {
  server = await startTestServer({}, { clock });
});
beforeEach(async () => {
  owner = await server.signUp();
  key = { "Idempotency-Key": `key-${++keys}` };
});
afterAll(() => server.stop());

const create = (name = "one", headers = key, who = owner) => who.ask("POST", "/v1/instances", { name }, headers);
const countInstances = async (who = owner) => (await who.ask("GET", "/v1/instances")).body.data.length;

describe("a request with a key", () => {
  test("is done once; its repetition gets the first answer, marked as a replay", async () => {
    const first = await create();
    const again = await create();
    expect(first.status).toBe(201);
    expect(first.headers.has("idempotent-replayed")).toBe(false);
    expect(again.status).toBe(201);
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect(again.headers.get("cache-control")).toBe("no-store");
    expect(again.headers.get("x-request-id")).not.toBe(first.headers.get("x-request-id"));
    expect(again.body).toEqual(first.body);
    expect(await countInstances()).toBe(1);
  });

  test("may not be repeated with another body, path or query: 409", async () => {
    const { body } = await create();
    const others = [
      await create("another"),
      await owner.ask("POST", "/v1/auth/keys", { name: "one" }, key),
      await owner.ask("POST", "/v1/instances?x=1", { name: "one" }, key),
      await owner.ask("POST", `/v1/instances/${body.instanceId}/stop`, undefined, key),
    ];
    for (const { status, body, headers } of others) {
      expect([status, body.error.code]).toEqual([409, "conflict"]);
      expect(headers.has("retry-after")).toBe(false);
      expect(headers.has("idempotent-replayed")).toBe(false);
    }
    expect((await create()).headers.get("idempotent-replayed")).toBe("true");
  });

  test("belongs to the account: another account's same key is another request", async () => {
    const other = await server.signUp();
    await create();
    const theirs = await create("theirs", key, other);
    expect(theirs.headers.has("idempotent-replayed")).toBe(false);
    expect(await countInstances(other)).toBe(1);
  });

  test("is the same request with any of the account's credentials", async () => {
    const { body } = await owner.ask("POST", "/v1/auth/keys", {});
    const first = await create();
    const again = await server.ask("POST", "/v1/instances", { key: body.key, body: { name: "one" }, headers: key });
    expect(again.body).toEqual(first.body);
  });

  test("replays an error of the operation: 400, 404, 409, with the repetition's own request id and format", async () => {
    const { body } = await create("holder", {});
    const agents = `/v1/instances/${body.instanceId}/agents`;
    await owner.ask("POST", agents, { name: "Ada", slug: "ada" });
    const cases: [string, unknown, number][] = [
      ["/v1/instances", { name: "" }, 400],
      ["/v1/instances/inst_nowhere/stop", {}, 404],
      [agents, { name: "Ada", slug: "ada" }, 409],
    ];
    for (const [path, sent, status] of cases) {
      const headers = { "Idempotency-Key": `error-${status}` };
      const first = await owner.ask("POST", path, sent, headers);
      const again = await owner.ask("POST", path, sent, headers);
      expect([first.status, again.status]).toEqual([status, status]);
      expect(again.headers.get("idempotent-replayed")).toBe("true");
      expect(again.body.error.message).toBe(first.body.error.message);
      expect(again.body.error.requestId).toBe(again.headers.get("x-request-id"));
      const accept = { ...headers, Accept: "application/problem+json" };
      const problem = await owner.ask("POST", path, sent, accept);
      expect(problem.headers.get("content-type")).toStartWith("application/problem+json");
      expect(problem.body).toMatchObject({ status, detail: first.body.error.message });
    }
  });

  test("continues after a 402, once the account can pay", async () => {
    const poor = await server.signUp(undefined, "0.10");
    expect((await create("one", key, poor)).status).toBe(402);
    expect((await create("one", key, poor)).headers.has("idempotent-replayed")).toBe(false);
    server.foundation.ledger.post({
      type: "credit",
      accountId: poor.accountId,
      amount: 1_000_000n,
      against: "grants",
    });
    const paid = await create("one", key, poor);
    expect(paid.status).toBe(201);
    expect((await create("one", key, poor)).body).toEqual(paid.body);
  });

  test("stores nothing for a 401 or a 403", async () => {
    const reader = await owner.ask("POST", "/v1/auth/keys", { scopes: ["read"] });
    const sent = { body: { name: "one" }, headers: key };
    expect((await server.ask("POST", "/v1/instances", { ...sent, token: "nobody" })).status).toBe(401);
    expect((await server.ask("POST", "/v1/instances", { ...sent, key: reader.body.key })).status).toBe(403);
    const first = await create();
    expect([first.status, first.headers.has("idempotent-replayed")]).toEqual([201, false]);
  });

  test("stores nothing for a body over the limit, which is checked after the resource", async () => {
    const huge = "x".repeat(1024 * 1024 + 1);
    expect((await create(huge)).status).toBe(413);
    const nowhere = await owner.ask("POST", "/v1/instances/inst_nowhere/agents", { name: huge }, key);
    expect(nowhere.status).toBe(404);
    expect((await create()).headers.has("idempotent-replayed")).toBe(false);
  });

  test("is remembered for 24 hours and then forgotten", async () => {
    const first = await create();
    clock.advance(DAY - SECOND);
    owner.token = (await renew(owner)).token;
    expect((await owned(owner)).body).toEqual(first.body);
    clock.advance(2 * SECOND);
    const later = await owned(owner);
    expect(later.status).toBe(201);
    expect(later.body.instanceId).not.toBe(first.body.instanceId);
    expect((await owned(owner)).body).toEqual(later.body);
  });

  test("has its answer on disk for 24 hours, and removed after that", async () => {
    await create();
    const { store } = server.foundation;
    const { prune } = createIdempotency(store, clock, Buffer.alloc(32));
    const stored = () => {
      while (store.transaction(() => prune(100)));
      return store.sqlite.query("SELECT key FROM idempotent_requests WHERE account_id = ?").values(owner.accountId);
    };
    clock.advance(DAY - SECOND);
    expect(stored()).toHaveLength(1);
    clock.advance(2 * SECOND);
    expect(stored()).toEqual([]);
  });

  test("is remembered across a restart", async () => {
    const first = await create();
    await server.restart();
    const again = await create();
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect(again.body).toEqual(first.body);
    expect(await countInstances()).toBe(1);
  });

  test("that creates an API key replays the record without the key, which is stored nowhere", async () => {
    const first = await owner.ask("POST", "/v1/auth/keys", { name: "k" }, key);
    const again = await owner.ask("POST", "/v1/auth/keys", { name: "k" }, key);
    const { key: secret, ...record } = first.body;
    expect(secret).toStartWith("rst_live_");
    expect(again.status).toBe(201);
    expect(again.body).toEqual(record);
    expect((await owner.ask("GET", "/v1/auth/keys")).body.data).toHaveLength(1);
    const rows = server.foundation.store.sqlite.query("SELECT body FROM idempotent_requests").all();
    expect(JSON.stringify(rows)).not.toContain(secret);
  });
});

/** A token of the same account that is still valid by the moved clock. */
async function renew(person: Person): Promise<{ token: string }> {
  const token = server.foundation.links.create(person.email, 0n);
  return (await server.ask("POST", "/v1/auth/redeem-link", { body: { link: token } })).body;
}
const owned = ({ token }: Person) =>
  server.ask("POST", "/v1/instances", { token, body: { name: "one" }, headers: key });

describe("the header", () => {
  test.each([
    ["255 characters", "k".repeat(255), 201],
    ["one character", "!", 201],
    ["256 characters", "k".repeat(256), 400],
    ["a space within", "a b", 400],
    ["a letter beyond ASCII", "caf\u00e9", 400],
    ["nothing", "", 400],
  ])("of %s", async (_, value, status) => {
    const answer = await create("one", { "Idempotency-Key": value });
    expect(answer.status).toBe(status);
    if (status === 400) expect(answer.body.error.message).toStartWith("Idempotency-Key: expected 1 to 255");
  });

  test("that is invalid is reported after a missing resource, and nothing is done", async () => {
    const { body } = await create("one", {});
    const bad = { "Idempotency-Key": "a b" };
    expect((await owner.ask("POST", "/v1/instances/inst_x/stop", undefined, bad)).status).toBe(404);
    expect((await owner.ask("POST", `/v1/instances/${body.instanceId}/stop`, undefined, bad)).status).toBe(400);
    expect((await owner.ask("GET", `/v1/instances/${body.instanceId}`)).body.status).toBe("running");
  });

  test("is ignored by routes that are repeated on purpose: send-code and verify-code", async () => {
    const body = { email: owner.email, code: "00000000" };
    const again = () => server.ask("POST", "/v1/auth/verify-code", { body, headers: { "Idempotency-Key": "a b" } });
    expect([(await again()).status, (await again()).status]).toEqual([401, 401]);
    const other = await server.ask("POST", "/v1/auth/send-code", {
      body: { email: "x@example.com" },
      headers: { "Idempotency-Key": "a b" },
    });
    expect(other.body.error.code).toBe("invite_required");
  });

  test("is ignored for other methods", async () => {
    const { body } = await create("one", {});
    const patch = (name: string) => owner.ask("PATCH", `/v1/instances/${body.instanceId}`, { name }, key);
    expect((await patch("two")).body.name).toBe("two");
    expect((await patch("three")).body.name).toBe("three");
  });
});

/** A route that does what the test says, served by the real plumbing. */
function room(operate: () => unknown, partsOf: (ground: Ground) => Partial<ServingParts> = () => ({})) {
  const ground = openGround();
  const table: Route[] = [
    route({
      method: "POST",
      path: "/v1/do",
      name: "doIt",
      tag: "host",
      summary: "Do it",
      access: "write",
      bound: "record",
      answer: z.unknown(),
      handle: () => operate(),
    }),
  ];
  const server = serve(table, ground, partsOf(ground));
  const caller = ground.account();
  return {
    caller,
    ask: () => server.send(caller, "POST", "/v1/do", undefined, { "Idempotency-Key": "k" }),
    askOther: () => server.send(caller, "POST", "/v1/do", { other: 1 }, { "Idempotency-Key": "k" }),
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await ground[Symbol.asyncDispose]();
    },
  };
}

describe("an operation", () => {
  test("that is still running refuses its repetition, and a different one, at once", async () => {
    const started = Promise.withResolvers<void>();
    const finish = Promise.withResolvers<{ done: true }>();
    await using one = room(() => {
      started.resolve();
      return finish.promise;
    });
    const first = one.ask();
    await started.promise;
    const again = await one.ask();
    expect([again.status, again.body.error.code, again.headers.get("retry-after")]).toEqual([409, "conflict", "1"]);
    const other = await one.askOther();
    expect([other.status, other.headers.has("retry-after")]).toEqual([409, false]);
    finish.resolve({ done: true });
    expect((await first).body).toEqual({ done: true });
    const after = await one.ask();
    expect([after.status, after.headers.get("idempotent-replayed")]).toEqual([200, "true"]);
  });

  const kept: [ErrorCode, number | undefined, boolean][] = [
    ["invalid_request", undefined, true],
    ["not_found", undefined, true],
    ["conflict", undefined, true],
    ["unauthorized", undefined, false],
    ["payment_required", undefined, false],
    ["forbidden", undefined, false],
    ["invite_required", undefined, false],
    ["payload_too_large", undefined, false],
    ["rate_limited", undefined, false],
    ["internal_error", undefined, false],
    ["internal_error", 503, false],
    ["model_error", undefined, false],
    ["loop_detected", undefined, false],
    ["instance_not_ready", undefined, false],
  ];
  test.each(kept)("that fails with %s (%p) is stored: %p", async (code, status, isKept) => {
    let times = 0;
    await using one = room(() => {
      times++;
      throw new AppError(code, "no", status === undefined ? {} : { status });
    });
    const first = await one.ask();
    const again = await one.ask();
    expect(again.status).toBe(first.status);
    expect(again.headers.get("idempotent-replayed")).toBe(isKept ? "true" : null);
    expect(times).toBe(isKept ? 1 : 2);
  });

  test.each([
    ["an answer", () => ({ done: true })],
    [
      "an error",
      () => {
        throw new AppError("not_found", "no");
      },
    ],
  ])("that commits nothing has %p stored in a commit that others share, in its account's turn", async (_, operate) => {
    const owners: (string | undefined)[] = [];
    let ownCommits = 0;
    await using one = room(operate, ({ store }) => {
      const { transaction } = store;
      store.transaction = (work) => {
        if (!store.sqlite.inTransaction) ownCommits++;
        return transaction(work);
      };
      const shared = <T>(work: () => T, accountId?: string) => {
        owners.push(accountId);
        return store.commitSoon(work, "full", accountId);
      };
      return { commits: { shared, alone: async (work) => store.transaction(work) } };
    });
    const { status } = await one.ask();
    expect(owners).toEqual([one.caller.accountId]);
    expect(ownCommits).toBe(0);
    const again = await one.ask();
    expect([again.status, again.headers.get("idempotent-replayed")]).toEqual([status, "true"]);
    expect(owners.length).toBe(1);
  });

  test("that fails unexpectedly is not stored", async () => {
    let times = 0;
    await using one = room(() => {
      if (++times === 1) throw new Error("SECRET: disk on fire");
      return { done: true };
    });
    const failed = await one.ask();
    expect(failed.status).toBe(500);
    expect(JSON.stringify(failed.body)).not.toContain("SECRET");
    expect((await one.ask()).body).toEqual({ done: true });
  });

  test("keeps its own status for the replay", async () => {
    await using one = room(() => new Reply(202, { later: true }));
    expect((await one.ask()).status).toBe(202);
    const again = await one.ask();
    expect([again.status, again.body]).toEqual([202, { later: true }]);
  });
});
