import { afterEach, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import fc from "fast-check";
import { createFairTurns } from "../../src/limits/fair-turns.ts";
import { createHub, type Hub } from "../../src/messages/events/hub.ts";
import type { StoredEvent } from "../../src/messages/schema.ts";
import { readEvents } from "./conversation.ts";

const AGENT = "agt_a";

/** An event log in memory. */
function createLog(pingMs?: number) {
  const rows: StoredEvent[] = [];
  const reads: number[] = [];
  let publishedId = 0;
  const failures: unknown[] = [];
  const disk = { isBroken: false };
  const hub = createHub(follow, (error) => failures.push(error), pingMs);
  function follow(_: string, after: number, { rows: limit, bytes }: { rows: number; bytes: number }) {
    if (disk.isBroken) throw new Error("disk I/O error");
    let left = bytes;
    const found: StoredEvent[] = [];
    const next = rows.filter(({ eventId }) => eventId > after);
    for (const row of next.slice(0, limit)) {
      if (left <= 0) break;
      left -= row.data.length;
      found.push(row);
    }
    reads.push(found.length);
    return { rows: found, upTo: found.at(-1)?.eventId ?? after, isEnd: found.length === next.length };
  }
  hubs.push(hub);
  return {
    rows,
    reads,
    hub,
    disk,
    failures,
    /** Commits events, and publishes them unless `published` is false. */
    append(
      count: number,
      { published = true, runId = "run_a", type = "message.delta", size = 10, text = "x".repeat(size) } = {},
    ): void {
      const first = (rows.at(-1)?.eventId ?? 0) + 1;
      const batch = Array.from({ length: count }, (_, index) => ({
        agentId: AGENT,
        eventId: first + index,
        runId,
        conversationId: null,
        type,
        data: JSON.stringify({ delta: text }),
        createdAt: 0,
      }));
      rows.push(...batch);
      if (!published) return;
      publishedId = first + count - 1;
      hub.publish(AGENT, batch);
    },
    published: () => publishedId,
    open: (after: number, runId: string | null = null) =>
      readEvents(new Response(hub.open({ agentId: AGENT, owner: "acct_a", after, conversationId: null, runId }).body)),
  };
}
const hubs: Hub[] = [];
afterEach(() => {
  for (const hub of hubs.splice(0)) hub.endAll();
});

const oneTo = (last: number, first = 1): number[] => Array.from({ length: last - first + 1 }, (_, at) => first + at);

test("each reader gets every event once and in order, whatever is appended, read and disconnected, and when", async () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant("append" as const), count: fc.integer({ min: 1, max: 250 }) }),
    fc.record({ kind: fc.constant("hide" as const), count: fc.integer({ min: 1, max: 3 }) }),
    fc.record({ kind: fc.constant("read" as const), reader: fc.nat(2), count: fc.integer({ min: 1, max: 300 }) }),
    fc.record({ kind: fc.constant("reconnect" as const), reader: fc.nat(2) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), fc.integer({ min: 1, max: 2000 }), async (steps, size) => {
      const log = createLog();
      log.append(5, { size });
      const cursors = [0, 3, 5];
      const readers = cursors.map((after) => ({ after, seen: [] as number[], stream: log.open(after) }));
      const read = async (reader: (typeof readers)[number], count: number) => {
        for (let left = count; left > 0 && last(reader) < log.published(); left--) {
          reader.seen.push((await reader.stream.next())?.id ?? Number.NaN);
        }
      };
      const last = ({ seen, after }: { seen: number[]; after: number }) => seen.at(-1) ?? after;
      for (const one of steps) {
        if (one.kind === "append") log.append(one.count, { size });
        // Committed, but never published.
        else if (one.kind === "hide") log.append(one.count, { published: false });
        else {
          const reader = readers[one.reader];
          if (!reader) continue;
          if (one.kind === "read") await read(reader, one.count);
          else {
            await reader.stream.close();
            reader.stream = log.open(last(reader));
          }
        }
      }
      log.append(1);
      for (const reader of readers) {
        await read(reader, Number.POSITIVE_INFINITY);
        expect(reader.seen).toEqual(oneTo(log.rows.length, reader.after + 1));
        await reader.stream.close();
      }
      expect(log.hub.openStreams()).toBe(0);
    }),
    { numRuns: 60 },
  );
});

test("a stream that has read events from the log before they are published gets them once", async () => {
  const log = createLog();
  log.append(2, { published: false });
  await using stream = log.open(0);
  expect([(await stream.next())?.id, (await stream.next())?.id]).toEqual([1, 2]);
  log.hub.publish(AGENT, log.rows.slice());
  log.append(1);
  expect((await stream.next())?.id).toBe(3);
});

