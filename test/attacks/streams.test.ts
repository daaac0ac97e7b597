import { expect, test } from "bun:test";
import { answersOf, type Connection, countsOf, open } from "./connection.ts";
import { startWorld, windowsSince } from "./world.ts";

const STREAMS = 600;

/** `Connection: close` shows the end of a stream as the end of its connection. */
const openStreams = (url: string, path: string, key: string, count: number): Connection[] =>
  Array.from({ length: count }, () =>
    open(url, { path: `${path}/events`, headers: { "X-API-Key": key, Connection: "close" } }),
  );

test("where few files may be open, one account opens as many event streams as it can: others still get streams and answers", async () => {
  await using world = await startWorld({ under: ["sh", "-c", 'ulimit -n 400; exec "$@"', "limited"] });
  const { attacker, neighbour, neighboursAgent, url } = world;
  const agent = await attacker.newAgent(await attacker.newInstance());
  const opened: Connection[] = [];
  const statuses: number[] = [];
  const beganAt = Date.now();
  await world.attack(async () => {
    for (let tried = 0; tried < STREAMS; tried++) {
      const one = open(url, { path: `${agent}/events`, headers: { "X-API-Key": attacker.key } });
      const status = await one.answered;
      statuses.push(status);
      // Only the host closes refused connections.
      if (status === 200) opened.push(one);
    }
  });
  const counts = countsOf(statuses);
  expect(counts[200]).toBeWithin(16, 100);
  expect(counts).toEqual({ 200: expect.any(Number), 503: STREAMS - opened.length });
  const own = openStreams(url, neighboursAgent, neighbour.key, 5);
  expect(countsOf(await Promise.all(own.map(({ answered }) => answered)))).toEqual({ 200: 5 });
  await neighbour.ask("POST", `${neighboursAgent}/messages`, { message: "Hello" });
  // It is logged, but not once for each: once a minute.
  const told = world.server.logs.filter(({ level }) => level === "warn").map(({ msg }) => msg);
  expect(told).toEqual(told.map(() => expect.stringContaining("as many answers as it can")));
  expect(told.length).toBeWithin(1, 2 + windowsSince(beganAt));
  await world.expectUnharmed();
  for (const stream of [...own, ...opened]) await stream.ended;
  for (const stream of own) expect(stream.received()).toContain("event: run.completed");
});

test("streams of a key end when it is revoked, also hundreds of them at once", async () => {
  await using world = await startWorld();
  const { attacker, url } = world;
  const agent = await attacker.newAgent(await attacker.newInstance());
  const { key, keyId } = (await attacker.ask("POST", "/v1/auth/keys", {})).body;
  const stolen = openStreams(url, agent, key, 300);
  const kept = openStreams(url, agent, attacker.key, 3);
  expect(countsOf(await answersOf([...stolen, ...kept], 303))).toEqual({ 200: 303 });
  await world.attack(async () => {
    expect((await attacker.ask("DELETE", `/v1/auth/keys/${keyId}`)).status).toBe(200);
    await Promise.all(stolen.map(({ ended, destroy }) => ended.then(destroy)));
  });
  await attacker.ask("POST", `${agent}/messages`, { message: "Hello" });
  for (const one of stolen) expect(one.received()).not.toContain("run.queued");
  await world.expectUnharmed();
  for (const one of kept) {
    await one.ended;
    expect(one.received()).toContain("event: run.completed");
  }
});
