/**
 * A week of schedules on a clock that the test moves, over nights of summer time, downtimes, clocks that are set, and hosts
 * that are killed: every time is decided once, with its reason, and nobody is told anything twice.
 */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DAY, HOUR, handClock, MINUTE } from "../../lib/hand-clock.ts";
import { createRandom } from "../../openapi/random.ts";
import { startMockModelServer } from "../../support/mock-model-server.ts";
import { startTestServer } from "../../support/test-server.ts";

import { dueTimes, type Fits } from "./expected.ts";
import type { Moment } from "./host.ts";

/** The nights within: Berlin goes forward, and Sydney and Lord Howe (by half an hour) back; Berlin and New York back. */
const WEEKS = [
  ["March", "2026-03-28T12:00:00Z", 8 * DAY],
  ["October", "2026-10-24T12:00:00Z", 8 * DAY],
] as const;
const SEEDS = Number(process.env.ROOST_TEST_WEEKS ?? 1);
const LATE_MS = MINUTE;
const STEP = 10 * MINUTE;

const PLANS: { zone: string; cron: string; missed: "run_once" | "skip"; fits: Fits; hours?: [string, string] }[] = [
  { zone: "Europe/Berlin", cron: "30 2 * * *", missed: "run_once", fits: (t) => t.hour === 2 && t.minute === 30 },
  { zone: "Europe/Berlin", cron: "*/30 * * * *", missed: "skip", fits: (t) => t.minute % 30 === 0 },
  {
    zone: "America/New_York",
    cron: "0 1,2 * * *",
    missed: "run_once",
    fits: (t) => [1, 2].includes(t.hour) && !t.minute,
  },
  { zone: "Australia/Sydney", cron: "0 */2 * * *", missed: "run_once", fits: (t) => t.hour % 2 === 0 && !t.minute },
  { zone: "Australia/Lord_Howe", cron: "40 1 * * *", missed: "run_once", fits: (t) => t.hour === 1 && t.minute === 40 },
  {
    zone: "Asia/Kathmandu",
    cron: "0 9 * * 1-5",
    missed: "run_once",
    fits: (t) => t.hour === 9 && !t.minute && t.weekday % 6 > 0,
  },
  { zone: "Europe/Berlin", cron: "0 * * * *", missed: "run_once", fits: (t) => !t.minute, hours: ["08:00", "20:00"] },
];

interface Slot {
  schedule_id: string;
  slot_at: number;
  status: string;
  reason: string | null;
  run_id: string | null;
}

/** A host that is a process of its own. */
async function startHost(dataDir: string, model: string, now: number) {
  const waiting: ((said: string | null) => void)[] = [];
  const process = Bun.spawn(
    [globalThis.process.execPath, join(import.meta.dir, "host.ts"), dataDir, model, String(now)],
    {
      stdio: ["ignore", "inherit", "inherit"],
      ipc: (said: string) => waiting.shift()?.(said),
      onExit: () => waiting.splice(0).forEach((tell) => void tell(null)),
    },
  );
  const heard = () => new Promise<string | null>((resolve) => void waiting.push(resolve));
  const url = await heard();
  if (url === null) throw new Error("the host did not start");
  return {
    url,
    /** Whether it lived on, and has decided about all that was due. */
    async decide(moment: Moment): Promise<boolean> {
      const answer = heard();
      process.send(moment);
      return (await answer) !== null;
    },
    async kill(): Promise<void> {
      process.kill("SIGKILL");
      await process.exited;
    },
    exited: process.exited,
  };
}

/** What stands in the database of a host that runs, or was killed. */
function read<T>(dataDir: string, query: string): T[] {
  using db = new Database(join(dataDir, "roost.db"));
  return db.query<T, []>(query).all();
}

