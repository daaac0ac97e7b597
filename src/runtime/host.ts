import type { FairTurns } from "../limits/fair-turns.ts";
import { changeNothing } from "../tools/policy.ts";
import type { Traces } from "../traces/traces.ts";
import { createHostPlaces, type HostBounds, type IdleWorker, sleepsFor, sleepsOf } from "./host-places.ts";
import { type HostedRun, passOn } from "./hosted-run.ts";
import { type LoopOutcome, PROTOCOL_VERSION, type RunOutcome, type WorkerToHost } from "./protocol.ts";
import { createRunWatch, type RunWatch } from "./run-watch.ts";
import { actsOutside, type CallingInstance, createWorkerCalls, type WorkerCallParts } from "./worker-calls.ts";
import { spawnWorker, type WorkerHandle } from "./worker-handle.ts";

export interface Host {
  /** Whether the account may have one more run in progress. */
  hasPlace(accountId: string): boolean;
  /**
   * Takes a place for a run, and wakes its instance's worker if it sleeps. If too many are awake, the longest idle one
   * is put to sleep for it. Returns `"each"` if the account has reached its limit or has to wait until it may start a
   * worker, `"total"` if the host has reached its own.
   */
  reserve(accountId: string, instanceId: string): "taken" | "each" | "total";
  /** Releases a place that was not used. */
  release(instanceId: string): void;
  /** Passes a run, for which a place was taken, to its instance's worker. */
  run(instanceId: string, run: HostedRun): void;
  cancel(instanceId: string, runId: string): void;
  /** Does what a run of the instance has caused, and counts its time against the account. */
  spend<T>(instanceId: string, work: () => T): T;
  /** Ends the instance's worker. The runs it still has are forgotten without being ended, which is up to the caller. */
  sleep(instanceId: string): void;
  close(): void;
  /** True once it is closed. Nothing runs then. */
  closed(): boolean;
  awake(): number;
  /** Runs that have a worker now, and how often runs have ended, by how. */
  figures(): { running: number; ended: ReturnType<RunWatch["ended"]> };
}

export interface HostParts extends WorkerCallParts {
  /** Null without a collector. */
  traces: Pick<Traces, "run"> | null;
  /** Of the accounts' agents. */
  turns: FairTurns;
  idleMs: number;
  bounds: HostBounds;
  /** Called when places have become free, at most once in a turn of the event loop. */
  onRoom(): void;
  /** By default a thread. */
  spawn?: typeof spawnWorker;
  /** How often workers are checked, and how many checks a worker may leave unanswered before it counts as stuck. */
  tickMs?: number;
  stuckTicks?: number;
}

interface Instance extends IdleWorker, CallingInstance {
  /** Places taken for runs that have not arrived yet. */
  reserved: number;
  worker: WorkerHandle;
  /** To be called once it is at work, or has ended. */
  started(): void;
  /** What the worker has sent, as long as it waits for its turn. */
  inbox: string[];
  isServed: boolean;
  /** Checks since its ping; null once it has answered. */
  unanswered: number | null;
}

const TICK_MS = 1_000;
/** 30 s (docs/contract/runtime.md, Isolation), in checks: so no worker is blamed when the whole host was suspended. */
const STUCK_TICKS = 30;

const CANCELLED: RunOutcome = { kind: "cancelled" };
const INTERRUPTED = { kind: "interrupted" } as const;
const WORKER_LOST: RunOutcome = {
  kind: "failed",
  code: "internal_error",
  message: "the agent's worker ended unexpectedly",
};

