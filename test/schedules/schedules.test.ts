import { afterEach, beforeEach, expect, test } from "bun:test";
import { endsRun } from "../../src/messages/events/event.ts";
import { DAY, type HandClock, HOUR, handClock, MINUTE } from "../lib/hand-clock.ts";
import { type Conversation, startConversation } from "../messages/conversation.ts";

const START = Date.parse("2026-11-22T12:00:30Z");

let clock: HandClock;
let talk: Conversation;
let key: string;
beforeEach(() => begin());

async function begin(settings: Record<string, string> = {}): Promise<void> {
  clock = handClock(START);
  talk = await startConversation(settings, undefined, undefined, { clock });
  // A token would expire while days pass.
  const made = await talk.person.ask("POST", "/v1/auth/keys", { name: "test" });
  key = made.body.key;
}

const ask = (method: string, path: string, body?: object) =>
  talk.server.ask(method, path, { key, ...(body && { body }) });
afterEach(() => talk.stop());

const answer = (text: string) => ({ kind: "text" as const, tokens: [text] });
const BROKEN = { kind: "status", status: 400 } as const;

/** A schedule that is due each hour, and what the agent is told. */
async function hourly(message: string, more: object = {}): Promise<string> {
  const body = { name: "Hourly", message, cron: "0 * * * *", ...more };
  const made = await ask("POST", talk.at("/schedules"), body);
  expect(made.status).toBe(201);
  return made.body.scheduleId;
}

/** Lets time pass, and decides about nothing. */
async function passUndecided(ms: number): Promise<void> {
  await talk.server.app.scheduleTimer.stop();
  clock.step(ms);
}

/** Lets time pass, and waits until the runs that began have ended. */
async function pass(ms: number): Promise<void> {
  clock.step(ms);
  await talk.server.app.scheduleTimer.tick();
  const { body } = await ask("GET", talk.at("/runs"));
  for (const { runId, status } of body.data) if (["queued", "running"].includes(status)) await ended(runId);
}

async function ended(runId: string): Promise<void> {
  await using stream = await talk.events(0);
  await stream.until(({ event, data }) => data.runId === runId && endsRun(event));
}

const slots = async (id: string) => (await ask("GET", talk.at(`/schedules/${id}/slots`))).body.data;
const stored = async (id: string) => (await ask("GET", talk.at(`/schedules/${id}`))).body;
const history = async (query = "") => (await ask("GET", talk.at(`/messages${query}`))).body.data;

test("when its time comes, the agent runs in a conversation of its own, and only its last text enters the default one", async () => {
  talk.when("Write the report", answer("All is well."));
  const scheduleId = await hourly("Write the report");
  expect(await stored(scheduleId)).toMatchObject({ nextAt: "2026-11-22T13:00:00.000Z", lastSlot: null });
  await pass(HOUR);
  const [slot, ...others] = await slots(scheduleId);
  expect(others).toEqual([]);
  expect(slot).toMatchObject({ slotAt: "2026-11-22T13:00:00.000Z", status: "ran", reason: null });
  const { conversations } = {
    conversations: (await ask("GET", talk.at("/conversations?origin=schedule"))).body,
  };
  expect(conversations.data).toMatchObject([{ title: "Hourly", origin: { type: "schedule", id: scheduleId } }]);
  const own = await history(`?conversationId=${conversations.data[0].conversationId}`);
  expect(own.map(({ role, message }: { role: string; message: string }) => [role, message])).toEqual([
    ["user", "Write the report"],
    ["agent", "All is well."],
  ]);
  expect(await history()).toMatchObject([
    {
      role: "agent",
      message: "All is well.",
      runId: slot.runId,
      inReplyTo: null,
      origin: { type: "schedule", id: scheduleId },
    },
  ]);
  expect(await stored(scheduleId)).toMatchObject({
    nextAt: "2026-11-22T14:00:00.000Z",
    lastSlot: "2026-11-22T13:00:00.000Z",
  });
});

test("an answer of NO_REPLY, and a schedule that does not announce, leave the default conversation alone", async () => {
  talk.when("Anything new?", answer(" NO_REPLY\n"));
  await hourly("Anything new?");
  await hourly("Tidy up", { announce: false });
  await pass(HOUR);
  expect(await history()).toEqual([]);
});

