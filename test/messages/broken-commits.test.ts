import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/lib/clock.ts";
import { newId } from "../../src/lib/id.ts";
import { createLog } from "../../src/lib/log.ts";
import { createEventLog } from "../../src/messages/events/event-log.ts";
import { messageQueries } from "../../src/messages/queries.ts";
import { stepQueries } from "../../src/messages/runs/past-steps.ts";
import { createRuns, type Runs } from "../../src/messages/runs/runs.ts";
import { createTaint } from "../../src/messages/runs/taint.ts";
import type { Run, StoredEvent } from "../../src/messages/schema.ts";
import { type HostedRun, NO_MESSAGES } from "../../src/runtime/hosted-run.ts";
import type { LoopEvent } from "../../src/runtime/protocol.ts";
import { openStore, type Store } from "../../src/storage/store.ts";
import { createWalSync } from "../../src/storage/wal-sync.ts";

const AGENT = "agt_a";
const CAUSED = {
  agentId: AGENT,
  conversationId: `conv_${AGENT.slice(4)}`,
  originType: "user",
  originId: null,
} as const;
const INSTANCE = "inst_a";
const UNTAINTED = { conversationId: "conv_a", tools: [], isTainted: false, mayAsk: true };

let store: Store;
/** How often the store has synced to disk. */
let synced = 0;
let dataDir: string;
let runs: Runs;
/** The runs passed to the host, newest last. */
let hosted: HostedRun[];
let cancelled: string[];
/** Starts again what could not be written. */
let retries: (() => void)[];
/** Places that were given back unused. */
let released: number;
let broken: boolean;
let isDeleted: boolean;
let log: StoredEvent[];

beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "roost-runs-"));
  synced = 0;
  store = openStore(dataDir, (path) => {
    const walSync = createWalSync(path);
    return {
      ...walSync,
      sync() {
        synced++;
        return walSync.sync();
      },
    };
  });
  store.sqlite.run("PRAGMA foreign_keys = OFF");
  store.sqlite.run(
    `INSERT INTO instances (instance_id, account_id, name, status, created_at)
     VALUES ('${INSTANCE}', 'acct_a', 'x', 'running', 0)`,
  );
  store.sqlite.run(
    `INSERT INTO agents (agent_id, instance_id, name, slug, display_name, created_at, updated_at)
     VALUES ('${AGENT}', '${INSTANCE}', 'Ada', 'ada', 'Ada', 0, 0)`,
  );
  [hosted, cancelled, retries, released, log, broken, isDeleted] = [[], [], [], 0, [], false, false];
  runs = createRuns({
    store,
    clock: systemClock,
    log: await createLog("silent", "json"),
    events: createEventLog(store, systemClock, (_, rows) => void log.push(...rows)),
    queries: messageQueries(store.db),
    taint: createTaint(store.db),
    steps: stepQueries(store.db),
    accountOf: () => (isDeleted ? undefined : "acct_a"),
    host: {
      hasPlace: () => true,
      reserve: () => "taken",
      release: () => void released++,
      run: (_, run) => void hosted.push(run),
      cancel: (_, runId) => void cancelled.push(runId),
      sleep: () => {},
      close: () => {},
      closed: () => false,
      awake: () => 1,
      figures: () => ({ running: hosted.length, ended: new Map() }),
      spend: (_, work) => work(),
    },
    prepareUnkept: () => null,
    callLog: { writeOf: () => [], writeSoon() {} },
    prepare(run, journal) {
      if (broken) throw new Error("the workspace cannot be read");
      const input = { runId: run.runId, journal } as HostedRun["input"];
      return {
        ...UNTAINTED,
        agentId: AGENT,
        models: ["m"],
        compaction: null,
        input,
        turnTokens: [],
        turnMessages: NO_MESSAGES,
      };
    },
    senderOf: () => ({ id: AGENT, name: "Ada" }),
    retryLater: (retry) => void retries.push(retry),
    // However slow this machine is, no run waits for the next turn.
    startsMs: Number.POSITIVE_INFINITY,
  });
});
afterEach(() => {
  store.close();
  rmSync(dataDir, { recursive: true });
});

const queue = (): Run =>
  store.transaction(() => runs.queue(CAUSED, { instanceId: INSTANCE, accountId: "acct_a", stops: 0 }, newId("msg")));
/** As for an agent that has no other run. */
const queueFirst = (): Run =>
  runs.queue(CAUSED, { instanceId: INSTANCE, accountId: "acct_a", stops: 0 }, newId("msg"), "m");
const current = (): HostedRun => hosted.at(-1) ?? expect.unreachable();
const tell = (...events: LoopEvent[]): Promise<void> => current().sink(events, "process", []);
const done: LoopEvent = { type: "ended", outcome: { kind: "completed", finishReason: "stop" } };
const retryAll = (): void => {
  for (const retry of retries.splice(0)) retry();
};
const kinds = (): string[] => log.map(({ type }) => type);

