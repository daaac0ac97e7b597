import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Foundation, openFoundation } from "../src/app/foundation.ts";
import { newId } from "../src/lib/id.ts";
import { createLog } from "../src/lib/log.ts";
import { createMeter } from "../src/meter/meter.ts";
import { createMeterTimer } from "../src/meter/meter-timer.ts";
import { HOUR, handClock, SECOND } from "../test/lib/hand-clock.ts";
import { startBinary } from "../test/support/binary.ts";
import { median, type Row } from "./figure.ts";

const INSTANCES = 1_000;
const HOURLY = 30_000n;
const CREDIT = 1_000_000_000n;
/** After the start and its first pass. */
const STARTED_MS = 4_000;
/** Three passes over every meter, and what an idle server does besides. */
const IDLE_MS = 30_000;
/** Two passes. */
const PROBED_MS = 21_000;

/** How much of the processor the meter uses with a thousand running instances, and how long it delays a request. */
export async function benchMetering(): Promise<Row[]> {
  const none = await measure(0, 1);
  const rows: Row[] = [];
  for (const [name, accounts] of [
    ["in one account", 1],
    ["in 1,000 accounts", INSTANCES],
  ] as const) {
    const { cpu, slowest } = await measure(accounts, INSTANCES / accounts);
    const { pass, grown } = await meterAnHour(accounts, INSTANCES / accounts);
    rows.push(
      {
        figure: `1,000 instances running ${name}: of a core`,
        value: cpu,
        unit: "%",
        baseline: { what: "none running", value: none.cpu },
        goal: "< 1 % over none",
        met: cpu - none.cpu < 1,
      },
      {
        figure: "  slowest request in two passes",
        value: slowest,
        unit: "ms",
        baseline: { what: "none running", value: none.slowest },
      },
      { figure: "  one pass over the meters, commits and all", value: pass, unit: "ms" },
      { figure: "  growth of the database in an hour", value: grown, unit: "MiB" },
    );
  }
  return rows;
}

/** The server beside so many running instances: percent of a core while idle, and its slowest answer in milliseconds. */
async function measure(accounts: number, instancesEach: number): Promise<{ cpu: number; slowest: number }> {
  const dataDir = mkdtempSync(join(tmpdir(), "roost-bench-"));
  try {
    const foundation = openFoundation({ dataDir });
    fill(foundation, accounts, instancesEach);
    foundation.store.close();
    await using server = await startBinary({ dataDir, env: { ROOST_LOG_LEVEL: "info" } });
    await Bun.sleep(STARTED_MS);
    const before = cpuMs(server.process.pid);
    const begun = performance.now();
    await Bun.sleep(IDLE_MS);
    const cpu = ((cpuMs(server.process.pid) - before) * 100) / (performance.now() - begun);
    let slowest = 0;
    for (const until = performance.now() + PROBED_MS; performance.now() < until; await Bun.sleep(1)) {
      const sentAt = performance.now();
      await (await fetch(new URL("/healthz", server.url))).text();
      slowest = Math.max(slowest, performance.now() - sentAt);
    }
    return { cpu, slowest };
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/**
 * An hour of metering with a simulated clock: the time of a pass in milliseconds, and the growth of the database in
 * MiB.
 */
async function meterAnHour(accounts: number, instancesEach: number): Promise<{ pass: number; grown: number }> {
  const dataDir = mkdtempSync(join(tmpdir(), "roost-bench-"));
  const clock = handClock();
  const foundation = openFoundation({ dataDir }, clock);
  const { store, ledger } = foundation;
  try {
    const running = fill(foundation, accounts, instancesEach);
    const termsOf = () => ({ monthlyLimit: null, suspended: false });
    const meter = createMeter({ store, clock, ledger, pricePerHour: HOURLY, termsOf });
    meter.resume(running);
    const metering = createMeterTimer(meter, store, clock, await createLog("silent", "json"));
    const size = () => {
      store.sqlite.run("PRAGMA wal_checkpoint(TRUNCATE)");
      return statSync(join(dataDir, "roost.db")).size;
    };
    const before = size();
    const taken: number[] = [];
    for (let passed = 0; passed < HOUR; passed += 10 * SECOND) {
      clock.advance(10 * SECOND);
      const begun = performance.now();
      await metering.tick();
      taken.push(performance.now() - begun);
    }
    return { pass: median(taken), grown: (size() - before) / (1024 * 1024) };
  } finally {
    store.close();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** Creates accounts with much credit and running instances. */
function fill({ store, accounts, clock }: Foundation, count: number, instancesEach: number) {
  const running: { instanceId: string; accountId: string }[] = [];
  store.transaction(() => {
    for (let number = 0; number < count; number++) {
      const email = `payer-${number}@example.com`;
      const { accountId } = accounts.create({ email, name: "Payer", credit: CREDIT, note: "bench" });
      for (let made = 0; made < instancesEach; made++) running.push(insertRunning(accountId));
    }
  });
  return running;

  function insertRunning(accountId: string) {
    const instanceId = newId("inst");
    store.sqlite.run(
      "INSERT INTO instances (instance_id, account_id, name, status, created_at, started_at) VALUES (?, ?, 'one', 'running', ?, ?)",
      [instanceId, accountId, clock.now(), clock.now()],
    );
    return { instanceId, accountId };
  }
}

/** Processor time of a process so far, its own threads' (Linux, whose tick is 10 ms). */
function cpuMs(pid: number): number {
  // The name in brackets may hold spaces; utime and stime are the 14th and 15th fields.
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10;
}
