import { expect, test } from "bun:test";
import { connect } from "node:net";
import { rawRequest } from "../http/raw-request.ts";
import { runBinary } from "../support/binary.ts";
import type { Answer } from "../support/test-server.ts";
import { askFrom, type Connection, countsOf, inLanes, open } from "./connection.ts";
import { startWorld, type World, windowsSince } from "./world.ts";

const HOME = "127.0.0.2";
const STRANGER = "127.0.0.3";
const VERIFY = "/v1/auth/verify-code";

/** The last mailed code, from the operator's outbox. */
async function mailedCode({ dataDir }: World): Promise<string> {
  const { output } = await runBinary(["outbox", "--json", "--data", dataDir]);
  return JSON.parse(output)[0].code;
}
const wrong = (code: string, by = 1) => String((Number(code) + by) % 1e8).padStart(8, "0");

test("a stranger's wrong codes do not lock an account out, not even three thousand", async () => {
  await using world = await startWorld();
  const { url, attacker, neighbour } = world;
  const { email } = neighbour;
  const sent = await askFrom(HOME, url, "/v1/auth/send-code", { email });
  expect(sent.status).toBe(200);
  const code = await mailedCode(world);
  const guess = (from: string, what: string) => askFrom(from, url, VERIFY, { email, code: what });
  const beganAt = Date.now();
  for (let tries = 0; tries < 5; tries++) expect((await guess(STRANGER, wrong(code, tries + 1))).status).toBe(401);

  const counts = countsOf(
    await world.attack(() => inLanes(32, 3_000, async (at) => (await guess(STRANGER, wrong(code, at + 6))).status)),
  );
  const tried = counts[401] ?? 0;
  // Thirty a minute, of which five were tried before.
  expect(tried).toBeWithin(25, 26 + 30 * windowsSince(beganAt));
  expect(counts).toEqual({ 401: tried, 429: 3_000 - tried });
  // Nobody else is affected: neither the owner of the code, nor somebody with a key at the stranger's address.
  const own = await askFrom(STRANGER, url, "/v1/auth/me", undefined, { "X-API-Key": attacker.key });
  expect(own.status).toBe(200);
  const owner = await guess(HOME, code);
  expect([owner.status, JSON.parse(owner.text).account.email]).toEqual([200, email]);
  await world.expectUnharmed();
});

test("bad tokens, unknown e-mails and invites from one address get 429, and another address is answered", async () => {
  await using world = await startWorld();
  const { url } = world;
  const beganAt = Date.now();
  const statuses = await world.attack(() =>
    inLanes(32, 1_000, async (at) => {
      const email = `nobody${at}@example.com`;
      if (at % 3 === 0) return (await askFrom(STRANGER, url, "/v1/auth/send-code", { email })).status;
      if (at % 3 === 1) {
        return (await askFrom(STRANGER, url, "/v1/auth/send-code", { email, inviteCode: "roost-none" })).status;
      }
      return (await askFrom(STRANGER, url, "/v1/auth/me", undefined, { "X-API-Key": "rst_live_wrong" })).status;
    }),
  );
  const counts = countsOf(statuses);
  const refused = (counts[401] ?? 0) + (counts[403] ?? 0);
  expect(refused).toBeWithin(30, 31 + 30 * windowsSince(beganAt));
  expect(counts[429]).toBe(1_000 - refused);
  expect((await askFrom(HOME, url, "/v1/auth/send-code", { email: "nobody@example.com" })).status).toBe(403);
  await world.expectUnharmed();
});

test("through a proxy nobody sees metrics, and a foreign host name gets nothing at all", async () => {
  await using world = await startWorld({ env: { ROOST_TRUST_PROXY: "true" } });
  const under = async (host: string, path: string, more = "") =>
    (await rawRequest(world.url, `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${more}\r\n`)).status;
  expect(await under("127.0.0.1", "/metrics")).toBe(200);
  for (const header of ["X-Forwarded-For: 127.0.0.1", "Forwarded: for=127.0.0.1", "Via: 1.1 proxy"]) {
    expect(await under("127.0.0.1", "/metrics", `${header}\r\n`)).toBe(401);
  }
  expect(await under("evil.example.org", "/v1/skills", "X-Forwarded-For: 203.0.113.9\r\n")).toBe(403);
  await world.expectUnharmed();
});

