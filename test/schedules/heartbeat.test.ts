import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { saysNothing } from "../../src/schedules/duties.ts";
import { HOUR, MINUTE } from "../lib/hand-clock.ts";
import { type Planned, startPlanned } from "./planned.ts";

const EACH_HOUR = { everySeconds: 3600, timeZone: "UTC", activeHours: null };
const DUTIES = "# Heartbeat\n\n- Look at the tide.\n";

let it: Planned;
beforeEach(async () => {
  it = await startPlanned();
});
afterEach(() => it.stop());

const agent = (change?: object) => it.ask(change ? "PATCH" : "GET", it.talk.at(""), change);
const schedules = async () => (await it.ask("GET", it.talk.at("/schedules"))).body.data;
const history = async (query = "") => (await it.ask("GET", it.talk.at(`/messages${query}`))).body.data;
const conversations = async () => (await it.ask("GET", it.talk.at("/conversations?origin=heartbeat"))).body.data;

/** Sets the heartbeat and its file. Returns its schedule's id. */
async function beat(text: string | null = DUTIES, more: object = {}): Promise<string> {
  const { status } = await agent({ heartbeat: { ...EACH_HOUR, ...more }, files: { "HEARTBEAT.md": text } });
  expect(status).toBe(200);
  return (await schedules())[0].scheduleId;
}

test("a heartbeat is the agent's, and is listed among its schedules", async () => {
  expect((await agent()).body.heartbeat).toBeNull();
  const scheduleId = await beat();
  expect((await agent()).body.heartbeat).toEqual(EACH_HOUR);
  const { body } = await it.ask("GET", it.talk.at(`/schedules/${scheduleId}`));
  expect(body).toMatchObject({
    kind: "heartbeat",
    name: "Heartbeat",
    message: "",
    cron: null,
    ...EACH_HOUR,
    enabled: true,
    nextAt: "2026-11-22T13:00:30.000Z",
  });
  await agent({ heartbeat: null });
  expect([(await agent()).body.heartbeat, await schedules()]).toEqual([null, []]);
});

test("a new agent may have one from the start", async () => {
  const heartbeat = { everySeconds: 300, activeHours: { from: "08:00", to: "20:00" } };
  const { status, body } = await it.ask("POST", `/v1/instances/${it.talk.instance}/agents`, { name: "Bo", heartbeat });
  expect([status, body.heartbeat]).toEqual([201, { ...heartbeat, timeZone: "UTC" }]);
  const { data } = (await it.ask("GET", `/v1/instances/${it.talk.instance}/agents/${body.agentId}/schedules`)).body;
  expect(data).toMatchObject([{ kind: "heartbeat", everySeconds: 300, nextAt: "2026-11-22T12:05:30.000Z" }]);
});

test("at each beat the agent is told HEARTBEAT.md in a conversation of its own, and only its last text is announced", async () => {
  it.talk.when(DUTIES, { kind: "text", tokens: ["High water at nine."] }, { kind: "text", tokens: ["NO_REPLY"] });
  const scheduleId = await beat();
  await it.pass(HOUR);
  await it.pass(HOUR);
  expect((await it.slots(scheduleId)).map(({ status }) => status)).toEqual(["ran", "ran"]);
  const [own, ...others] = await conversations();
  expect([own.title, own.origin, others]).toEqual(["Heartbeat", { type: "heartbeat", id: scheduleId }, []]);
  const told = await history(`?conversationId=${own.conversationId}`);
  expect(told.map(({ role, message }: { role: string; message: string }) => [role, message])).toEqual([
    ["user", DUTIES],
    ["agent", "High water at nine."],
    ["user", DUTIES],
    ["agent", "NO_REPLY"],
  ]);
  expect(await history()).toMatchObject([
    { role: "agent", message: "High water at nine.", origin: { type: "heartbeat", id: scheduleId } },
  ]);
});

test("with nothing but headings and comments in the file, a beat is skipped, says why, and asks no model", async () => {
  const scheduleId = await beat("# Heartbeat\n\n<!-- nothing\nyet -->\n");
  await it.pass(HOUR);
  await agent({ files: { "HEARTBEAT.md": null } });
  await it.pass(HOUR);
  const reason = "HEARTBEAT.md has nothing but headings and comments";
  expect(await it.slots(scheduleId)).toMatchObject([
    { status: "skipped", reason, runId: null },
    { status: "skipped", reason },
  ]);
  expect(it.talk.mock.requests).toEqual([]);
  const byHand = await it.ask("POST", it.talk.at(`/schedules/${scheduleId}/run`));
  expect([byHand.status, byHand.body.error.message]).toEqual([
    409,
    `${reason}: write into it what the agent is to look after`,
  ]);
});

test("the file of a new agent has no duties", async () => {
  const { body } = await agent();
  expect(saysNothing(body.files["HEARTBEAT.md"])).toBe(true);
});

