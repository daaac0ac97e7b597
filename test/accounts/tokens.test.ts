import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { signedToken, type TokenParts } from "../http/signed-token.ts";
import { DAY, handClock, SECOND } from "../lib/hand-clock.ts";
import { type Person, startTestServer, type TestServer } from "../support/test-server.ts";

const clock = handClock();
let server: TestServer;
let owner: Person;

beforeAll(async () => {
  server = await startTestServer({}, { clock });
  owner = await server.signUp();
});
afterAll(() => server.stop());

const statusOf = async (token: string) => (await server.ask("GET", "/v1/auth/me", { token })).status;
const forge = (parts: TokenParts = {}) => signedToken(server.dataDir, owner.accountId, parts);

test("a token made like the host's own is accepted: the refusals below have no other reason", async () => {
  expect(await statusOf(forge())).toBe(200);
});

const future = Math.floor(Date.now() / 1000) + 3600;
const forgeries: [string, () => string][] = [
  [
    "no algorithm",
    () =>
      `${forge({ header: { alg: "none" } })
        .split(".")
        .slice(0, 2)
        .join(".")}.`,
  ],
  ["no algorithm, signed all the same", () => forge({ header: { alg: "none" } })],
  ["another algorithm", () => forge({ header: { alg: "HS512" } })],
  ["an asymmetric algorithm", () => forge({ header: { alg: "RS256" } })],
  ["another key", () => forge({ secret: randomBytes(32) })],
  ["an empty key", () => forge({ secret: Buffer.alloc(0) })],
  ["an unknown kid", () => forge({ header: { kid: "nobody" } })],
  ["no kid", () => forge({ header: { kid: undefined } })],
  ["a kid that objects have", () => forge({ header: { kid: "__proto__" } })],
  ["another issuer", () => forge({ payload: { iss: "elsewhere" } })],
  ["no issuer", () => forge({ payload: { iss: undefined } })],
  ["no account", () => forge({ payload: { sub: undefined } })],
  ["an unknown account", () => forge({ payload: { sub: `acct_${"0".repeat(32)}` } })],
  ["no epoch", () => forge({ payload: { epoch: undefined } })],
  ["an epoch to come", () => forge({ payload: { epoch: 1 } })],
  ["an epoch as text", () => forge({ payload: { epoch: "0" } })],
  ["no end", () => forge({ payload: { exp: undefined } })],
  ["an end that is past", () => forge({ payload: { exp: Math.floor(clock.now() / 1000) - 1 } })],
  ["a beginning to come", () => forge({ payload: { nbf: future } })],
  [
    "a changed payload",
    () =>
      swapPart(
        1,
        Buffer.from(JSON.stringify({ sub: owner.accountId, epoch: 0, iss: "roost", exp: future })).toString(
          "base64url",
        ),
      ),
  ],
  ["a changed signature", () => forge().replace(/(?<=\..*\.)./, (first) => (first === "A" ? "B" : "A"))],
  ["no signature", () => forge().split(".").slice(0, 2).join(".")],
  ["a fourth part", () => `${forge()}.x`],
  ["nonsense", () => "....."],
];
const swapPart = (at: number, part: string) => forge().split(".").with(at, part).join(".");

test.each(forgeries)("a token with %s is refused", async (_, make) => {
  expect(await statusOf(make())).toBe(401);
});

describe("a token", () => {
  test("works for 24 hours, also if it was used before, and not a second longer", async () => {
    const person = await server.signUp();
    expect(await statusOf(person.token)).toBe(200);
    clock.advance(DAY - SECOND);
    expect(await statusOf(person.token)).toBe(200);
    clock.advance(SECOND);
    expect(await statusOf(person.token)).toBe(401);
    expect(await statusOf(person.token)).toBe(401);
  });

  test("works after a restart", async () => {
    const { token } = await server.signUp();
    await server.restart();
    expect(await statusOf(token)).toBe(200);
  });

  test("is refused once its account has revoked all tokens; its keys stay valid, and a new token works", async () => {
    const [person, bystander] = [await server.signUp(), await server.signUp()];
    const { key } = (await person.ask("POST", "/v1/auth/keys", {})).body;
    expect(await statusOf(person.token)).toBe(200);
    const revoked = await person.ask("POST", "/v1/auth/revoke-tokens");
    expect([revoked.status, revoked.body]).toEqual([200, { revokedAt: new Date(clock.now()).toISOString() }]);
    expect(await statusOf(person.token)).toBe(401);
    expect(await statusOf(bystander.token)).toBe(200);
    expect((await server.ask("GET", "/v1/auth/me", { key })).status).toBe(200);
    const link = server.foundation.links.create(person.email, 0n);
    const { token } = (await server.ask("POST", "/v1/auth/redeem-link", { body: { link } })).body;
    expect(await statusOf(token)).toBe(200);
  });

  test("signed with an older key works until that key is removed; the newest key signs", async () => {
    const { token } = await server.signUp();
    const path = join(server.dataDir, "host-keys.json");
    const file = await Bun.file(path).json();
    const fresh = { kid: "fresh", secret: randomBytes(32).toString("base64") };
    writeFileSync(path, JSON.stringify({ ...file, tokenKeys: [fresh, ...file.tokenKeys] }));
    await server.restart();
    expect(await statusOf(token)).toBe(200);
    const newer = (await server.signUp()).token;
    expect(JSON.parse(Buffer.from(newer.split(".")[0] ?? "", "base64url").toString())).toMatchObject({
      alg: "HS256",
      kid: "fresh",
    });
    writeFileSync(path, JSON.stringify({ ...file, tokenKeys: [fresh] }));
    await server.restart();
    expect([await statusOf(token), await statusOf(newer)]).toEqual([401, 200]);
  });
});
