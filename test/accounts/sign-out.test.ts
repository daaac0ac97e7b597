import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { createRevokedTokens } from "../../src/accounts/revoked-tokens.ts";
import { signedToken } from "../http/signed-token.ts";
import { DAY, handClock } from "../lib/hand-clock.ts";
import { type Person, startTestServer, type TestServer } from "../support/test-server.ts";

const clock = handClock();
let server: TestServer;
let person: Person;

beforeAll(async () => {
  server = await startTestServer({}, { clock });
});
beforeEach(async () => {
  person = await server.signUp();
});
afterAll(() => server.stop());

const statusOf = async (token: string) => (await server.ask("GET", "/v1/auth/me", { token })).status;
const signOut = (token: string) => server.ask("POST", "/v1/auth/sign-out", { token });
async function signInAgain(): Promise<string> {
  const link = server.foundation.links.create(person.email, 0n);
  return (await server.ask("POST", "/v1/auth/redeem-link", { body: { link } })).body.token;
}

test("signing out ends the token of the request at once; the account's other tokens and keys stay valid", async () => {
  const other = await signInAgain();
  const { key } = (await person.ask("POST", "/v1/auth/keys", {})).body;
  // It was used before, so it would be answered from memory.
  expect(await statusOf(person.token)).toBe(200);
  const { status, body } = await signOut(person.token);
  expect([status, body]).toEqual([200, { signedOut: true }]);
  expect(await statusOf(person.token)).toBe(401);
  expect((await signOut(person.token)).status).toBe(401);
  expect(await statusOf(other)).toBe(200);
  expect((await server.ask("GET", "/v1/auth/me", { key })).status).toBe(200);
});

test("a token that was signed out stays so after a restart, until it expires", async () => {
  await signOut(person.token);
  await server.restart();
  expect(await statusOf(person.token)).toBe(401);
  const { store } = server.foundation;
  const count = () => Number(store.sqlite.query("SELECT count(*) FROM signed_out_tokens").values().flat()[0]);
  const before = count();
  const revokedTokens = createRevokedTokens(store, clock);
  expect([revokedTokens.prune(100), count()]).toEqual([false, before]);
  clock.advance(DAY);
  let slices = 1;
  while (revokedTokens.prune(1)) slices++;
  expect([count(), slices]).toEqual([0, before + 1]);
});

test("two tokens issued in the same second are told apart", async () => {
  const [one, two] = [await signInAgain(), await signInAgain()];
  expect(one).not.toBe(two);
  await signOut(one);
  expect([await statusOf(one), await statusOf(two)]).toEqual([401, 200]);
});

test("a token without an id, from an older release, works and can be signed out", async () => {
  const { accountId } = person;
  const exp = Math.floor((clock.now() + DAY) / 1000);
  const old = signedToken(server.dataDir, accountId, { payload: { exp } });
  const another = signedToken(server.dataDir, accountId, { payload: { exp, iat: 1 } });
  expect([await statusOf(old), await statusOf(another)]).toEqual([200, 200]);
  expect((await signOut(old)).status).toBe(200);
  expect([await statusOf(old), await statusOf(another)]).toEqual([401, 200]);
  // Only four bits of a signature's last character count: with any of its spellings it is the same token.
  for (const last of "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") {
    expect(await statusOf(old.slice(0, -1) + last)).toBe(401);
  }
});

test("a key cannot sign out: 403; if a token is sent with it, the token is signed out", async () => {
  const { key } = (await person.ask("POST", "/v1/auth/keys", {})).body;
  const alone = await server.ask("POST", "/v1/auth/sign-out", { key });
  expect([alone.status, alone.body.error.code]).toEqual([403, "forbidden"]);
  expect(alone.body.error.message).toContain("DELETE /v1/auth/keys");
  expect((await server.ask("POST", "/v1/auth/sign-out", { token: key })).status).toBe(403);
  expect((await server.ask("POST", "/v1/auth/sign-out", { token: person.token, key })).status).toBe(200);
  expect(await statusOf(person.token)).toBe(401);
  expect((await server.ask("GET", "/v1/auth/me", { key })).status).toBe(200);
});

test("a token whose sign-out could not be written still works: it is not only revoked in memory", async () => {
  const { sqlite } = server.foundation.store;
  sqlite.run("ALTER TABLE signed_out_tokens RENAME TO hidden_tokens");
  try {
    expect((await signOut(person.token)).status).toBe(500);
  } finally {
    sqlite.run("ALTER TABLE hidden_tokens RENAME TO signed_out_tokens");
  }
  expect(await statusOf(person.token)).toBe(200);
  expect((await signOut(person.token)).status).toBe(200);
});