test("outside its hours a beat is skipped, and a file too long for a message fails", async () => {
  const scheduleId = await beat("x".repeat(32_001), { activeHours: { from: "08:00", to: "14:00" } });
  await it.pass(HOUR);
  await it.pass(HOUR);
  expect(await it.slots(scheduleId)).toMatchObject([
    { status: "skipped", reason: "outside the active hours, 08:00 to 14:00" },
    { status: "failed", reason: "HEARTBEAT.md is longer than a message, 32000 characters: shorten it" },
  ]);
});

test("it runs by hand, and cannot be changed or deleted as a schedule", async () => {
  const scheduleId = await beat();
  const path = it.talk.at(`/schedules/${scheduleId}`);
  const run = await it.ask("POST", `${path}/run`);
  expect(run.status).toBe(202);
  await it.talk.until("run.completed", run.body.runId);
  for (const [method, body] of [
    ["PATCH", { enabled: false }],
    ["DELETE", undefined],
  ] as const) {
    const { status, body: refused } = await it.ask(method, path, body);
    expect([status, refused.error.message]).toEqual([
      409,
      "this is the agent's heartbeat: change it with PATCH …/agents/:agentId and `heartbeat`; null switches it off",
    ]);
  }
});

test("five failures in a row switch it off, and setting it again switches it on", async () => {
  it.talk.when(DUTIES, { kind: "status", status: 400 });
  await beat();
  for (let times = 0; times < 6; times++) await it.pass(HOUR);
  const frames = await it.talk.until("schedule.disabled");
  expect(frames.filter(({ event }) => event.startsWith("schedule.")).map(({ data }) => data.name)).toEqual([
    "Heartbeat",
    "Heartbeat",
  ]);
  expect(await schedules()).toMatchObject([{ enabled: false, nextAt: null, failuresInARow: 5 }]);
  expect((await agent({ heartbeat: EACH_HOUR })).body.heartbeat).toEqual(EACH_HOUR);
  expect(await schedules()).toMatchObject([{ enabled: true, failuresInARow: 0, nextAt: "2026-11-22T19:00:30.000Z" }]);
});

test("a change of its hours leaves its rhythm, and one that is set again goes on in its conversation", async () => {
  await beat();
  await it.pass(HOUR + 10 * MINUTE);
  await agent({ heartbeat: { ...EACH_HOUR, activeHours: { from: "06:00", to: "22:00" } } });
  expect(await schedules()).toMatchObject([{ nextAt: "2026-11-22T14:00:30.000Z" }]);
  await agent({ heartbeat: null });
  await beat();
  expect(await schedules()).toMatchObject([{ nextAt: "2026-11-22T14:10:30.000Z" }]);
  await it.pass(HOUR);
  expect(await conversations()).toMatchObject([{ messageCount: 4 }]);
});

test("a beat that has come and is not decided yet outlives a change of its hours", async () => {
  const scheduleId = await beat();
  await it.talk.server.app.scheduleTimer.stop();
  it.clock.step(HOUR);
  await agent({ heartbeat: { ...EACH_HOUR, activeHours: { from: "06:00", to: "22:00" } } });
  await it.pass(0);
  expect(await it.slots(scheduleId)).toMatchObject([{ slotAt: "2026-11-22T13:00:30.000Z", status: "ran" }]);
});

test.each([
  [{ everySeconds: 299 }, "heartbeat.everySeconds: expected a whole number from 300 to 31536000"],
  [{ timeZone: "UTC" }, "heartbeat.everySeconds: expected a whole number from 300 to 31536000"],
  [{ everySeconds: 300, timeZone: "Mars/Olympus" }, "heartbeat.timeZone: expected a name such as Europe/Berlin or UTC"],
  [
    { everySeconds: 300, activeHours: { from: "8", to: "20:00" } },
    "heartbeat.activeHours.from: expected a time such as 08:00",
  ],
  ["daily", "heartbeat: expected an object with everySeconds, timeZone and activeHours, or null for none"],
])("%j is refused", async (heartbeat, message) => {
  const { status, body } = await agent({ heartbeat });
  expect([status, body.error.message]).toEqual([400, message]);
});

describe("what counts", () => {
  test("a heartbeat is none of the agent's hundred schedules, nor of the account's", async () => {
    await beat();
    const planned = { name: "x", message: "y", everySeconds: 60 };
    for (let made = 0; made < 100; made++) {
      expect((await it.ask("POST", it.talk.at("/schedules"), planned)).status).toBe(201);
    }
    expect((await it.ask("POST", it.talk.at("/schedules"), planned)).status).toBe(409);
    const { sqlite } = it.talk.server.foundation.store;
    expect(sqlite.query("SELECT max(schedules) AS most FROM account_usage").get()).toEqual({ most: 100 });
    await it.ask("DELETE", it.talk.at(""));
    await it.talk.server.app.settled();
    expect(sqlite.query("SELECT count(*) AS rows FROM schedules").get()).toEqual({ rows: 0 });
    expect(sqlite.query("SELECT max(schedules) AS most FROM account_usage").get()).toEqual({ most: 0 });
  });
});
