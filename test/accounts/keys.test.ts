import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { createKeys } from "../../src/accounts/keys.ts";
import { findBreak } from "../../src/storage/audit-verify.ts";
import { DAY, handClock, MINUTE, SECOND } from "../lib/hand-clock.ts";
import { type Person, startTestServer, type TestServer } from "../support/test-server.ts";

const clock = handClock();
let server: TestServer;
let owner: Person;

beforeAll(async () => {
  server = await startTestServer({}, { clock });
});
beforeEach(async () => {
  owner = await server.signUp();
});
afterAll(() => server.stop());

const create = async (input?: unknown) => owner.ask("POST", "/v1/auth/keys", input);
const statusOf = async (key: string) => (await server.ask("GET", "/v1/auth/me", { key })).status;

describe("POST /v1/auth/keys", () => {
  test("creates a key with all scopes and shows it only once: 201", async () => {
    const { status, body } = await create();
    expect([status, body]).toEqual([
      201,
      {
        keyId: expect.stringMatching(/^key_[0-9a-f]{32}$/),
        name: null,
        key: expect.stringMatching(/^rst_live_[0-9A-Za-z]{55}$/),
        prefix: body.key.slice(0, "rst_live_ab12cd".length),
        scopes: ["read", "write", "chat"],
        instanceId: null,
        createdAt: new Date(clock.now()).toISOString(),
        expiresAt: null,
        lastUsedAt: null,
      },
    ]);
    const { key, ...record } = body;
    expect((await owner.ask("GET", "/v1/auth/keys")).body.data).toEqual([record]);
  });

  test("takes a name, scopes in any order, an instance and an expiry", async () => {
    const { instanceId } = (await owner.ask("POST", "/v1/instances", { name: "one" })).body;
    const expiresAt = new Date(clock.now() + MINUTE).toISOString();
    const { body } = await create({ name: " bot ", scopes: ["chat", "read", "chat"], instanceId, expiresAt });
    expect(body).toMatchObject({ name: "bot", scopes: ["read", "chat"], instanceId, expiresAt });
    const nulls = await create({ name: null, instanceId: null, expiresAt: null });
    expect(nulls.status).toBe(201);
  });

  test.each([
    [{ name: "" }, "name: expected 1 to 100 characters"],
    [{ name: "x".repeat(101) }, "name: expected 1 to 100 characters"],
    [{ scopes: [] }, "scopes: expected a list of at least one of read, write, chat, approve"],
    [{ scopes: ["admin"] }, "scopes.0: expected a list of at least one of read, write, chat, approve"],
    [{ scopes: "read" }, "scopes: expected a list of at least one of read, write, chat, approve"],
    [{ instanceId: 7 }, "instanceId: expected an instance's id"],
    [{ expiresAt: "tomorrow" }, "expiresAt: expected a time in ISO 8601, such as 2026-11-21T10:00:00.000Z"],
    [{ expiresAt: 1 }, "expiresAt: expected a time in ISO 8601, such as 2026-11-21T10:00:00.000Z"],
    [{ expiresAt: "2001-01-01T00:00:00Z" }, "expiresAt: expected a time in the future"],
  ])("refuses %j", async (input, message) => {
    const { status, body } = await create(input);
    expect([status, body.error.message]).toEqual([400, message]);
    expect((await owner.ask("GET", "/v1/auth/keys")).body.data).toEqual([]);
  });

  test("refuses an expiry at this very moment", async () => {
    expect((await create({ expiresAt: new Date(clock.now()).toISOString() })).status).toBe(400);
  });

  test("refuses an instance that does not exist or is somebody else's: 404", async () => {
    const stranger = await server.signUp();
    const { instanceId } = (await stranger.ask("POST", "/v1/instances", { name: "theirs" })).body;
    for (const id of [instanceId, `inst_${"0".repeat(32)}`, "x", ""]) {
      const { status, body } = await create({ instanceId: id });
      expect([status, body.error.message]).toEqual([404, "instance not found"]);
    }
  });

  test("stores the key itself nowhere on disk", async () => {
    const { key } = (await create({ name: "secret" })).body;
    await statusOf(key);
    const files = readdirSync(server.dataDir, { recursive: true }) as string[];
    const holding = files.filter((name) => {
      const path = join(server.dataDir, name);
      return existsSync(path) && statSync(path).isFile() && readFileSync(path).includes(key);
    });
    expect(holding).toEqual([]);
  });
});

