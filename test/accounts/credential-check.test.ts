import { afterAll, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createAuthentication } from "../../src/accounts/authenticate.ts";
import { createCredentialCheck } from "../../src/accounts/credential-check.ts";
import { openHostKeys } from "../../src/accounts/host-keys.ts";
import { createKeys } from "../../src/accounts/keys.ts";
import { createRevokedTokens } from "../../src/accounts/revoked-tokens.ts";
import { createTokens } from "../../src/accounts/tokens.ts";
import { openFoundation } from "../../src/app/foundation.ts";
import type { Caller } from "../../src/limits/caller.ts";
import { signedToken } from "../http/signed-token.ts";
import { DAY, handClock, MINUTE } from "../lib/hand-clock.ts";

const clock = handClock();
const dataDir = mkdtempSync(join(tmpdir(), "roost-valid-"));
const hostKeys = openHostKeys(dataDir);
const foundation = openFoundation({ dataDir }, clock);
const { store, audit, accounts } = foundation;
const keys = createKeys(store, clock, audit);
const revokedTokens = createRevokedTokens(store, clock);
const tokens = createTokens(hostKeys, clock, revokedTokens);
const authenticate = createAuthentication(accounts, keys, tokens);
const stillValid = createCredentialCheck({ clock, accounts, keys, revokedTokens });

let accountId: string;
let people = 0;

afterAll(() => {
  store.close();
  rmSync(dataDir, { recursive: true });
});
beforeEach(() => {
  const email = `valid${++people}@example.com`;
  ({ accountId } = accounts.create({ email, name: "Ada", credit: 0n, note: "test" }));
});

const newKey = (expiresAt: number | null = null) =>
  keys.create(accountId, { name: null, scopes: ["read"], instanceId: null, expiresAt });
const newToken = async () => (await tokens.issue({ accountId, epoch: accounts.get(accountId).tokenEpoch })).token;
const callerWith = async (token: string | null, key: string | null): Promise<Caller> =>
  authenticate({
    authorization: token === null ? null : `Bearer ${token}`,
    apiKey: key,
    address: () => "127.0.0.1",
  });

/** An operator's command: it opens the same data folder with a connection of its own. */
async function asOperator(work: (other: typeof foundation) => void): Promise<void> {
  const other = openFoundation({ dataDir }, clock);
  try {
    work(other);
  } finally {
    other.store.close();
  }
  // Reads of one turn of the event loop share a snapshot; those of the next turn see the change.
  await new Promise((resolve) => setImmediate(resolve));
}

test("a caller is valid until something ends their credential", async () => {
  const { key } = newKey(clock.now() + DAY);
  const token = await newToken();
  for (const [one, two] of [
    [token, null],
    [null, key],
    [key, null],
    [token, key],
  ] as const) {
    const caller = await callerWith(one, two);
    expect(caller.credentials).toHaveLength(one !== null && two !== null ? 2 : 1);
    clock.advance(MINUTE);
    expect(stillValid(caller)).toBe(true);
  }
});

test("a key ends when it is revoked, expires or is pruned", async () => {
  const [revoked, expiring] = [newKey(), newKey(clock.now() + MINUTE)];
  const callers = [await callerWith(null, revoked.key), await callerWith(null, expiring.key)];
  keys.revoke(accountId, revoked.record.keyId);
  expect(callers.map(stillValid)).toEqual([false, true]);
  clock.advance(MINUTE - 1);
  expect(callers.map(stillValid)).toEqual([false, true]);
  clock.advance(1);
  expect(callers.map(stillValid)).toEqual([false, false]);
  clock.advance(40 * DAY);
  keys.prune(100);
  expect(callers.map(stillValid)).toEqual([false, false]);
});

test("a token ends after a day", async () => {
  const caller = await callerWith(await newToken(), null);
  clock.advance(DAY - 1_000);
  expect(stillValid(caller)).toBe(true);
  clock.advance(1_000);
  expect(stillValid(caller)).toBe(false);
});

test("a token ends when it is signed out; other tokens of the account do not", async () => {
  const [caller, other] = [await callerWith(await newToken(), null), await callerWith(await newToken(), null)];
  const [credential] = caller.credentials;
  if (credential?.kind !== "token") throw new Error("no token");
  store.transaction(() => revokedTokens.add(credential.tokenId, credential.expiresAt));
  expect([stillValid(caller), stillValid(other)]).toEqual([false, true]);
});

test("every token of an account ends with its epoch; keys, and tokens issued later, do not", async () => {
  const old = await callerWith(
    signedToken(dataDir, accountId, { payload: { exp: Math.floor((clock.now() + DAY) / 1000) } }),
    null,
  );
  const [token, key] = [await callerWith(await newToken(), null), await callerWith(null, newKey().key)];
  accounts.revokeTokens(accountId);
  const newer = await callerWith(await newToken(), null);
  expect([old, token, key, newer].map(stillValid)).toEqual([false, false, true, true]);
});

test("a caller with two credentials is valid while both of them are", async () => {
  const [one, two] = [newKey(), newKey()];
  const token = await newToken();
  const both = [await callerWith(token, one.key), await callerWith(token, two.key), await callerWith(one.key, two.key)];
  expect(both.map(stillValid)).toEqual([true, true, true]);
  keys.revoke(accountId, one.record.keyId);
  expect(both.map(stillValid)).toEqual([false, true, false]);
  accounts.revokeTokens(accountId);
  expect(both.map(stillValid)).toEqual([false, false, false]);
});

test("an operator's suspension, made through another connection, ends every credential until it is lifted", async () => {
  const callers = [await callerWith(await newToken(), null), await callerWith(null, newKey().key)];
  expect(callers.map(stillValid)).toEqual([true, true]);
  await asOperator((other) => other.accounts.setSuspended(accountId, true));
  expect(callers.map(stillValid)).toEqual([false, false]);
  await asOperator((other) => other.accounts.setSuspended(accountId, false));
  expect(callers.map(stillValid)).toEqual([true, true]);
});

test("credentials that another connection revokes end too", async () => {
  const { key, record } = newKey();
  const [byKey, byToken] = [await callerWith(null, key), await callerWith(await newToken(), null)];
  await asOperator((other) => {
    createKeys(other.store, clock, other.audit).revoke(accountId, record.keyId);
    other.accounts.revokeTokens(accountId);
  });
  expect([byKey, byToken].map(stillValid)).toEqual([false, false]);
});
