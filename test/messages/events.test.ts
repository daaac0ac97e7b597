import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { EventSource } from "eventsource";
import fc from "fast-check";
import { systemClock } from "../../src/lib/clock.ts";
import { createEventLog } from "../../src/messages/events/event-log.ts";
import type { Place } from "../../src/storage/retention.ts";
import { DAY } from "../lib/hand-clock.ts";
import { type Conversation, type Frame, kindsOf, readEvents, shownText, startConversation } from "./conversation.ts";

let it: Conversation;
beforeAll(async () => {
  it = await startConversation();
  it.when("begin", { kind: "text", tokens: ["Once", " upon"], delayMs: 1, ending: "hang" });
  it.when("words", { kind: "text", tokens: Array.from({ length: 30 }, (_, at) => `${at} `), delayMs: 1 });
});
afterAll(() => it.stop());
beforeEach(() => it.begin());

const idsOf = (frames: Frame[]): number[] => frames.map(({ id }) => id);
const ends = ({ event }: Frame): boolean => /^run\.(completed|failed|cancelled)$/.test(event);

test("with a cursor the stream continues after it; 0 is the beginning; without one it starts now", async () => {
  await it.send("hi");
  await using all = await it.events(0);
  const told = [...(await all.until(ends))];
  expect(idsOf(told)).toEqual([1, 2, 3, 4, 5]);
  for (const { id } of told.slice(0, -1)) {
    await using byQuery = await it.events(id);
    await using byHeader = await it.events(undefined, { "Last-Event-ID": String(id) });
    await using headerWins = await it.events(0, { "Last-Event-ID": String(id) });
    for (const stream of [byQuery, byHeader, headerWins]) expect(await stream.until(ends)).toEqual(told.slice(id));
  }
  await using now = await it.events();
  await using atEnd = await it.events(5);
  await it.send("again");
  for (const stream of [now, atEnd]) expect(idsOf(await stream.until(ends))).toEqual([6, 7, 8, 9, 10]);
});

test("anything but decimal digits is 400, and a valid query does not hide an invalid header", async () => {
  for (const bad of ["x", "-1", "1.5", "0x1", "1e3", "", " ", "١"]) {
    const { response } = await it.events(encodeURIComponent(bad));
    expect([bad, response.status]).toEqual([bad, 400]);
  }
  for (const bad of ["x", "-1", "1,2"]) {
    expect((await it.events(0, { "Last-Event-ID": bad })).response.status).toBe(400);
  }
});

test("a cursor ahead of the log, or older than what is kept, is 410", async () => {
  await it.send("hi");
  for (const ahead of ["6", "99999999999999999999999"]) {
    const { status, body } = await it.person.ask("GET", it.at(`/events?after=${ahead}`));
    expect([status, body.error.code, body.error.status]).toEqual([410, "not_found", 410]);
  }
  const { store } = it.server.foundation;
  const eightDaysAgo = Date.now() - 8 * 24 * 60 * 60 * 1000;
  const age = (upTo: number) =>
    store.transaction(() => {
      store.sqlite.run("UPDATE events SET created_at = ? WHERE agent_id = ? AND event_id <= ?", [
        eightDaysAgo,
        it.agent,
        upTo,
      ]);
      const log = createEventLog(store, systemClock, () => {});
      let place: Place = null;
      do place = log.prune(Date.now() - 7 * DAY, place, 2).next;
      while (place !== null);
    });
  age(3);
  for (const old of [1, 2]) expect((await it.events(old)).response.status).toBe(410);
  for (const kept of [0, 3]) {
    await using stream = await it.events(kept);
    expect(idsOf(await stream.until(ends))).toEqual([4, 5]);
  }
  age(5);
  expect((await it.events(4)).response.status).toBe(410);
  // Also the agent's first run, before which there is no event.
  const [run] = (await it.person.ask("GET", it.at("/runs"))).body.data;
  const gone = await it.person.ask("GET", it.at(`/events?runId=${run.runId}`));
  expect([gone.status, gone.body.error.message]).toEqual([410, "the run's first events are no longer kept"]);
  await using stream = await it.events(5);
  await it.send("hi");
  expect((await stream.next())?.id).toBe(6);
});

test("numbering continues after a restart, and cursors stay valid", async () => {
  await it.send("hi");
  await it.server.restart();
  await using stream = await it.events(2);
  await it.send("again");
  await stream.until(({ id, event }) => id > 5 && event === "run.completed");
  expect(idsOf(stream.frames)).toEqual([3, 4, 5, 6, 7, 8, 9, 10]);
});

test("a run in progress at a restart continues after run.restarted", async () => {
  const runId = await it.queue("begin");
  const waiting = await it.queue("hi");
  const before = [...(await it.until("message.delta", runId))];
  it.when("begin", { kind: "text", tokens: ["Twice", " told"] });
  await it.server.restart();
  const frames = [...(await it.until("run.completed", waiting))];
  expect(frames.slice(0, before.length)).toEqual(before);
  const own = frames.filter(({ data }) => data.runId === runId);
  expect(kindsOf(own).filter((kind) => kind !== "message.delta")).toEqual([
    "run.queued",
    "run.started",
    "run.restarted",
    "message.completed",
    "run.completed",
  ]);
  expect(shownText(own)).toBe("Twice told");
  expect(own.find(({ event }) => event === "message.completed")?.data.message.message).toBe("Twice told");
  expect(idsOf(frames)).toEqual(frames.map((_, at) => at + 1));
});

test("a run that had shown nothing starts again silently", async () => {
  it.when("hang", { kind: "hang" });
  const asked = it.modelAsked("hang");
  const runId = await it.queue("hang");
  await asked;
  it.when("hang", { kind: "text", tokens: ["there"] });
  await it.server.restart();
  const frames = await it.until("run.completed", runId);
  expect(kindsOf(frames)).toEqual(["run.queued", "run.started", "message.delta", "message.completed", "run.completed"]);
  expect((await it.run(runId)).body).toMatchObject({ status: "completed", steps: 2 });
});