test("what was announced changes the default conversation's next prompt by its labelled text only", async () => {
  talk.when("Read the news", answer("Nothing happened."));
  await talk.send("Good morning");
  await talk.send("Who are you?");
  const before = talk.mock.requests.at(-1)?.body.messages;
  await hourly("Read the news");
  await pass(HOUR);
  await talk.send("And now?");
  const after = talk.mock.requests.at(-1)?.body.messages;
  const label = "[Said by myself in the background, not to the person:]\nNothing happened.";
  expect(after).toEqual([
    ...before,
    { role: "assistant", content: "Hello, world" },
    { role: "assistant", content: label },
    { role: "user", content: "And now?" },
  ]);
});

test("a schedule of the default conversation is answered there", async () => {
  talk.when("Good night", answer("Sleep well."));
  const scheduleId = await hourly("Good night", { conversation: "default" });
  await pass(HOUR);
  expect(await history()).toMatchObject([
    { role: "user", sender: { type: "schedule", id: scheduleId, name: "Hourly" }, origin: { type: "schedule" } },
    { role: "agent", message: "Sleep well.", origin: null },
  ]);
});

test("after a downtime, the last of the missed times runs once, and each is recorded", async () => {
  const scheduleId = await hourly("Hello");
  await pass(3 * HOUR + 5 * MINUTE);
  expect(await slots(scheduleId)).toMatchObject([
    { slotAt: "2026-11-22T15:00:00.000Z", status: "ran", reason: "late: the host was not running at that time" },
    { slotAt: "2026-11-22T14:00:00.000Z", status: "missed", runId: null },
    { slotAt: "2026-11-22T13:00:00.000Z", status: "missed", runId: null },
  ]);
});

test("after a downtime that ends outside the active hours, the last of the missed times within them runs", async () => {
  const scheduleId = await hourly("Hello", { activeHours: { from: "08:00", to: "15:00" } });
  await pass(4 * HOUR + 5 * MINUTE);
  const outside = { status: "skipped", reason: "outside the active hours, 08:00 to 15:00", runId: null };
  expect(await slots(scheduleId)).toMatchObject([
    { slotAt: "2026-11-22T16:00:00.000Z", ...outside },
    { slotAt: "2026-11-22T15:00:00.000Z", ...outside },
    { slotAt: "2026-11-22T14:00:00.000Z", status: "ran", reason: "late: the host was not running at that time" },
    { slotAt: "2026-11-22T13:00:00.000Z", status: "missed", runId: null },
  ]);
  expect(await stored(scheduleId)).toMatchObject({ lastSlot: "2026-11-22T16:00:00.000Z" });
  expect(talk.mock.requests).toHaveLength(1);
});

test("with skip, none of the missed times runs", async () => {
  const scheduleId = await hourly("Hello", { missed: "skip" });
  await pass(2 * HOUR + 5 * MINUTE);
  expect((await slots(scheduleId)).map(({ status }: { status: string }) => status)).toEqual(["missed", "missed"]);
  expect(talk.mock.requests).toEqual([]);
});

test("a time that passes seconds before the host starts again is missed, as any other", async () => {
  const [skips, runs] = [await hourly("Hello", { missed: "skip" }), await hourly("Good day")];
  await passUndecided(HOUR - MINUTE);
  await talk.server.restart(() => clock.step(40_000));
  await pass(0);
  const reason = "the host was not running at that time";
  expect(await slots(skips)).toMatchObject([{ status: "missed", reason, runId: null }]);
  expect(await slots(runs)).toMatchObject([{ status: "ran", reason: `late: ${reason}` }]);
  await pass(HOUR);
  expect((await slots(skips))[0]).toMatchObject({ status: "ran", reason: null });
});

test("a clock that was ahead when the host started, and is set right, makes it miss nothing", async () => {
  await passUndecided(0);
  await talk.server.restart(() => clock.step(2 * DAY));
  clock.step(-2 * DAY);
  await talk.server.app.scheduleTimer.tick();
  const scheduleId = await hourly("Hello", { missed: "skip" });
  await pass(HOUR);
  expect(await slots(scheduleId)).toMatchObject([{ status: "ran", reason: null }]);
});

