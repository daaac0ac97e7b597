import { expect, test } from "bun:test";
import { HOUR, MINUTE } from "../lib/hand-clock.ts";
import { startPlanned } from "./planned.ts";

const AGENTS = 1_000;
/** How often a beat is due. */
const EVERY_MS = 30 * MINUTE;
const DAY_BEATS = (24 * HOUR) / EVERY_MS;

test("an idle host of 1,000 agents makes no model call in a day of injected time", async () => {
  const it = await startPlanned({ ROOST_WRITES_PER_SECOND: "10000", ROOST_ADDRESS_REQUESTS: "10000" });
  const agents = `/v1/instances/${it.talk.instance}/agents`;
  const heartbeat = { everySeconds: EVERY_MS / 1000 };
  for (let made = 1; made < AGENTS; made++) {
    // Half of them have a heartbeat, and nothing to look after: the file that every agent has, or one that says nothing.
    const body = made % 2 === 0 ? {} : { heartbeat };
    const files = made % 4 === 1 ? { "HEARTBEAT.md": "# Duties\n\n<!-- none -->\n" } : {};
    const { status } = await it.ask("POST", agents, { name: `a${made}`, files, ...body });
    expect(status).toBe(201);
  }
  const before = process.cpuUsage();
  for (let beats = 0; beats < DAY_BEATS; beats++) {
    it.clock.step(EVERY_MS);
    await it.talk.server.app.scheduleTimer.tick();
  }
  const { user, system } = process.cpuUsage(before);
  const { sqlite } = it.talk.server.foundation.store;
  expect(it.talk.mock.requests).toEqual([]);
  expect(sqlite.query("SELECT count(*) AS rows FROM runs").get()).toEqual({ rows: 0 });
  const outcomes = sqlite
    .query("SELECT status, reason, count(*) AS rows FROM schedule_slots GROUP BY status, reason")
    .all();
  expect(outcomes).toEqual([
    { status: "skipped", reason: "HEARTBEAT.md has nothing but headings and comments", rows: (AGENTS / 2) * DAY_BEATS },
  ]);
  const seconds = (user + system) / 1e6;
  console.log(`a day of ${AGENTS} idle agents, ${AGENTS / 2} with a beat each 30 min: ${seconds.toFixed(1)} s of CPU`);
  await it.stop();
});