test("what a stream reads of the log is told in bytes, in whatever language it is", async () => {
  const log = createLog();
  log.append(1, { published: false, text: "Grüße 🦉 漢字" });
  let bytes = 0;
  const place = { agentId: AGENT, owner: "acct_a", after: 0, conversationId: null, runId: null };
  const { body } = log.hub.open(place, undefined, (read) => {
    bytes += read;
  });
  await using stream = readEvents(new Response(body));
  await stream.next();
  expect(bytes).toBe(Buffer.byteLength(log.rows[0]?.data ?? ""));
});

test("a stream that has ended is kept nowhere, however it has ended", async () => {
  const log = createLog();
  let gone = 0;
  const registry = new FinalizationRegistry(() => void gone++);
  const open = () => {
    const onEnd = () => {};
    registry.register(onEnd, null);
    return log.hub.open({ agentId: AGENT, owner: "acct_a", after: 0, conversationId: null, runId: null }, onEnd);
  };
  for (let at = 0; at < 100; at++) {
    const { body, end } = open();
    if (at % 2 === 0) end();
    else await body.cancel();
  }
  // The collector does not find all of them at once: some are still on the stack, or were linked with such.
  for (let round = 0; round < 100 && gone < 10; round++) {
    await turn();
    Bun.gc(true);
  }
  expect(gone).toBeGreaterThanOrEqual(10);
});

test("a run's stream has only the run's events, and ends after its last", async () => {
  const log = createLog();
  log.append(300, { runId: "run_b" });
  const behind = log.open(0, "run_a");
  const over = log.open(0, "run_b");
  log.append(3);
  log.append(1, { runId: "run_b", type: "run.failed" });
  log.append(2);
  log.append(1, { type: "run.completed" });
  expect((await behind.rest()).map(({ id }) => id)).toEqual([301, 302, 303, 305, 306, 307]);
  expect((await over.rest()).map(({ id }) => id)).toEqual([...oneTo(300), 304]);
  const replayed = log.open(0, "run_a");
  expect((await replayed.rest()).map(({ id }) => id)).toEqual([301, 302, 303, 305, 306, 307]);
  expect(log.hub.openStreams()).toBe(0);
});

test("a run's stream looks for its events among others' a part at a time, so that no turn of the host is long", async () => {
  const log = createLog();
  log.append(20_000, { runId: "run_b" });
  for (let own = 0; own < 50; own++) {
    log.append(199, { runId: "run_b" });
    log.append(1);
  }
  log.append(1, { type: "run.completed" });
  log.reads.length = 0;
  const stream = log.open(0, "run_a");
  expect(log.reads.length).toBe(1);
  let inOneTurn = 0;
  for (let ended = false; !ended; ended = log.hub.openStreams() === 0) {
    const before = log.reads.length;
    await turn();
    inOneTurn = Math.max(inOneTurn, log.reads.length - before);
  }
  expect(inOneTurn).toBeLessThan(5);
  expect((await stream.rest()).map(({ id }) => id)).toEqual([...oneTo(50).map((nth) => 20_000 + 200 * nth), 30_001]);
});

test("an ended agent's streams end after what they were sent; other agents' continue", async () => {
  const log = createLog();
  const stream = log.open(0);
  log.append(3);
  log.hub.end("agt_other");
  expect(log.hub.openStreams()).toBe(1);
  log.hub.end(AGENT);
  expect((await stream.rest()).map(({ id }) => id)).toEqual([1, 2, 3]);
  expect(log.hub.openStreams()).toBe(0);
});

test("a silent stream is kept alive by pings", async () => {
  const log = createLog(30);
  const reader = new Response(
    log.hub.open({ agentId: AGENT, owner: "acct_a", after: 0, conversationId: null, runId: null }).body,
  ).body?.getReader();
  let text = "";
  while (!text.includes(": ping\n\n: ping\n\n")) text += new TextDecoder().decode((await reader?.read())?.value);
  expect(text).toStartWith("retry: 2000\n\n: ping\n\n");
  await reader?.cancel();
});

test("a reader that does not read costs no memory, and later gets everything in order", async () => {
  const log = createLog();
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    fetch: () =>
      new Response(log.hub.open({ agentId: AGENT, owner: "acct_a", after: 0, conversationId: null, runId: null }).body),
  });
  const socket = await open(server.port ?? 0);
  try {
    await received(socket, "retry: 2000");
    socket.pause();
    // 40 MB in all; the sockets' own buffers take some of it.
    for (let batch = 0; batch < 100; batch++) {
      log.append(100, { size: 4_000 });
      await turn();
    }
    log.reads.length = 0;
    const full = await received(socket, `"id":${log.rows.length},`);
    // The rest was sent from the log, at the reader's pace.
    expect(log.reads.reduce((sum, rows) => sum + rows, 0)).toBeGreaterThan(6_000);
    const ids = Array.from(full.matchAll(/^id: (\d+)$/gm), ([, id]) => Number(id));
    expect(ids).toEqual(oneTo(log.rows.length, ids[0]));
    expect(ids[0]).toBe(1);
    log.append(1);
    await received(socket, `"id":${log.rows.length},`);
  } finally {
    socket.destroy();
    await server.stop(true);
  }
});

