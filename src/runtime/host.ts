import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import type { ModelEngine } from "../models/engine.ts";
import { callTool, changeNothing } from "../tools/policy.ts";
import type { Toolbox } from "../tools/toolbox.ts";
import { createHostPlaces, type HostBounds, type IdleWorker, sleepsFor } from "./host-places.ts";
import { failureOf } from "./model-failure.ts";
import { type LoopEvent, type ModelFailure, PROTOCOL_VERSION, type RunInput, type WorkerToHost } from "./protocol.ts";
import { spawnWorker, type WorkerHandle } from "./worker-handle.ts";

/** A run as the host sees it: what the worker needs, and what stays here. */
export interface HostedRun {
  agentId: string;
  /** `local:…` or `openai:…`. */
  model: string;
  input: RunInput;
  /** Takes what happened, in order; resolves when it is committed. */
  sink(events: LoopEvent[]): Promise<void>;
}

export interface Host {
  /** Whether the account may have one more run at work now. */
  hasPlace(accountId: string): boolean;
  /**
   * Takes a place for a run and wakes its instance's worker where it sleeps; the longest idle one is put to sleep for it
   * where too many are awake. `"each"` where the account has as much at work as it may, `"total"` where the host has.
   */
  reserve(accountId: string, instanceId: string): "taken" | "each" | "total";
  /** Gives back a place that no run came to. */
  release(instanceId: string): void;
  /** Hands a run, for which a place was taken, to its instance's worker. */
  run(instanceId: string, run: HostedRun): void;
  cancel(instanceId: string, runId: string): void;
  /** Ends the instance's worker. Runs that it still held are forgotten, not ended: their owner has seen to them. */
  sleep(instanceId: string): void;
  close(): void;
  /** True once it is closed: nothing runs any more. */
  closed(): boolean;
  awake(): number;
}

export interface HostParts {
  clock: Clock;
  log: Log;
  toolbox: Toolbox;
  /** The engine of a model's name. Throws `ModelError` for one that the host does not have. */
  engineOf(model: string): ModelEngine;
  idleMs: number;
  bounds: HostBounds;
  /** Told, once for each turn of the event loop, that a place has become free. */
  onRoom(): void;
  /** Where workers run. */
  spawn?: typeof spawnWorker;
  /** How often workers are looked after, and how many looks a worker may leave unanswered before it counts as stuck. */
  tickMs?: number;
  stuckTicks?: number;
}

interface Instance extends IdleWorker {
  instanceId: string;
  /** Places that were taken for runs which are not here yet. */
  reserved: number;
  worker: WorkerHandle;
  runs: Map<string, { run: HostedRun; committed: Promise<void> }>;
  /** What the worker has asked for and not yet got. */
  calls: Map<number, { runId: string; abort: AbortController }>;
  /** Looks since the worker was asked for a sign of life; null once it gave one. */
  unanswered: number | null;
}

const TICK_MS = 1_000;
/**
 * 30 s (docs/contract/runtime.md, Isolation). Counted in looks, so that a host that was itself suspended accuses
 * nobody.
 */
const STUCK_TICKS = 30;