test("of a year's downtime, the last hundred times are recorded", async () => {
  const scheduleId = await hourly("Hello", { cron: null, everySeconds: 3600, missed: "skip" });
  await pass(365 * DAY + 5 * MINUTE);
  const rows = talk.server.foundation.store.sqlite.query("SELECT status FROM schedule_slots").all();
  expect(rows).toHaveLength(100);
  expect((await stored(scheduleId)).nextAt).toBe("2027-11-22T13:00:30.000Z");
});

test("a clock that is set back, and a restart, run nothing twice", async () => {
  const scheduleId = await hourly("Hello");
  await pass(HOUR);
  clock.step(-2 * HOUR);
  await pass(HOUR + 30 * MINUTE);
  await ask("PATCH", talk.at(`/schedules/${scheduleId}`), { enabled: false });
  await ask("PATCH", talk.at(`/schedules/${scheduleId}`), { enabled: true });
  await talk.server.restart();
  await pass(31 * MINUTE);
  expect(await slots(scheduleId)).toMatchObject([{ slotAt: "2026-11-22T13:00:00.000Z", status: "ran" }]);
  expect(talk.mock.requests).toHaveLength(1);
});

test.each([
  ["while the host runs", async () => {}],
  ["while it does not run", () => talk.server.restart()],
])(
  "a clock that was a year ahead and is set right %s: what was planned is due when it would have been",
  async (_, then) => {
    const scheduleId = await hourly("Hello");
    const interval = await hourly("Again", { cron: null, everySeconds: 7_200 });
    clock.step(365 * DAY);
    await talk.server.app.scheduleTimer.tick();
    const later = await hourly("Planned ahead", { cron: null, everySeconds: 3_600 });
    expect((await stored(scheduleId)).nextAt).toStartWith("2027-");
    clock.step(-365 * DAY);
    await then();
    await pass(0);
    expect(await stored(scheduleId)).toMatchObject({ nextAt: "2026-11-22T13:00:00.000Z", lastSlot: null });
    expect((await stored(interval)).nextAt).toBe("2026-11-22T14:00:30.000Z");
    expect((await stored(later)).nextAt).toBe("2026-11-22T13:00:30.000Z");
    await pass(HOUR);
    for (const id of [scheduleId, later]) {
      const times = await slots(id);
      expect(times.find(({ slotAt }: { slotAt: string }) => slotAt.startsWith("2026"))).toMatchObject({
        status: "ran",
      });
    }
  },
);

test("a clock that was three hours ahead and is set right: what it had made missed runs at its time, what has run does not", async () => {
  const scheduleId = await hourly("Hello");
  await pass(3 * HOUR);
  clock.step(-3 * HOUR);
  await pass(0);
  expect(await stored(scheduleId)).toMatchObject({ nextAt: "2026-11-22T13:00:00.000Z" });
  for (let hours = 0; hours < 3; hours++) await pass(HOUR);
  expect(await slots(scheduleId)).toMatchObject([
    { slotAt: "2026-11-22T15:00:00.000Z", status: "ran", reason: null },
    { slotAt: "2026-11-22T14:00:00.000Z", status: "ran", reason: null },
    { slotAt: "2026-11-22T13:00:00.000Z", status: "ran", reason: null },
  ]);
  expect(talk.mock.requests).toHaveLength(3);
});

test("a time that has come and is not decided yet outlives a change of the message", async () => {
  const scheduleId = await hourly("Hello");
  await passUndecided(HOUR);
  const { body } = await ask("PATCH", talk.at(`/schedules/${scheduleId}`), { message: "Hello again" });
  expect(body).toMatchObject({ nextAt: "2026-11-22T13:00:00.000Z", lastSlot: null });
  await pass(0);
  expect(await slots(scheduleId)).toMatchObject([{ slotAt: "2026-11-22T13:00:00.000Z", status: "ran" }]);
  expect(talk.mock.requests.map(({ body }) => body.messages.at(-1).content)).toEqual(["Hello again"]);
});