test("an invalid host name with an idempotency key is not a server error", async () => {
  await using world = await startWorld({ args: ["--host", "0.0.0.0"] });
  const { attacker } = world;
  const body = JSON.stringify({ name: "one" });
  const head = ["POST /v1/instances HTTP/1.1", `X-API-Key: ${attacker.key}`, "Content-Type: application/json"];
  for (const host of ["a b", "[", "", "a".repeat(4_000), "%"]) {
    const lines = [...head, `Host: ${host}`, "Idempotency-Key: same", `Content-Length: ${body.length}`, "", body];
    expect((await rawRequest(world.url, lines.join("\r\n"))).status).toBeWithin(200, 500);
  }
  expect((await attacker.ask("GET", "/v1/instances")).body.data.length).toBeWithin(0, 2);
  await world.expectUnharmed();
});

test("a key limited to one instance learns nothing from the owner's Idempotency-Keys", async () => {
  await using world = await startWorld();
  const { attacker } = world;
  const [own, other] = [await attacker.newInstance(), await attacker.newInstance("other")];
  const { key } = (await attacker.ask("POST", "/v1/auth/keys", { instanceId: own })).body;
  const path = `/v1/instances/${other}/agents`;
  const headers = { "Idempotency-Key": "same" };
  const made = await attacker.ask("POST", path, { name: "hidden" }, headers);
  expect(made.status).toBe(201);
  const replayed = await attacker.ask("POST", path, { name: "hidden" }, { ...headers, "X-API-Key": key });
  expect([replayed.status, JSON.stringify(replayed.body)]).toEqual([404, expect.not.stringContaining("hidden")]);
  await world.expectUnharmed();
});

const FEW_FILES = ["sh", "-c", 'ulimit -n 400; exec "$@"', "limited"];

/** Connections that send nothing, until the host has no file left: a request on a connection that it has already says so. */
async function takeAllFiles({ url, neighbour, neighboursAgent }: World): Promise<{ answer: Answer; release(): void }> {
  const ask = () => neighbour.ask("GET", neighboursAgent);
  // These keep their connections: new ones wait until there is room.
  await Promise.all([ask(), ask(), ask(), ask()]);
  const { hostname, port } = new URL(url);
  const silent = Array.from({ length: 500 }, () => connect(Number(port), hostname).on("error", () => {}));
  let answer = await ask();
  while (answer.status !== 503) answer = await ask();
  const release = () => {
    for (const one of silent) one.destroy();
  };
  return { answer, release };
}

test("while strangers' connections take all files that the host may open, it says so; once they are gone all is well", async () => {
  await using world = await startWorld({ under: FEW_FILES });
  const { neighbour, neighboursAgent } = world;
  const { answer, release } = await takeAllFiles(world);
  expect(answer.headers.get("Retry-After")).toBe("5");
  expect(answer.body.error.message).toContain("too many files and connections open");
  release();
  while ((await neighbour.ask("GET", neighboursAgent)).status !== 200);
  expect((await neighbour.ask("POST", `${neighboursAgent}/messages`, { message: "Hello" })).status).toBe(200);
});

test("a message for which a worker has to start does not end a host whose files are all in use", async () => {
  await using world = await startWorld({ under: FEW_FILES });
  const { attacker, neighbour, neighboursAgent } = world;
  const agent = await attacker.newAgent(await attacker.newInstance());
  const { release } = await takeAllFiles(world);
  const headers = { Prefer: "respond-async" };
  expect((await attacker.ask("POST", `${agent}/messages`, { message: "Hello" }, headers)).status).toBe(202);
  release();
  while ((await neighbour.ask("GET", neighboursAgent)).status !== 200);
  expect((await attacker.ask("POST", `${agent}/messages`, { message: "Hello" })).status).toBe(200);
});

test("clients that keep their connections do not use up the files that the host may open", async () => {
  await using world = await startWorld({ under: FEW_FILES });
  const kept: Connection[] = [];
  await world.attack(async () => {
    for (let count = 0; count < 600; count++) {
      const one = open(world.url, { path: "/healthz" });
      expect(await one.answered).toBe(200);
      kept.push(one);
    }
  });
  await world.expectUnharmed();
  for (const one of kept) await one.ended;
});