/** Simulates a full disk: a write fails, alone (`ABORT`) or with its whole transaction (`ROLLBACK`). */
function breakWrites(how: "ABORT" | "ROLLBACK", when = "1"): () => void {
  store.sqlite.run(`CREATE TEMP TRIGGER full BEFORE INSERT ON main.events WHEN ${when}
    BEGIN SELECT RAISE(${how}, 'database or disk is full'); END`);
  return () => store.sqlite.run("DROP TRIGGER full");
}

for (const how of ["ABORT", "ROLLBACK"] as const) {
  test(`a run whose events cannot be written (${how}) is retried, and is not overtaken`, async () => {
    const [first, second] = [queue(), queue()];
    const ended = runs.waitFor(first.runId).ended;
    await tell({ type: "delta", text: "One" });
    const mend = breakWrites(how);
    await Promise.all([tell({ type: "delta", text: " two" }), tell({ type: "delta", text: " three" }, done)]);
    expect(cancelled).toEqual([first.runId]);
    mend();
    const third = queue();
    expect(hosted).toHaveLength(1);
    retryAll();
    expect(current().input.runId).toBe(first.runId);
    await tell({ type: "delta", text: "Again" }, done);
    expect((await ended).reply?.message).toBe("Again");
    expect(kinds()).toEqual([
      ...["run.queued", "run.queued", "run.started", "message.delta", "run.queued"],
      ...["run.restarted", "message.delta", "message.completed", "run.completed"],
    ]);
    expect(current().input.runId).toBe(second.runId);
    expect(runs.get(AGENT, third.runId).status).toBe("queued");
  });
}

test("a run whose end is not committed goes on: it is started again, and ends", async () => {
  const { runId } = queue();
  await tell({ type: "delta", text: "One" });
  const before = kinds();
  const ending = tell({ type: "delta", text: " two" }, done);
  // In the same commit, which then fails as a whole.
  const failing = store.commitSoon(() => store.sqlite.run("UPDATE OR ROLLBACK agents SET name = NULL"), "process");
  await expect(failing).rejects.toThrow("NOT NULL");
  await ending;
  expect([cancelled, kinds(), runs.get(AGENT, runId).status]).toEqual([[runId], before, "running"]);
  const ended = runs.waitFor(runId).ended;
  retryAll();
  expect(hosted.map(({ input }) => input.runId)).toEqual([runId, runId]);
  await tell({ type: "delta", text: "Again" }, done);
  expect((await ended).reply).toMatchObject({ message: "Again", finishReason: "stop" });
});

test("a run that is retried later delays only its own conversation, and keeps one of the agent's four places", async () => {
  const ids = ["conv_1", "conv_2", "conv_3", "conv_4"];
  for (const id of ids) {
    store.sqlite.run(
      "INSERT INTO conversations (conversation_id, agent_id, updated_at, created_at) VALUES (?, ?, 0, 0)",
      [id, AGENT],
    );
  }
  const queueIn = (conversationId: string): Run =>
    store.transaction(() =>
      runs.queue({ ...CAUSED, conversationId }, { instanceId: INSTANCE, accountId: "acct_a", stops: 0 }, newId("msg")),
    );
  const order = () => hosted.map(({ input }) => input.runId);
  const stalled = queue();
  const behind = queue();
  const [one, two, three, four] = ids.map(queueIn) as [Run, Run, Run, Run];
  expect(order()).toEqual([stalled, one, two, three].map(({ runId }) => runId));
  const mend = breakWrites("ABORT", `NEW.run_id = '${stalled.runId}'`);
  await hosted[0]?.sink([{ type: "delta", text: "lost" }], "process", []);
  expect(cancelled).toEqual([stalled.runId]);
  const next = queueIn(ids[0] ?? "");
  await hosted[1]?.sink([{ type: "delta", text: "goes on" }, done], "process", []);
  // In order of arrival: the fourth conversation's run comes before the first one's next.
  expect(order().slice(4)).toEqual([four.runId]);
  mend();
  retryAll();
  expect(order().slice(5)).toEqual([stalled.runId]);
  await hosted[2]?.sink([done], "process", []);
  expect(order().slice(6)).toEqual([next.runId]);
  await hosted[5]?.sink([done], "process", []);
  expect(order().slice(7)).toEqual([behind.runId]);
  expect(kinds().filter((kind) => kind === "run.failed")).toEqual([]);
  expect(runs.get(AGENT, two.runId).status).toBe("completed");
});

test("cancelling a run that waits to be retried keeps the text that was shown, and no more", async () => {
  const { runId } = queue();
  await tell({ type: "delta", text: "Shown" });
  const mend = breakWrites("ABORT");
  await tell({ type: "delta", text: " lost" });
  mend();
  const ended = runs.waitFor(runId).ended;
  store.transaction(() => runs.cancel(runs.get(AGENT, runId)));
  const next = queue();
  expect((await ended).reply).toMatchObject({ message: "Shown", finishReason: "cancelled" });
  expect(hosted.map(({ input }) => input.runId)).toEqual([runId, next.runId]);
  retryAll();
  expect(hosted).toHaveLength(2);
});