test.each<[object, string | null]>([
  [{ cron: "30 * * * *" }, "2026-11-22T13:30:00.000Z"],
  [{ enabled: false }, null],
])("a time that has come and is not decided yet is skipped by a change to %j, and recorded", async (change, nextAt) => {
  const scheduleId = await hourly("Hello");
  await passUndecided(HOUR);
  const { body } = await ask("PATCH", talk.at(`/schedules/${scheduleId}`), change);
  expect(body).toMatchObject({ nextAt, lastSlot: "2026-11-22T13:00:00.000Z" });
  await pass(0);
  expect(await slots(scheduleId)).toMatchObject([
    {
      slotAt: "2026-11-22T13:00:00.000Z",
      status: "skipped",
      reason: "the schedule's times were changed, or it was switched off, before this one was decided",
    },
  ]);
  expect(await stored(scheduleId)).toMatchObject({ nextAt, lastSlot: "2026-11-22T13:00:00.000Z" });
  expect(talk.mock.requests).toEqual([]);
});

test("a stopped instance and inactive hours skip a time, and say why", async () => {
  const activeHours = { from: "22:00", to: "06:00" };
  const scheduleId = await hourly("Hello", { activeHours, timeZone: "Asia/Tokyo", missed: "skip" });
  await pass(HOUR);
  expect(await slots(scheduleId)).toMatchObject([{ status: "ran" }]);
  const skipped = { status: "skipped", reason: "outside the active hours, 22:00 to 06:00" };
  await pass(7 * HOUR);
  expect((await slots(scheduleId))[0]).toMatchObject({ slotAt: "2026-11-22T20:00:00.000Z", status: "ran" });
  // Until six, not at six.
  await pass(HOUR);
  expect((await slots(scheduleId))[0]).toMatchObject({ slotAt: "2026-11-22T21:00:00.000Z", ...skipped });
  await pass(HOUR);
  expect((await slots(scheduleId))[0]).toMatchObject({ slotAt: "2026-11-22T22:00:00.000Z", ...skipped });
  await ask("POST", `/v1/instances/${talk.instance}/stop`);
  await pass(16 * HOUR);
  expect((await slots(scheduleId))[0]).toMatchObject({ status: "skipped", reason: "the instance is stopped" });
  expect(talk.mock.requests).toHaveLength(2);
});

test("a time is skipped while the run before it has not ended", async () => {
  talk.when("Hang", { kind: "hang" });
  const scheduleId = await hourly("Hang");
  clock.step(HOUR);
  await talk.server.app.scheduleTimer.tick();
  await talk.mock.arrived(1);
  clock.step(HOUR);
  await talk.server.app.scheduleTimer.tick();
  expect(await slots(scheduleId)).toMatchObject([
    { status: "skipped", reason: "the run before it has not ended" },
    { status: "ran" },
  ]);
});

test("two failures in a row are told, five switch the schedule off, and runs by hand do not count", async () => {
  talk.when("Fail", BROKEN);
  const scheduleId = await hourly("Fail");
  const byHand = await ask("POST", talk.at(`/schedules/${scheduleId}/run`));
  expect(byHand.status).toBe(202);
  await talk.until("run.failed", byHand.body.runId);
  expect(await stored(scheduleId)).toMatchObject({ failuresInARow: 0 });
  for (let times = 0; times < 6; times++) await pass(HOUR);
  const frames = await talk.until("schedule.disabled");
  expect(
    frames.filter(({ event }) => event.startsWith("schedule.")).map(({ event, data }) => [event, data.failuresInARow]),
  ).toEqual([
    ["schedule.failing", 2],
    ["schedule.disabled", 5],
  ]);
  expect(await stored(scheduleId)).toMatchObject({ enabled: false, nextAt: null, failuresInARow: 5 });
  const decided = await slots(scheduleId);
  expect(decided.map(({ status }: { status: string }) => status)).toEqual(Array(5).fill("failed"));
  expect(decided[0].reason).toContain("model server refused");
  const back = await ask("PATCH", talk.at(`/schedules/${scheduleId}`), { enabled: true });
  expect(back.body).toMatchObject({ enabled: true, failuresInARow: 0, nextAt: "2026-11-22T19:00:00.000Z" });
});