async function open(port: number): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  await new Promise((resolve) => socket.once("connect", resolve));
  socket.setEncoding("utf8");
  socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  return socket;
}

/** Reads until the text arrives; returns everything up to it. */
function received(socket: Socket, text: string): Promise<string> {
  let all = "";
  return new Promise((resolve) => {
    const take = (data: string) => {
      all += data;
      if (!all.slice(-text.length - data.length).includes(text)) return;
      socket.off("data", take);
      resolve(all);
    };
    socket.on("data", take);
    socket.resume();
  });
}

const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

test("when the server stops, it tells each stream when to reconnect: in one to five seconds, not all at once", async () => {
  const log = createLog();
  const streams = Array.from({ length: 40 }, () =>
    new Response(
      log.hub.open({ agentId: AGENT, owner: "acct_a", after: 0, conversationId: null, runId: null }).body,
    ).text(),
  );
  log.hub.endAll();
  const waits = (await Promise.all(streams)).map((text) => Number(/retry: (\d+)\n\n$/.exec(text)?.[1]));
  for (const wait of waits) expect(wait).toBeWithin(1_000, 5_001);
  expect(new Set(waits).size).toBeGreaterThan(10);
});

test("a stream whose events cannot be read ends, wherever it had come to, and gives back its place", async () => {
  const log = createLog();
  let ended = 0;
  const begin = (after: number, runId: string | null = null) =>
    log.hub.open({ agentId: AGENT, owner: "acct_a", after, conversationId: null, runId }, () => void ended++);
  const open = (...which: Parameters<typeof begin>) => readEvents(new Response(begin(...which).body));
  log.append(1_000, { runId: "run_b", size: 1_000 });
  const [live, reading, searching] = [open(1_000), open(0), open(0, "run_a")];
  log.append(1, { published: false });
  log.disk.isBroken = true;
  const told = begin(0).begun.catch(String);
  expect([ended, log.hub.openStreams()]).toEqual([1, 3]);
  expect(await told).toContain("disk I/O error");
  log.append(1);
  expect(await live.rest()).toEqual([]);
  expect((await reading.rest()).length).toBeWithin(1, 1_000);
  expect(await searching.rest()).toEqual([]);
  expect([ended, log.hub.openStreams(), log.failures.length]).toEqual([4, 0, 3]);
  log.disk.isBroken = false;
  const again = open(1_000);
  expect((await again.next())?.id).toBe(1_001);
  log.hub.endAll();
  expect(ended).toBe(5);
});

test("the first reads of streams that are opened at once take their account's turns", async () => {
  let [nowMs, reads] = [0, 0];
  const hub = createHub(
    (_, after) => {
      nowMs++;
      reads++;
      return { rows: [], upTo: after, isEnd: true };
    },
    (error) => {
      throw error;
    },
    undefined,
    createFairTurns({ maxMs: 1, now: () => nowMs }),
  );
  hubs.push(hub);
  const open = (owner: string) => hub.open({ agentId: AGENT, owner, after: 0, conversationId: null, runId: null });
  const many = Array.from({ length: 100 }, () => open("acct_many"));
  expect(reads).toBe(1);
  await open("acct_one").begun;
  expect(reads).toBeLessThan(10);
  many[50]?.end();
  await Promise.all(many.map(({ begun }) => begun));
  expect([reads, hub.openStreams()]).toEqual([100, 100]);
});

test("however many streams of an account are read from the log, others are read from it in every turn, and all of it counts", async () => {
  let nowMs = 0;
  const asked: string[] = [];
  const rowOf = (agentId: string, eventId: number): StoredEvent => ({
    ...{ agentId, eventId, runId: "run_a", conversationId: null, createdAt: 0 },
    type: eventId === 30 ? "run.completed" : "message.delta",
    data: JSON.stringify({ delta: "x".repeat(40_000) }),
  });
  const hub = createHub(
    (agentId, after) => {
      asked.push(agentId);
      nowMs++;
      return { rows: [rowOf(agentId, after + 1)], upTo: after + 1, isEnd: after + 1 === 30 };
    },
    (error) => {
      throw error;
    },
    undefined,
    createFairTurns({ maxMs: 1, now: () => nowMs }),
  );
  hubs.push(hub);
  let bytes = 0;
  const read = (agentId: string) =>
    new Response(
      hub.open(
        { agentId, owner: agentId, after: 0, conversationId: null, runId: "run_a" },
        () => {},
        (more) => {
          bytes += more;
        },
      ).body,
    ).text();
  const many = Array.from({ length: 20 }, () => read("agt_many"));
  asked.length = 0;
  await read("agt_one");
  expect(asked.filter((agentId) => agentId === "agt_one")).toHaveLength(30);
  expect(asked.length).toBeLessThan(100);
  await Promise.all(many);
  expect(bytes).toBe(21 * 30 * rowOf("", 1).data.length);
});
