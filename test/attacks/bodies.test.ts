import { expect, test } from "bun:test";
import { answersOf, countsOf, open } from "./connection.ts";
import { ask, startWorld, windowsSince } from "./world.ts";

const KIB = 1024;
const MIB = 1024 * KIB;
const SEND_CODE = { method: "POST", path: "/v1/auth/send-code" };
const JSON_TYPE = { "Content-Type": "application/json" };
const MAX_OF_PUBLIC = 16 * KIB;

const times = <T>(count: number, work: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => work(at));
const addressAt = (at: number) => `127.0.1.${at + 1}`;

test("two thousand strangers hold back bodies of 1 MiB for send-code: each is refused before its body", async () => {
  await using world = await startWorld();
  const body = Buffer.alloc(MIB - 10, "a");
  const beganAt = Date.now();
  const connections = await world.attack(async () => {
    const all = times(2_000, () => open(world.url, { ...SEND_CODE, headers: { ...JSON_TYPE, "Content-Length": MIB } }));
    await Promise.all(all.map(({ write }) => write(body)));
    return all;
  });
  const counts = countsOf(await Promise.all(connections.map(({ answered }) => answered)));
  expect(counts[413]).toBeWithin(1, 301 + 300 * windowsSince(beganAt));
  expect(counts).toEqual({ 413: expect.any(Number), 429: 2_000 - (counts[413] ?? 0) });
  await world.expectUnharmed();
  for (const { destroy } of connections) destroy();
});

test("strangers at many addresses hold back bodies of 16 KiB for send-code, or send them without a length", async () => {
  await using world = await startWorld();
  const { url } = world;
  const body = Buffer.alloc(MAX_OF_PUBLIC - 10, "a");
  const held = times(2_000, (at) =>
    open(url, { ...SEND_CODE, from: addressAt(at % 20), headers: { ...JSON_TYPE, "Content-Length": MAX_OF_PUBLIC } }),
  );
  await world.attack(() => Promise.all(held.map(({ write }) => write(body))));
  // All of them fit into what may be received at once, so none is refused and none delays others. Where this takes half
  // a minute, idle connections have been closed without an answer: 0.
  expect((await answersOf(held)).filter((status) => status !== 0)).toEqual([]);

  const chunk = `8000\r\n${"a".repeat(32 * KIB)}\r\n`;
  const chunked = times(500, (at) =>
    open(url, {
      ...SEND_CODE,
      from: addressAt(30 + (at % 5)),
      headers: { ...JSON_TYPE, "Transfer-Encoding": "chunked" },
    }),
  );
  await world.attack(async () => {
    for (let chunks = 0; chunks < 30; chunks++) {
      await Promise.all(chunked.map(({ write }) => write(chunk)));
    }
  });
  expect(countsOf(await Promise.all(chunked.map(({ answered }) => answered)))).toEqual({ 413: 500 });
  const stranger = await ask(url, "POST", "/v1/auth/send-code", { email: "new@example.com" });
  expect(stranger.status).toBe(403);
  await world.expectUnharmed();
  for (const { destroy } of [...held, ...chunked]) destroy();
});

test("an account holds back bodies of 1 MiB: it never gets so much room that others get none", async () => {
  await using world = await startWorld({ env: { ROOST_WRITES_PER_SECOND: "100000" } });
  const { attacker, neighbour, neighboursAgent, url } = world;
  const body = Buffer.alloc(MIB - 10, "a");
  const headers = { ...JSON_TYPE, "X-API-Key": attacker.key, "Content-Length": MIB };
  const held = times(200, () => open(url, { method: "POST", path: "/v1/instances", headers }));
  await world.attack(() => Promise.all(held.map(({ write }) => write(body))));
  // Of 64 MiB one account takes no more than three times what it leaves free.
  expect(countsOf(await answersOf(held, 200 - 48))).toEqual({ 503: 200 - 48 });
  const note = await neighbour.ask("PUT", `${neighboursAgent}/files/note.md`, "x".repeat(200 * KIB));
  expect(note.status).toBe(201);
  await world.expectUnharmed();
  for (const { destroy } of held) destroy();
});