test("times that meet a limit of tokens are skipped until it ends, and never switch the schedule off", async () => {
  // What the limit leaves is enough for the first answer of a run, and not for the one after its tool call.
  const look = { index: 0, id: "call_a", function: { name: "now", arguments: "{}" } };
  const usage = { prompt_tokens: 1_000_000, completion_tokens: 10 };
  const first = { choices: [{ index: 0, delta: { tool_calls: [look] }, finish_reason: "tool_calls" }], usage };
  talk.when("Look", { kind: "raw", chunks: [`data: ${JSON.stringify(first)}\n\ndata: [DONE]\n\n`] });
  await ask("PATCH", talk.at(""), { modelLimits: { tokensPerDay: 100_000 } });
  const scheduleId = await hourly("Look");
  for (let times = 0; times < 7; times++) await pass(HOUR);
  expect(await stored(scheduleId)).toMatchObject({ enabled: true, failuresInARow: 0 });
  const decided = await slots(scheduleId);
  expect(decided.map(({ status }: { status: string }) => status)).toEqual(Array(7).fill("skipped"));
  for (const { reason } of decided) expect(reason).toContain("tokensPerDay");
  expect(decided.at(-1).runId).not.toBeNull();
  expect(decided[0].runId).toBeNull();
  talk.when("Look", answer("Done."));
  await pass(6 * HOUR);
  expect((await slots(scheduleId))[0]).toMatchObject({ slotAt: "2026-11-23T01:00:00.000Z", status: "ran" });
});

test("a schedule's own model answers its runs", async () => {
  await talk.stop();
  await begin({ ROOST_MODELS: "other" });
  await hourly("Hello", { model: "openai:other" });
  await pass(HOUR);
  expect(talk.mock.requests.at(-1)?.body.model).toBe("other");
});

test.each([
  [{}, "cron, everySeconds"],
  [{ cron: "0 9 * * *", everySeconds: 60 }, "cron, everySeconds"],
  [{ cron: "0 9 * *" }, "cron"],
  [{ cron: "0 0 30 2 *" }, "cron"],
  [{ everySeconds: 59 }, "everySeconds"],
  [{ everySeconds: 60, timeZone: "Mars/Olympus" }, "timeZone"],
  [{ everySeconds: 60, activeHours: { from: "8:00", to: "20:00" } }, "activeHours.from"],
  [{ everySeconds: 60, activeHours: { from: "08:00", to: "08:00" } }, "activeHours"],
  [{ everySeconds: 60, model: "openai:unknown" }, "model"],
  [{ everySeconds: 60, model: ["local:smollm2-135m-instruct"] }, "model"],
])("%p is refused, naming %p", async (body, field) => {
  const asked = { name: "x", message: "y", ...body };
  const { status, body: refused } = await ask("POST", talk.at("/schedules"), asked);
  expect(status).toBe(400);
  expect(refused.error.message).toStartWith(`${field}: `);
});

test("a change from cron to an interval says null for cron", async () => {
  const scheduleId = await hourly("Hello");
  const path = talk.at(`/schedules/${scheduleId}`);
  expect((await ask("PATCH", path, { everySeconds: 60 })).status).toBe(400);
  const changed = await ask("PATCH", path, { everySeconds: 60, cron: null });
  expect(changed.body).toMatchObject({ everySeconds: 60, cron: null, nextAt: "2026-11-22T12:01:30.000Z" });
});

test("an agent has at most a hundred schedules", async () => {
  for (let made = 0; made < 100; made++) await hourly("Hello");
  const { status, body } = await ask("POST", talk.at("/schedules"), {
    name: "x",
    message: "y",
    everySeconds: 60,
  });
  expect([status, body.error.code]).toEqual([409, "conflict"]);
});

test("another account's schedules do not exist, and a deleted agent's rows go with it", async () => {
  const scheduleId = await hourly("Hello");
  await pass(HOUR);
  const stranger = await talk.server.signUp();
  for (const path of ["", `/${scheduleId}`, `/${scheduleId}/slots`]) {
    expect((await stranger.ask("GET", talk.at(`/schedules${path}`))).status).toBe(404);
  }
  await ask("DELETE", talk.at(""));
  await talk.server.app.settled();
  const { sqlite } = talk.server.foundation.store;
  expect(sqlite.query("SELECT * FROM schedules").all()).toEqual([]);
  expect(sqlite.query("SELECT * FROM schedule_slots").all()).toEqual([]);
  expect(sqlite.query("SELECT schedules FROM account_usage WHERE schedules <> 0").all()).toEqual([]);
});

test("a deleted schedule runs no more", async () => {
  const scheduleId = await hourly("Hello");
  const { body } = await ask("DELETE", talk.at(`/schedules/${scheduleId}`));
  expect(body).toEqual({ scheduleId, deleted: true });
  await pass(2 * HOUR);
  expect(talk.mock.requests).toEqual([]);
});