describe("a key", () => {
  test("works as X-API-Key and as a Bearer token", async () => {
    const { key } = (await create()).body;
    expect(await statusOf(key)).toBe(200);
    expect((await server.ask("GET", "/v1/auth/me", { token: key })).body.accountId).toBe(owner.accountId);
  });

  test("with a typo costs no look-up", async () => {
    const { key } = (await create()).body as { key: string };
    const { sqlite } = server.foundation.store;
    const swapped = key.slice(0, 20) + (key[20] === "a" ? "b" : "a") + key.slice(21);
    expect(await statusOf(swapped)).toBe(401);
    // Without the table, a look-up would be a 500.
    sqlite.run("ALTER TABLE api_keys RENAME TO hidden_keys");
    try {
      for (const typo of [swapped, key.slice(0, -1), `${key}a`, key.toLowerCase(), "rst_live_", "x".repeat(64)]) {
        expect(await statusOf(typo)).toBe(401);
      }
    } finally {
      sqlite.run("ALTER TABLE hidden_keys RENAME TO api_keys");
    }
    expect(await statusOf(key)).toBe(200);
  });

  test("works until it expires", async () => {
    const expiresAt = new Date(clock.now() + MINUTE).toISOString();
    const { key } = (await create({ expiresAt })).body;
    clock.advance(MINUTE - 1);
    expect(await statusOf(key)).toBe(200);
    clock.advance(1);
    expect(await statusOf(key)).toBe(401);
  });

  test("shows when it was last used, to the minute, and its use from a new address is audited", async () => {
    const { key, keyId } = (await create()).body;
    await statusOf(key);
    const lastUsed = async () => {
      // A use is written with the next commit, which its request does not wait for.
      await server.foundation.store.commitSoon(() => {}, "process");
      return (await owner.ask("GET", "/v1/auth/keys")).body.data[0].lastUsedAt;
    };
    const first = new Date(clock.now()).toISOString();
    expect(await lastUsed()).toBe(first);
    clock.advance(MINUTE - SECOND);
    await statusOf(key);
    expect(await lastUsed()).toBe(first);
    clock.advance(SECOND);
    await statusOf(key);
    expect(await lastUsed()).toBe(new Date(clock.now()).toISOString());
    const { audit } = server.foundation;
    const told = audit.read(0, 10_000).filter(({ subject }) => subject === keyId);
    expect(told.map(({ action }) => action)).toEqual(["key.create", "key.new_address"]);
    expect(findBreak(server.foundation.store)).toBeNull();
  });

  describe("used from a new address", () => {
    let proxied: TestServer;
    let person: Person;
    let key: string;
    let keyId: string;
    const use = async (address: string, method = "GET") => {
      const headers = { "X-Forwarded-For": address };
      const body = method === "GET" ? {} : { body: { name: "x" } };
      return (await proxied.ask(method, "/v1/auth/me", { key, headers, ...body })).status;
    };
    const told = () =>
      proxied.foundation.audit
        .read(0, 10_000)
        .filter(({ subject, action }) => subject === keyId && action === "key.new_address")
        .map(({ detail }) => JSON.parse(detail).address);

    beforeAll(async () => {
      proxied = await startTestServer({ ROOST_TRUST_PROXY: "true" }, { clock });
    });
    beforeEach(async () => {
      person = await proxied.signUp();
      ({ key, keyId } = (await person.ask("POST", "/v1/auth/keys", {})).body);
    });
    afterAll(() => proxied.stop());

    test("is in the audit log at once, also for a read right after one by the owner", async () => {
      expect([await use("203.0.113.1"), await use("203.0.113.2"), await use("203.0.113.3", "PATCH")]).toEqual([
        200, 200, 200,
      ]);
      expect(told()).toEqual(["203.0.113.1", "203.0.113.2", "203.0.113.3"]);
    });

    test("is logged once, however addresses alternate, and after a restart not again if it was the last one", async () => {
      for (let round = 0; round < 3; round++) {
        for (const address of ["203.0.113.1", "203.0.113.2"]) await use(address);
        clock.advance(2 * MINUTE);
      }
      expect(told()).toEqual(["203.0.113.1", "203.0.113.2"]);
      await proxied.restart();
      await use("203.0.113.1");
      expect(told()).toHaveLength(2);
      await use("203.0.113.2");
      expect(told()).toEqual(["203.0.113.1", "203.0.113.2", "203.0.113.2"]);
    });

    test("while nothing can be written is answered all the same, and logged once, by its next use", async () => {
      const { store } = proxied.foundation;
      store.sqlite.run(`CREATE TEMP TRIGGER full BEFORE UPDATE ON main.api_keys
        BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END`);
      expect([await use("203.0.113.1"), told()]).toEqual([200, []]);
      store.sqlite.run("DROP TRIGGER full");
      for (let again = 0; again < 2; again++) await use("203.0.113.1");
      expect(told()).toEqual(["203.0.113.1"]);
      expect(findBreak(store)).toBeNull();
    });

    test("is remembered for a hundred addresses, and the oldest is forgotten first", async () => {
      for (let at = 0; at < 101; at++) await use(`203.0.113.${at}`);
      expect(told()).toHaveLength(101);
      for (let at = 100; at > 0; at--) await use(`203.0.113.${at}`);
      expect(told()).toHaveLength(101);
      await use("203.0.113.0");
      expect(told()).toHaveLength(102);
    });
  });

  test("that is revoked stops working; revoking it again is 404, also for a stranger", async () => {
    const stranger = await server.signUp();
    const { key, keyId } = (await create()).body;
    expect((await stranger.ask("DELETE", `/v1/auth/keys/${keyId}`)).status).toBe(404);
    expect(await statusOf(key)).toBe(200);
    const gone = await owner.ask("DELETE", `/v1/auth/keys/${keyId}`);
    expect([gone.status, gone.body]).toEqual([200, { keyId, deleted: true }]);
    expect(await statusOf(key)).toBe(401);
    expect((await owner.ask("DELETE", `/v1/auth/keys/${keyId}`)).status).toBe(404);
  });

  test("limited to an instance that is deleted sees nothing and stays valid", async () => {
    const { instanceId } = (await owner.ask("POST", "/v1/instances", { name: "one" })).body;
    const { key } = (await create({ instanceId })).body;
    await owner.ask("DELETE", `/v1/instances/${instanceId}`);
    expect((await server.ask("GET", "/v1/instances", { key })).body.data).toEqual([]);
    expect((await server.ask("GET", `/v1/instances/${instanceId}`, { key })).status).toBe(404);
  });
});