test.each(WEEKS.flatMap((week) => Array.from({ length: SEEDS }, (_, seed) => [...week, seed] as const)))(
  "a week of %s: every time is decided once, with its reason, and nobody is told anything twice",
  async (name, from, length, seed) => {
    const [start, random] = [Date.parse(from), createRandom(seed, name.length)];
    const mock = startMockModelServer({ answer: { kind: "text", tokens: ["Done."] } });
    const dataDir = mkdtempSync(join(tmpdir(), "roost-week-"));
    // What is set up, is set up in this process.
    const first = await startTestServer({}, { dataDir, clock: handClock(start) });
    const owner = await first.signUp();
    const { instanceId } = (await owner.ask("POST", "/v1/instances", { name: "home" })).body;
    const agents = `/v1/instances/${instanceId}/agents`;
    const ids = new Map<string, number[]>();
    const planned = new Map<string, (typeof PLANS)[number]>();
    for (const plan of PLANS) {
      const { zone: timeZone, cron, missed, hours } = plan;
      const { agentId } = (await owner.ask("POST", agents, { name: cron })).body;
      const activeHours = hours ? { from: hours[0], to: hours[1] } : null;
      const body = { name: cron, message: "Work.", cron, timeZone, missed, activeHours };
      const { scheduleId } = (await owner.ask("POST", `${agents}/${agentId}/schedules`, body)).body;
      ids.set(scheduleId, dueTimes(timeZone, plan.fits, start, start + length));
      planned.set(scheduleId, plan);
    }
    const heartbeat = { everySeconds: 5400, timeZone: "UTC" };
    const files = { "HEARTBEAT.md": "- Look around." };
    const { agentId } = (await owner.ask("POST", agents, { name: "beats", heartbeat, files })).body;
    const [beat] = (await owner.ask("GET", `${agents}/${agentId}/schedules`)).body.data;
    ids.set(
      beat.scheduleId,
      Array.from({ length: length / (5400 * 1000) }, (_, n) => start + (n + 1) * 5400 * 1000),
    );
    // The folder stays.
    await first.app.stop();
    first.foundation.store.close();

    const seen = new Map<string, Slot>();
    /** When a host looked what was due, in this order, and whether it lived to decide about all of it. */
    const looks: { at: number; isWhole: boolean }[] = [];
    const note = () => {
      for (const slot of read<Slot>(dataDir, "SELECT * FROM schedule_slots")) {
        const key = `${slot.schedule_id} ${slot.slot_at}`;
        const before = seen.get(key);
        // How its run ended may be known by now, and nothing else; what was missed is decided anew after a clock set back.
        if (before && before.status !== "missed") expect(slot.run_id).toBe(before.run_id);
        seen.set(key, slot);
      }
    };
    const counts = { kills: 0, downtimes: 0, back: 0, forward: 0 };
    let host = await startHost(dataDir, mock.url, start);
    let now = start;
    const end = start + length;
    for (let step = 1; now < end; step++) {
      const chance = random.below(100);
      if (chance === 0) {
        counts.back++;
        now -= (1 + random.below(18)) * STEP;
      } else if (chance === 1) {
        counts.forward++;
        now = Math.min(end, now + (2 + random.below(23)) * STEP);
      } else now = Math.min(end, now + STEP);
      const dies = chance >= 2 && chance < 4;
      const turns = dies ? random.below(31) : null;
      looks.push({ at: now, isWhole: await host.decide({ at: now, turns }) });
      if (dies) {
        counts.kills++;
        await host.exited;
        note();
        if (chance === 3) {
          counts.downtimes++;
          now = Math.min(end, now + (1 + random.below(8)) * HOUR);
        }
        looks.push({ at: now, isWhole: false });
        host = await startHost(dataDir, mock.url, now);
      } else if (step % 100 === 0) note();
    }
    while (!(await host.decide({ at: end + MINUTE, turns: null })));
    looks.push({ at: end + MINUTE, isWhole: true });
    note();
    await host.kill();
    // What was killed in the middle is brought to its end.
    const last = await startTestServer(
      { ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: mock.url },
      { dataDir, clock: handClock(end + MINUTE) },
    );
    await ended(last, "SELECT run_id FROM runs WHERE status = 'queued' OR status = 'running'");
    note();

    const decided = (id: string) => [...seen.values()].filter((slot) => slot.schedule_id === id);
    for (const [id, times] of ids) {
      expect(
        decided(id)
          .map(({ slot_at }) => slot_at)
          .sort((a, b) => a - b),
      ).toEqual(times);
    }
    for (const slot of seen.values()) {
      const { slot_at: at, status, reason } = slot;
      // Up to the first that was whole, each time that the clock came to it.
      let isDecided = false;
      const possible = looks.filter((look) => {
        if (look.at < at) isDecided = false;
        const mayDecide = look.at >= at && !isDecided;
        isDecided ||= mayDecide && look.isWhole;
        return mayDecide;
      });
      const isLate = status === "missed" || (reason?.startsWith("late") ?? false);
      const fits = possible.some((look) => look.at > at + LATE_MS === isLate);
      if (status === "ran" || isLate) expect([slot, fits]).toEqual([slot, true]);
      if (status === "missed") expect(reason).toBe("the host was not running at that time");
      if (status === "skipped") expect(reason).toMatch(/^outside the active hours|^the run before it/);
      if (status !== "ran") expect(slot.reason).not.toBeNull();
      expect(slot.run_id === null).toBe(status === "missed" || status === "skipped");
    }
    // Each run was asked for once, in one message, and announced once.
    const runs = [...seen.values()].flatMap(({ run_id }) => run_id ?? []).sort();
    const { sqlite } = last.foundation.store;
    const told = (role: string, what: string) =>
      sqlite
        .query<{ run_id: string }, []>(`SELECT run_id FROM messages WHERE role = '${role}' AND ${what} ORDER BY run_id`)
        .all()
        .map(({ run_id }) => run_id);
    expect(told("user", "origin_id IS NOT NULL")).toEqual(runs);
    expect(told("agent", "origin_id IS NOT NULL AND in_reply_to IS NULL")).toEqual(runs);
    const by = (status: string) => [...seen.values()].filter((slot) => slot.status === status).length;
    const outcomes = { ran: by("ran"), missed: by("missed"), skipped: by("skipped"), failed: by("failed") };
    console.log(`${name}, seed ${seed}: ${seen.size} times, ${JSON.stringify({ ...outcomes, ...counts })}`);
    expect(counts.kills).toBeGreaterThan(5);
    await last.stop();
    await mock.stop();
  },
);

async function ended(server: Awaited<ReturnType<typeof startTestServer>>, unfinished: string): Promise<void> {
  const { sqlite } = server.foundation.store;
  while (sqlite.query(unfinished).all().length > 0) await new Promise((resolve) => setImmediate(resolve));
}