test("a reader that disconnects and resumes at random misses nothing and sees nothing twice", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 0, max: 25 }), { minLength: 1, maxLength: 6 }),
      fc.boolean(),
      async (reads, byHeader) => {
        await it.begin();
        const sent = Promise.all([it.send("words"), it.send("hi"), it.send("words")]);
        const seen: Frame[] = [];
        for (const count of [...reads, Number.POSITIVE_INFINITY]) {
          const cursor = seen.at(-1)?.id ?? 0;
          await using stream = await (byHeader
            ? it.events(undefined, { "Last-Event-ID": String(cursor) })
            : it.events(cursor));
          for (let left = count; left > 0 && seen.filter(ends).length < 3; left--) {
            const frame = await stream.next();
            if (frame) seen.push(frame);
          }
        }
        const answers = await sent;
        expect(idsOf(seen)).toEqual(seen.map((_, at) => at + 1));
        for (const { body } of answers) {
          expect(shownText(seen, body.runId)).toBe(body.message);
          expect(seen.filter((frame) => ends(frame) && frame.data.runId === body.runId)).toHaveLength(1);
        }
      },
    ),
    { numRuns: 12 },
  );
});

test("many streams of one agent get the same events", async () => {
  const streams = await Promise.all(Array.from({ length: 20 }, () => it.events(0)));
  await it.send("words");
  const [first, ...others] = await Promise.all(streams.map((stream) => stream.until(ends)));
  for (const other of others) expect(other).toEqual(first ?? []);
  for (const stream of streams) await stream.close();
});

test("a stream is removed when its client disconnects", async () => {
  const openStreams = async (): Promise<number> =>
    Number(/^roost_event_streams (\d+)$/m.exec((await it.server.ask("GET", "/metrics")).body)?.[1]);
  const allClosed = async () => {
    while ((await openStreams()) > 0) await new Promise((resolve) => setImmediate(resolve));
  };
  // Those of the tests before may still be closing.
  await allClosed();
  const streams = await Promise.all(Array.from({ length: 10 }, () => it.events()));
  expect(await openStreams()).toBe(10);
  for (const stream of streams) await stream.close();
  await allClosed();
});

test("HEAD on the events answers without a stream", async () => {
  const response = await it.person.fetch("HEAD", it.at("/events"));
  expect([response.status, await response.text()]).toEqual([200, ""]);
});

test("the official EventSource client reads it, and resumes by itself across a restart", async () => {
  const seen: { id: number; type: string }[] = [];
  let wake = () => {};
  const source = new EventSource("http://roost.test/", {
    // The server restarts on another port; to the client it is the same server.
    fetch: (_, init) =>
      fetch(new URL(it.at("/events?after=0"), it.server.url), {
        ...init,
        headers: { ...init.headers, Authorization: `Bearer ${it.person.token}` },
      }),
  });
  for (const type of ["run.queued", "run.started", "message.delta", "message.completed", "run.completed"]) {
    source.addEventListener(type, ({ lastEventId, data }) => {
      expect(JSON.parse(data)).toMatchObject({ id: Number(lastEventId), type });
      seen.push({ id: Number(lastEventId), type });
      wake();
    });
  }
  const completed = async (count: number) => {
    while (seen.filter(({ type }) => type === "run.completed").length < count) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  };
  try {
    await it.send("hi");
    await completed(1);
    await it.server.restart();
    await it.send("again");
    await completed(2);
    expect(seen.map(({ id }) => id)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  } finally {
    source.close();
  }
});

const ofRun = async (runId: string, more = "", headers: Record<string, string> = {}) =>
  readEvents(await it.person.fetch("GET", it.at(`/events?runId=${runId}${more}`), undefined, headers));

test("a run's own stream has its events from the first, also while it runs, and ends with it", async () => {
  await it.send("hi");
  const runId = await it.queue("begin");
  await using live = await ofRun(runId);
  const begun = [...(await live.until(({ event }) => event === "message.delta"))];
  const at = begun.at(-1)?.id ?? 0;
  await using resumed = await ofRun(runId, `&after=${at}`);
  await using byHeader = await ofRun(runId, "", { "Last-Event-ID": String(at) });
  await it.cancel(runId);
  const told = await live.rest();
  expect(kindsOf(told).slice(0, 3)).toEqual(["run.queued", "run.started", "message.delta"]);
  expect(new Set(told.map(({ data }) => data.runId))).toEqual(new Set([runId]));
  expect(told.filter(ends)).toEqual(told.slice(-1));
  for (const stream of [resumed, byHeader]) expect(await stream.rest()).toEqual(told.filter(({ id }) => id > at));
  await using afterwards = await ofRun(runId);
  expect(await afterwards.rest()).toEqual(told);
});

test("the stream of a run that is over ends, whatever its reader has had of it already", async () => {
  const runId = (await it.send("hi")).body.runId;
  await using whole = await ofRun(runId);
  const told = idsOf(await whole.rest());
  await it.send("again");
  for (const after of [0, ...told, 10]) {
    await using resumed = await ofRun(runId, `&after=${after}`);
    expect([after, idsOf(await resumed.rest())]).toEqual([after, told.filter((id) => id > after)]);
  }
});

test("an unknown run, or one of another agent, is not found", async () => {
  const runId = await it.queue("hi");
  await it.begin();
  for (const other of [runId, "", "run_x", "run_00000000000070008000000000000000"]) {
    expect([other, (await ofRun(other)).response.status]).toEqual([other, 404]);
  }
});