/** One worker for each awake instance, and the host's side of the port: models, tools, and what happened. */
export function createHost(parts: HostParts): Host {
  const { clock, log, toolbox, engineOf, idleMs, bounds, onRoom } = parts;
  const { spawn = spawnWorker, tickMs = TICK_MS, stuckTicks = STUCK_TICKS } = parts;
  const instances = new Map<string, Instance>();
  let closed = false;
  const monotonicMs = () => Number(clock.monotonicNs() / 1_000_000n);

  const places = createHostPlaces(bounds, monotonicMs, () => closed || onRoom());

  const isIdle = ({ runs, reserved }: Instance) => runs.size + reserved === 0;

  /** Puts an idle worker to sleep for this account. False where that would give it no place. */
  function makeRoom(accountId: string): boolean {
    const idle = [...instances.values()].filter(isIdle);
    const chosen = sleepsFor(idle, accountId, places.workers.shortfall(accountId));
    if (chosen) end(chosen.instanceId, chosen);
    return chosen !== undefined;
  }

  function wake(accountId: string, instanceId: string): Instance | "each" | "total" {
    const awake = instances.get(instanceId);
    if (awake) return awake;
    if (!places.mayWake(accountId)) return "each";
    let place = places.workers.acquire(accountId);
    while (place !== "taken" && makeRoom(accountId)) place = places.workers.acquire(accountId);
    if (place !== "taken") return place;
    places.woke(accountId);
    const instance: Omit<Instance, "worker"> = {
      instanceId,
      accountId,
      reserved: 0,
      runs: new Map(),
      calls: new Map(),
      lastUsedMs: monotonicMs(),
      unanswered: null,
    };
    try {
      const worker = spawn({
        onMessage: (message) => receive(instanceId, spawned, message),
        onDeath: (reason) => bury(instanceId, spawned, reason),
      });
      const spawned: Instance = { ...instance, worker };
      instances.set(instanceId, spawned);
      return spawned;
    } catch (err) {
      // Too few threads are left for what the settings allow. Who has work goes on; this run waits for one of them.
      places.giveWorker(accountId);
      log.error({ err, instanceId, awake: instances.size }, "a worker could not be started; lower ROOST_MAX_AWAKE");
      if (instances.size === 0) throw err;
      return "total";
    }
  }

  function end(instanceId: string, instance: Instance): void {
    instances.delete(instanceId);
    instance.worker.end();
    for (const { abort } of instance.calls.values()) abort.abort();
    places.giveRuns(instance.accountId, instance.runs.size + instance.reserved);
    places.giveWorker(instance.accountId);
  }

  /** The run is over, or somebody else's. */
  function drop(instance: Instance, runId: string): boolean {
    if (!instance.runs.delete(runId)) return false;
    places.giveRuns(instance.accountId);
    return true;
  }

  /** The worker died or is stuck: its runs fail, other instances notice nothing. */
  function bury(instanceId: string, instance: Instance, reason: string): void {
    if (instances.get(instanceId) !== instance) return;
    log.error({ instanceId, reason }, "an instance's worker ended");
    const held = [...instance.runs.values()];
    end(instanceId, instance);
    const outcome = {
      kind: "failed",
      code: "internal_error",
      message: "the agent's worker ended unexpectedly",
    } as const;
    for (const { run } of held) void run.sink([{ type: "ended", outcome }]);
  }

  function receive(instanceId: string, instance: Instance, message: WorkerToHost): void {
    if (instances.get(instanceId) !== instance) return;
    instance.unanswered = null;
    switch (message.type) {
      case "ready":
        if (message.protocol !== PROTOCOL_VERSION) bury(instanceId, instance, `it speaks protocol ${message.protocol}`);
        break;
      case "run.events": {
        const held = instance.runs.get(message.runId);
        if (!held) break;
        held.committed = held.run.sink(message.events);
        if (message.events.some(({ type }) => type === "ended")) drop(instance, message.runId);
        instance.lastUsedMs = monotonicMs();
        break;
      }
      case "model.call":
        void serveModel(instanceId, instance, message);
        break;
      case "tool.call":
        void serveTool(instanceId, instance, message);
        break;
      case "tool.weigh": {
        const { callId, calls } = message;
        instance.worker.send({ type: "tool.weighed", callId, together: changeNothing(toolbox, calls) });
        break;
      }
      case "model.cancel":
      case "tool.cancel":
        instance.calls.get(message.callId)?.abort.abort();
        break;
      case "pong":
    }
  }

  async function serveModel(
    instanceId: string,
    { accountId, worker, runs, calls }: Instance,
    { callId, runId, request }: Extract<WorkerToHost, { type: "model.call" }>,
  ): Promise<void> {
    const run = runs.get(runId)?.run;
    if (!run) return;
    const abort = new AbortController();
    calls.set(callId, { runId, abort });
    let error: ModelFailure | null = null;
    try {
      const asked = { ...request, model: run.model, accountId, instanceId };
      for await (const events of engineOf(run.model).stream(asked, abort.signal)) {
        worker.send({ type: "model.events", callId, events });
      }
    } catch (thrown) {
      if (!abort.signal.aborted) error = failureOf(thrown, log, { instanceId, runId, model: run.model });
    } finally {
      calls.delete(callId);
    }
    worker.send({ type: "model.end", callId, error });
  }

  async function serveTool(
    instanceId: string,
    { worker, runs, calls }: Instance,
    { callId, runId, name, input }: Extract<WorkerToHost, { type: "tool.call" }>,
  ): Promise<void> {
    const held = runs.get(runId);
    if (!held) return;
    const abort = new AbortController();
    calls.set(callId, { runId, abort });
    // The log says that the tool was started before anything it does: after a crash nothing is done twice unknowingly.
    await held.committed;
    // Cancelled meanwhile, or the log could not be written.
    if (abort.signal.aborted) return void calls.delete(callId);
    const context = { instanceId, agentId: held.run.agentId, clock, signal: abort.signal };
    const result = await callTool(toolbox, { name, input }, context);
    calls.delete(callId);
    worker.send({ type: "tool.result", callId, ...result });
  }

  const timer = setInterval(() => {
    const now = monotonicMs();
    for (const [instanceId, instance] of instances) {
      const { runs, worker, lastUsedMs } = instance;
      if (instance.unanswered !== null) {
        if (++instance.unanswered >= stuckTicks) bury(instanceId, instance, "it was stuck");
      } else if (runs.size > 0) {
        instance.unanswered = 0;
        worker.send({ type: "ping" });
      } else if (isIdle(instance) && now - lastUsedMs >= idleMs) end(instanceId, instance);
    }
  }, tickMs);
  timer.unref();

  return {
    hasPlace: (accountId) => places.runs.shortfall(accountId) === 0,
    reserve(accountId, instanceId) {
      const place = places.runs.acquire(accountId);
      if (place !== "taken") return place;
      let instance: ReturnType<typeof wake> | undefined;
      try {
        instance = wake(accountId, instanceId);
      } finally {
        // Not told as room: whoever waits would ask again, and again.
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
      places.giveRuns(instance.accountId);
    },
    run(instanceId, run) {
      const instance = instances.get(instanceId);
      if (!instance || instance.reserved === 0) throw new Error("a run came without a place for it");
      instance.reserved--;
      instance.lastUsedMs = monotonicMs();
      instance.runs.set(run.input.runId, { run, committed: Promise.resolve() });
      instance.worker.send({ type: "run", run: run.input });
    },
    cancel(instanceId, runId) {
      const instance = instances.get(instanceId);
      if (!instance || !drop(instance, runId)) return;
      instance.worker.send({ type: "cancel", runId });
      for (const call of instance.calls.values()) if (call.runId === runId) call.abort.abort();
    },
    sleep(instanceId) {
      const instance = instances.get(instanceId);
      if (instance) end(instanceId, instance);
    },
    close() {
      closed = true;
      clearInterval(timer);
      for (const [instanceId, instance] of instances) end(instanceId, instance);
    },
    closed: () => closed,
    awake: () => instances.size,
  };
}