test("whoever asks for the end of a run only after its instance was deleted is told that it was cancelled", async () => {
  const asked = [queue(), queue()];
  await tell();
  isDeleted = true;
  const ends = asked.map(({ runId }) => runs.waitFor(runId).ended);
  expect(asked.map(({ runId }) => runs.get(AGENT, runId).status)).toEqual(["cancelled", "cancelled"]);
  expect((await Promise.all(ends)).map(({ run }) => run.status)).toEqual(["cancelled", "cancelled"]);
  expect(hosted).toHaveLength(1);
});

test("a cancellation that could not be written cancels nothing", async () => {
  const { runId } = queue();
  await tell({ type: "delta", text: "One" });
  const mend = breakWrites("ABORT");
  expect(() => store.transaction(() => runs.cancel(runs.get(AGENT, runId)))).toThrow("full");
  await expect(store.commitSoon(() => runs.cancel(runs.get(AGENT, runId)), "full")).rejects.toThrow("full");
  mend();
  expect(cancelled).toEqual([]);
  const ended = runs.waitFor(runId).ended;
  await tell({ type: "delta", text: " two" }, done);
  expect((await ended).reply).toMatchObject({ message: "One two", finishReason: "stop" });
});

test("a cancellation and a late delta in one commit: the run ends with what came before", async () => {
  const { runId } = queue();
  await tell();
  const ended = runs.waitFor(runId).ended;
  await Promise.all([
    tell({ type: "delta", text: "before" }),
    store.commitSoon(() => runs.cancel(runs.get(AGENT, runId)), "full"),
    tell({ type: "delta", text: " behind" }, done),
  ]);
  expect((await ended).reply?.message).toBe("before");
  expect(kinds().slice(2)).toEqual(["message.delta", "message.completed", "run.cancelled"]);
});

test("the start of a call that changes something outside is synced to disk at once, other events later", async () => {
  queue();
  await tell();
  const before = synced;
  await current().sink([{ type: "step" }], "process", []);
  expect(synced).toBe(before);
  await current().sink([{ type: "step" }], "full", []);
  expect(synced).toBe(before + 1);
});

test("a run that cannot be started fails, and the next one starts", async () => {
  broken = true;
  const { runId } = queue();
  const ended = await runs.waitFor(runId).ended;
  expect(ended).toMatchObject({ run: { status: "failed", errorCode: "internal_error" }, reply: null });
  expect(kinds()).toEqual(["run.queued", "run.failed"]);
  broken = false;
  const next = queue();
  await tell({ type: "delta", text: "fine" }, done);
  expect(runs.get(AGENT, next.runId).status).toBe("completed");
});

test("messages are answered in the order of arrival, even if the clock was set back between them", async () => {
  queue();
  const [second, third] = [queue(), queue()];
  // An id that a process with an earlier clock would have created.
  store.sqlite.run("UPDATE runs SET run_id = 'run_0' WHERE run_id = ?", [third.runId]);
  await tell(done);
  expect(current().input.runId).toBe(second.runId);
  await tell(done);
  expect(current().input.runId).toBe("run_0");
});

test("an idle agent's run is written as started, in the commit of its message", async () => {
  const run = await store.commitSoon(queueFirst, "process");
  expect(kinds()).toEqual(["run.queued", "run.started"]);
  expect(runs.get(AGENT, run.runId)).toMatchObject({ status: "running", model: "m", steps: 1 });
  expect(current().input).toMatchObject({ runId: run.runId, firstStepCounted: true });
  await tell({ type: "delta", text: "Hi" }, done);
  expect(runs.get(AGENT, run.runId)).toMatchObject({ status: "completed", steps: 1 });
});

test("a message that is not written gives the place of its run back, and the agent stays free", async () => {
  const failing = store.commitSoon(() => {
    queueFirst();
    throw new Error("the message cannot be written");
  }, "process");
  await expect(failing).rejects.toThrow("the message cannot be written");
  expect([hosted.length, released, kinds()]).toEqual([0, 1, []]);
  const { runId } = await store.commitSoon(queueFirst, "process");
  expect(hosted.map(({ input }) => input.runId)).toEqual([runId]);
});

test("a run that is cancelled in the commit that started it gives its place back, and the next one runs", async () => {
  const [{ runId }, { runId: nextId }] = await store.commitSoon(() => {
    const started = queueFirst();
    const [first] = messageQueries(store.db).inTurn(AGENT);
    runs.cancel(first ?? expect.unreachable());
    return [started, queueFirst()] as const;
  }, "process");
  expect(runs.get(AGENT, runId).status).toBe("cancelled");
  expect([hosted.map(({ input }) => input.runId), released]).toEqual([[nextId], 1]);
});

test("a run whose prompt cannot be read fails, although it was written as started", async () => {
  broken = true;
  const { runId } = await store.commitSoon(queueFirst, "process");
  expect((await runs.waitFor(runId).ended).run).toMatchObject({ status: "failed", errorCode: "internal_error" });
  expect(released).toBe(1);
});