describe("an account has at most a hundred keys", () => {
  const newKeys = (count: number, expiresAt?: string) =>
    Promise.all(Array.from({ length: count }, () => create(expiresAt === undefined ? {} : { expiresAt })));
  const countRows = (accountId: string) =>
    Number(
      server.foundation.store.sqlite
        .query("SELECT count(*) FROM api_keys WHERE account_id = ?")
        .values(accountId)
        .flat()[0],
    );

  test("also if two hundred are requested at once: 409 that names the quota", async () => {
    const made = await newKeys(200);
    expect(made.filter(({ status }) => status === 201)).toHaveLength(100);
    const refused = made.filter(({ status }) => status === 409);
    expect(new Set(refused.map(({ body }) => body.error.code))).toEqual(new Set(["conflict"]));
    expect(refused[0]?.body.error.message).toBe(
      "API keys: expected at most 100 for an account; this would make it 101",
    );
    expect(countRows(owner.accountId)).toBe(100);
    await owner.ask("DELETE", `/v1/auth/keys/${made.find(({ status }) => status === 201)?.body.keyId}`);
    expect((await create()).status).toBe(201);
    expect((await create()).status).toBe(409);
    const stranger = await server.signUp();
    expect((await stranger.ask("POST", "/v1/auth/keys", {})).status).toBe(201);
  });

  test("not counting expired ones, of which a hundred are kept", async () => {
    for (let round = 0; round < 3; round++) {
      const made = await newKeys(100, new Date(clock.now() + MINUTE).toISOString());
      expect(made.filter(({ status }) => status === 201)).toHaveLength(100);
      clock.advance(MINUTE);
    }
    expect((await create()).status).toBe(201);
    expect(countRows(owner.accountId)).toBe(101);
  });

  test("of which those that expired thirty days ago are removed, one slice at a time; valid ones stay", async () => {
    const lasting = (await create()).body.key;
    await newKeys(7, new Date(clock.now() + MINUTE).toISOString());
    const keys = createKeys(server.foundation.store, clock, server.foundation.audit);
    // Keys of earlier tests are removed first.
    clock.advance(30 * DAY);
    while (keys.prune(100));
    expect(countRows(owner.accountId)).toBe(8);
    clock.advance(MINUTE + 1);
    const everyKey = () =>
      Number(server.foundation.store.sqlite.query("SELECT count(*) FROM api_keys").values().flat()[0]);
    const before = everyKey();
    expect([keys.prune(3), before - everyKey()]).toEqual([true, 3]);
    while (keys.prune(3));
    expect(countRows(owner.accountId)).toBe(1);
    expect(await statusOf(lasting)).toBe(200);
  });
});

describe("PATCH /v1/auth/me", () => {
  test("changes the name and the monthly limit, each on its own", async () => {
    const named = await owner.ask("PATCH", "/v1/auth/me", { name: " Ada " });
    expect([named.status, named.body.name, named.body.limits.monthlyLimit]).toEqual([200, "Ada", null]);
    const limited = await owner.ask("PATCH", "/v1/auth/me", { monthlyLimit: "12.5" });
    expect([limited.body.name, limited.body.limits.monthlyLimit]).toEqual(["Ada", "12.500000"]);
    const freed = await owner.ask("PATCH", "/v1/auth/me", { monthlyLimit: null });
    expect(freed.body.limits.monthlyLimit).toBeNull();
    expect((await owner.ask("GET", "/v1/auth/me")).body).toEqual(freed.body);
  });

  test.each([
    [{}],
    [{ email: "other@example.com" }],
    [{ name: "" }],
    [{ name: null }],
    [{ monthlyLimit: 5 }],
    [{ monthlyLimit: "-1" }],
    [{ monthlyLimit: "1.0000001" }],
    [{ monthlyLimit: "1e3" }],
    [{ monthlyLimit: "1234567890" }],
    [{ monthlyLimit: "" }],
  ])("refuses %j", async (input) => {
    expect((await owner.ask("PATCH", "/v1/auth/me", input)).status).toBe(400);
  });
});