/** Runs one worker for each awake instance, and serves its port. */
export function createHost(parts: HostParts): Host {
  const { clock, log, toolboxOf, turns, idleMs, bounds, onRoom } = parts;
  const { spawn = spawnWorker, tickMs = TICK_MS, stuckTicks = STUCK_TICKS } = parts;
  const calls = createWorkerCalls(parts, turns);
  const watch = createRunWatch(parts.traces);
  const instances = new Map<string, Instance>();
  let closed = false;
  const monotonicMs = () => Number(clock.monotonicNs() / 1_000_000n);

  const places = createHostPlaces(bounds, monotonicMs, () => closed || onRoom());

  const isIdle = ({ runs, reserved }: Instance) => runs.size + reserved === 0;
  const idle = () => [...instances.values()].filter(isIdle);

  function putToSleep(chosen: Instance | undefined): boolean {
    if (chosen) end(chosen);
    return chosen !== undefined;
  }

  /** Puts an idle worker to sleep for this account. Returns false if that could not free a place for it. */
  const makeRoom = (accountId: string) => putToSleep(sleepsFor(idle(), accountId, places.workers.shortfall(accountId)));

  function wake(accountId: string, instanceId: string): Instance | "each" | "total" {
    const awake = instances.get(instanceId);
    if (awake) return awake;
    if (!places.starts.mayStart(accountId)) return "each";
    let place = places.workers.acquire(accountId);
    while (place !== "taken" && makeRoom(accountId)) place = places.workers.acquire(accountId);
    if (place !== "taken") return place;
    const instance: Omit<Instance, "worker" | "started"> = {
      ...{ instanceId, accountId, lastUsedMs: monotonicMs(), reserved: 0, isServed: false, unanswered: null },
      runs: new Map(),
      calls: new Map(),
      inbox: [],
    };
    try {
      const worker = spawn({
        onMessages: (texts) => hear(spawned, texts),
        onDeath: (reason) => bury(spawned, reason),
      });
      const spawned: Instance = { ...instance, worker, started: places.starts.start(accountId) };
      instances.set(instanceId, spawned);
      return spawned;
    } catch (err) {
      // The system allows fewer threads than the settings. Other runs continue; this one waits for a place.
      places.releaseWorker(accountId);
      log.error(
        { err, accountId, instanceId, awake: instances.size },
        "a worker could not be started; lower ROOST_MAX_AWAKE, or raise ulimit -n",
      );
      if (instances.size === 0) throw err;
      return "total";
    }
  }

  function end(instance: Instance, ending: RunOutcome | typeof INTERRUPTED = INTERRUPTED): void {
    instances.delete(instance.instanceId);
    instance.worker.end();
    for (const { abort } of instance.calls.values()) abort.abort();
    for (const held of instance.runs.values()) watch.end(held, ending);
    places.releaseRuns(instance.accountId, instance.runs.size + instance.reserved);
    places.releaseWorker(instance.accountId);
    instance.started();
  }

  /** Forgets a run and releases its place. Returns false if the instance does not have it. */
  function drop(instance: Instance, runId: string, ending: LoopOutcome): boolean {
    const held = instance.runs.get(runId);
    if (held === undefined) return false;
    instance.runs.delete(runId);
    watch.end(held, ending);
    const { accountId } = instance;
    places.releaseRuns(accountId);
    if (places.workers.inUse(accountId) > bounds.idleOfOne) putToSleep(sleepsOf(idle(), accountId, bounds.idleOfOne));
    return true;
  }

  /** The worker died or is stuck: its runs fail, other instances are not affected. */
  function bury(instance: Instance, reason: string, err?: unknown): void {
    const { instanceId, accountId, runs } = instance;
    if (instances.get(instanceId) !== instance) return;
    log.error({ err, accountId, instanceId, runIds: [...runs.keys()], reason }, "an instance's worker ended");
    end(instance, WORKER_LOST);
    for (const { run } of runs.values()) void run.sink([{ type: "ended", outcome: WORKER_LOST }], "process", []);
  }

  /** Passes on what a worker sends, in its order: accounts whose agents do much take turns with all others. */
  function hear(instance: Instance, texts: readonly string[]): void {
    instance.unanswered = null;
    instance.started();
    instance.inbox.push(...texts);
    if (!instance.isServed) void serve(instance);
  }

  async function serve(instance: Instance): Promise<void> {
    const { accountId, inbox } = instance;
    instance.isServed = true;
    try {
      while (inbox.length > 0) {
        const turn = turns.enter(accountId);
        if (turn) await turn;
        const text = inbox.shift() ?? "";
        turns.spend(accountId, () => receive(instance, JSON.parse(text) as WorkerToHost));
      }
    } catch (err) {
      // Such as a database that cannot be read: thrown on, nobody would learn of it, and the runs would never end.
      bury(instance, "what it sent could not be served", err);
    } finally {
      instance.isServed = false;
    }
  }

  function receive(instance: Instance, message: WorkerToHost): void {
    const { instanceId, worker } = instance;
    if (instances.get(instanceId) !== instance) return;
    switch (message.type) {
      case "ready":
        if (message.protocol !== PROTOCOL_VERSION)
          bury(instance, `its protocol version is ${message.protocol}, not ${PROTOCOL_VERSION}`);
        break;
      case "run.events": {
        const held = instance.runs.get(message.runId);
        if (!held) break;
        const durability = actsOutside(toolboxOf, instanceId, message.events) ? "full" : "process";
        held.committed = held.run.sink(message.events, durability, held.waits);
        instance.lastUsedMs = monotonicMs();
        const last = message.events.at(-1);
        if (last?.type === "ended") drop(instance, message.runId, last.outcome);
        break;
      }
      case "run.fault":
        calls.noteFault(instance, message);
        break;
      case "model.call":
        void calls.callModel(instance, message);
        break;
      case "tool.call":
        void calls.callTool(instance, message);
        break;
      case "tool.weigh": {
        const together = changeNothing(toolboxOf(instanceId), message.calls);
        worker.send({ type: "tool.weighed", callId: message.callId, together });
        break;
      }
      case "model.cancel":
      case "tool.cancel":
        instance.calls.get(message.callId)?.abort.abort();
        break;
      case "pong":
    }
  }

  const timer = setInterval(() => {
    const now = monotonicMs();
    for (const instance of instances.values()) {
      const { runs, worker, lastUsedMs } = instance;
      if (instance.unanswered !== null) {
        if (++instance.unanswered >= stuckTicks) bury(instance, "it was stuck");
      } else if (runs.size > 0) {
        instance.unanswered = 0;
        worker.send({ type: "ping" });
      } else if (isIdle(instance) && now - lastUsedMs >= idleMs) end(instance);
    }
  }, tickMs).unref();
  return {
    hasPlace: (accountId) => places.runs.shortfall(accountId) === 0,
    reserve(accountId, instanceId) {
      places.starts.works(accountId);
      const place = places.runs.acquire(accountId);
      if (place !== "taken") return place;
      let instance: ReturnType<typeof wake> | undefined;
      try {
        instance = wake(accountId, instanceId);
      } finally {
        // Released without calling `onRoom`, or the run would be tried again and again.
        if (typeof instance !== "object") places.runs.release(accountId);
      }
      if (typeof instance !== "object") return instance;
      instance.reserved++;
      return "taken";
    },
    release(instanceId) {
      const instance = instances.get(instanceId);
      if (!instance || instance.reserved === 0) return;
      instance.reserved--;
      places.releaseRuns(instance.accountId);
    },
    run(instanceId, run) {
      const instance = instances.get(instanceId);
      if (!instance || instance.reserved === 0) throw new Error("no place was reserved for this run");
      instance.lastUsedMs = monotonicMs();
      const [held, { worker }] = [watch.begin(instance, run), instance];
      instance.runs.set(run.input.runId, held);
      instance.reserved--;
      // Unless it was cancelled meanwhile.
      passOn(run, (input) => instance.runs.get(input.runId) === held && worker.send({ type: "run", run: input }));
    },
    cancel(instanceId, runId) {
      const instance = instances.get(instanceId);
      if (!instance || !drop(instance, runId, CANCELLED)) return;
      instance.worker.send({ type: "cancel", runId });
      for (const call of instance.calls.values()) if (call.runId === runId) call.abort.abort();
    },
    spend(instanceId, work) {
      const instance = instances.get(instanceId);
      return instance ? turns.spend(instance.accountId, work) : work();
    },
    sleep: (instanceId) => void putToSleep(instances.get(instanceId)),
    close() {
      closed = true;
      clearInterval(timer);
      for (const instance of instances.values()) end(instance);
    },
    closed: () => closed,
    awake: () => instances.size,
    figures: () => ({
      running: instances.values().reduce((sum, { runs }) => sum + runs.size, 0),
      ended: watch.ended(),
    }),
  };
}
