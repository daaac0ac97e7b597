import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { findBreak } from "../../src/storage/audit-verify.ts";
import { HOUR, handClock, MINUTE, SECOND } from "../lib/hand-clock.ts";
import { type Person, startTestServer, type TestServer } from "../support/test-server.ts";

const clock = handClock();
let server: TestServer;
let owner: Person;
let secrets: string;

beforeAll(async () => {
  server = await startTestServer({ ROOST_TRUST_PROXY: "true" }, { clock });
});
beforeEach(async () => {
  owner = await server.signUp();
  const { body } = await owner.ask("POST", "/v1/instances", { name: "one" });
  secrets = `/v1/instances/${body.instanceId}/secrets`;
});
afterAll(() => server.stop());

/** Fills the owner's allowance. */
function fill(): void {
  const { audit, store } = server.foundation;
  const entry = { actor: owner.accountId, action: "secret.set", subject: "inst" };
  store.transaction(() => {
    for (;;) {
      try {
        audit.append(entry);
      } catch {
        return;
      }
    }
  });
}
const rowsOf = (actor: string, action = "%") =>
  server.foundation.store.sqlite
    .query<{ n: number }, [string, string]>("SELECT count(*) AS n FROM audit WHERE actor = ? AND action LIKE ?")
    .get(actor, action)?.n ?? 0;
const write = (key = "A", who = owner) => who.ask("POST", secrets, { key, value: "v" });

test("an account fills the log with a thousand rows and then 200 an hour: 429 with Retry-After, and nothing is done", async () => {
  fill();
  const before = rowsOf(owner.accountId);
  expect(before).toBeLessThanOrEqual(1_002);
  const refused = await write();
  expect([refused.status, refused.body.error.code, refused.headers.get("retry-after")]).toEqual([
    429,
    "rate_limited",
    "18",
  ]);
  expect((await owner.ask("POST", "/v1/auth/keys", {})).status).toBe(429);
  expect((await owner.ask("GET", secrets)).body.data).toEqual([]);
  expect(rowsOf(owner.accountId)).toBe(before);
  clock.advance(18 * SECOND);
  expect([(await write()).status, (await write()).status]).toEqual([201, 429]);
  clock.advance(HOUR);
  let written = 0;
  const { audit, store } = server.foundation;
  store.transaction(() => {
    for (; written < 300; written++) {
      try {
        audit.append({ actor: owner.accountId, action: "secret.set", subject: "inst" });
      } catch {
        return;
      }
    }
  });
  expect(written).toBe(200);
  expect(findBreak(store)).toBeNull();
});

test("a request that writes a hundred secrets is one row, and is charged by its bytes", async () => {
  const names = Array.from({ length: 100 }, (_, at) => `NAME_${at}_${"X".repeat(90)}`);
  const before = rowsOf(owner.accountId);
  const all = { secrets: Object.fromEntries(names.map((name) => [name, "v"])) };
  expect((await owner.ask("POST", secrets, all)).status).toBe(201);
  expect(rowsOf(owner.accountId)).toBe(before + 1);
  // 10 KB a row: not a thousand of them but fifty.
  const { store, audit } = server.foundation;
  let times = 1;
  store.transaction(() => {
    for (; times < 200; times++) {
      try {
        const detail = { keys: names.join(" ") };
        audit.append({ actor: owner.accountId, action: "secret.set", subject: "inst", detail });
      } catch {
        return;
      }
    }
  });
  expect(times).toBeGreaterThan(40);
  expect(times).toBeLessThan(60);
});

test("signing in, revoking, paying, the operator and other accounts are never refused", async () => {
  const { body: made } = await owner.ask("POST", "/v1/auth/keys", {});
  fill();
  const link = server.foundation.links.create(owner.email, 0n);
  const signIns = rowsOf(owner.accountId, "sign_in");
  const signedIn = await server.ask("POST", "/v1/auth/redeem-link", { body: { link } });
  expect(signedIn.status).toBe(200);
  expect(rowsOf(owner.accountId, "sign_in")).toBe(signIns + 1);
  owner.token = signedIn.body.token;
  const { token } = owner;
  expect((await server.ask("DELETE", `/v1/auth/keys/${made.keyId}`, { token })).status).toBe(200);
  expect(rowsOf(owner.accountId, "key.revoke")).toBe(1);
  expect((await server.ask("POST", "/v1/auth/revoke-tokens", { token })).status).toBe(200);
  expect((await server.ask("GET", "/v1/auth/me", { token })).status).toBe(401);
  const { audit, accounts } = server.foundation;
  audit.append({ actor: owner.accountId, action: "payment.credit", subject: "txn" });
  accounts.setSuspended(owner.accountId, true);
  accounts.setSuspended(owner.accountId, false);
  const other = await server.signUp();
  expect((await other.ask("POST", "/v1/auth/keys", {})).status).toBe(201);
});

test("tokens can always be revoked, but beyond the allowance that is logged once a minute", async () => {
  const { accounts, store } = server.foundation;
  fill();
  const revoke = (times: number) =>
    store.transaction(() => {
      for (let at = 0; at < times; at++) accounts.revokeTokens(owner.accountId);
    });
  const told = () => rowsOf(owner.accountId, "tokens.revoke");
  revoke(50);
  expect([accounts.get(owner.accountId).tokenEpoch, told()]).toEqual([50, 1]);
  clock.advance(MINUTE - 1);
  fill();
  revoke(50);
  expect([accounts.get(owner.accountId).tokenEpoch, told()]).toEqual([100, 1]);
  clock.advance(1);
  revoke(50);
  expect([accounts.get(owner.accountId).tokenEpoch, told()]).toEqual([150, 2]);
});

test("calls of tools, decisions about them, and uses of secrets are each logged up to 60 times a minute, never refused, and take none of the owner's rows", async () => {
  const { audit, store } = server.foundation;
  const append = (action: string, times: number) =>
    store.transaction(() => {
      for (let at = 0; at < times; at++) audit.append({ actor: owner.accountId, action, subject: "agt" });
    });
  const OF_AGENTS = ["tool.call", "approval.decide", "secret.use"];
  const told = () => OF_AGENTS.map((action) => rowsOf(owner.accountId, action));
  for (const action of OF_AGENTS) append(action, 2_000);
  expect([told(), (await write()).status]).toEqual([[60, 60, 60], 201]);
  clock.advance(MINUTE);
  append("approval.decide", 1);
  expect(told()).toEqual([60, 61, 60]);
});

test("beyond the allowance a key is refused from new addresses, but not from known ones", async () => {
  const { key } = (await owner.ask("POST", "/v1/auth/keys", {})).body;
  const from = async (address: string) =>
    (await server.ask("GET", "/v1/auth/me", { key, headers: { "X-Forwarded-For": address } })).status;
  expect(await from("203.0.113.1")).toBe(200);
  fill();
  expect([await from("203.0.113.2"), await from("203.0.113.1")]).toEqual([429, 200]);
  clock.advance(18 * SECOND);
  expect([await from("203.0.113.2"), await from("203.0.113.2")]).toEqual([200, 200]);
});
