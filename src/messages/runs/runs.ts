import { notFound } from "../../lib/app-error.ts";
import { isId } from "../../lib/id.ts";
import type { Host } from "../../runtime/host.ts";
import type { WaitingCall } from "../../runtime/hosted-run.ts";
import type { JournalStep, LoopEvent, RunOutcome } from "../../runtime/protocol.ts";
import type { Durability, Store } from "../../storage/store.ts";
import type { AgentEvent } from "../events/event.ts";
import { isUnfinished, type Run, type RunStatus } from "../schema.ts";
import { type ActiveRun, createActiveRuns, idsOf, newActive } from "./active-runs.ts";
import { BROKEN, createEnding, type EndingParts, LOST, type RunListener } from "./ending.ts";
import { type Journal, NOTHING_DONE, readJournal } from "./journal.ts";
import { createNewRuns, type QueueRun } from "./new-runs.ts";
import { createParking, type Decision } from "./parking.ts";
import { parkingQueries } from "./parking-queries.ts";
import type { PreparedRun } from "./prepare.ts";
import { addCalls, advance, newProgress, savedOf } from "./progress.ts";
import { readReply } from "./reply.ts";
import { pageOfRuns, type RunsOf } from "./run-page.ts";
import { createRunQueue } from "./run-queue.ts";
import { createRunWaits, type RunWait } from "./run-waits.ts";
import { createUnkeptRuns, type UnkeptRunParts, type UnkeptRuns } from "./unkept-runs.ts";

export interface RunParts extends EndingParts, UnkeptRunParts {
  store: Store;
  host: Host;
  /** What the runtime needs for this run, from the agent's current state; null if its instance is not running. */
  prepare(run: Run, journal: JournalStep[]): PreparedRun | null;
  /** The account whose places an instance's runs take; undefined for a deleted instance. */
  accountOf(instanceId: string): string | undefined;
  /** Calls back when a run whose commit failed (a full disk) may be started again. */
  retryLater(retry: () => void): void;
  startsMs?: number;
}

export interface Runs {
  get(agentId: string, runId: string): Run;
  /** Newest first, before this place in the agent's log; of every status if none is named. */
  page(whose: RunsOf, status: RunStatus | null, before: number | null, limit: number): Run[];
  queue(...of: Parameters<QueueRun>): Run;
  unkept: Pick<UnkeptRuns, "queue" | "cancelOf">;
  /** The agent's unfinished runs of every kind, in the order in which they came. */
  inTurn(agentId: string): Run[];
  /**
   * Decides about a waiting call. After the last one, the run continues from its journal, ahead of queued runs. Returns
   * false, and does nothing, if no call of this run waits for `waitId` (any longer). Call it in a transaction.
   */
  resume(runId: string, waitId: string, decision: Decision): boolean;
  listen(listener: RunListener): void;
  /** Ends a run, keeping its text so far; an ended run stays as it is. Call it in a transaction. */
  cancel(run: Run): Run;
  cancelAll(runs: Run[]): void;
  /** Cancels the instance's runs that have a place. Call it in a transaction. */
  cancelInProgress(instanceId: string): void;
  /** Cancels at most `most` runs from before the instance's last stop; returns how many. Call it in a transaction. */
  cancelStopped(instanceId: string, most: number): number;
  /** Whether the agent has a run in progress, or one that a request waits for. */
  isAwaited(agentId: string): boolean;
  /** Waits until a run's end is committed. One of a deleted instance is ended, since nobody else does. */
  waitFor(runId: string): RunWait;
  /** Starts queued runs in places that have become free. */
  serve(): void;
  /** After a start: continues runs that were in progress (docs/contract/api.md, After a restart), and runs those queued. */
  recover(): void;
}

export function createRuns(parts: RunParts): Runs {
  const { store, clock, log, events, queries, taint, host, callLog, prepare, accountOf } = parts;
  const active = createActiveRuns();
  const waits = createRunWaits();
  const listeners: RunListener[] = [];
  const parking = createParking(queries.run, parkingQueries(store.db), events, taint);
  const writeEnd = createEnding(parts, parking);

  const queue = createRunQueue({
    nextRun: (agentId) => (host.closed() ? undefined : active.next(agentId, inTurn)),
    accountOf,
    hasPlace: host.hasPlace,
    reserve: host.reserve,
    start: (run) => host.spend(run.instanceId, () => take(run)),
    begin: (current) => host.spend(current.run.instanceId, () => begin(current)),
    onFailure: fail,
    startsMs: parts.startsMs,
  });
  const unkept = createUnkeptRuns(parts, active, queue);
  const inTurn = (agentId: string) => unkept.among(agentId, queries.inTurn(agentId));

  /** Starts a run that has a place: a new one, an interrupted one, or one that has waited. */
  function take(run: Run): boolean {
    const begun = unkept.start(run);
    if (begun !== undefined) return begun;
    const isNew = run.status === "queued";
    const journal = isNew ? NOTHING_DONE : journalOf(run);
    if (journal) return start(run, journal, isNew ? "run.started" : journal.shown ? "run.restarted" : null);
    host.release(run.instanceId);
    const current = newActive(run);
    active.add(current);
    void commit(current, () => end(run, LOST, current));
    return true;
  }

  /** Starts a run that was written as started with its message. */
  function begin(current: ActiveRun): void {
    if (host.closed()) return;
    if (current.state !== "live") host.release(current.run.instanceId);
    else if (!start(current.run, NOTHING_DONE, null, current)) active.remove(current);
  }

  const journalOf = (run: Run) => readJournal(events, run, parking.saved(run));

  /** Passes a run to the host. Never throws: it is called after commits, whose other callbacks must run too. */
  function start(
    run: Run,
    journal: Journal,
    first: "run.started" | "run.restarted" | null,
    current = newActive(run, journal.continues ? journal.text : ""),
  ): boolean {
    const { instanceId, runId } = run;
    try {
      const prepared = prepare(run, journal.steps);
      if (!prepared) {
        host.release(instanceId);
        return false;
      }
      const { models, isTainted, compaction } = prepared;
      const [model = null] = models;
      active.add(current);
      Object.assign(current.progress, { compaction, hasCalled: journal.steps.length > 0 });
      // Its first model call is counted here, since reporting it separately would cost another commit.
      const steps = first === "run.started" ? ++current.progress.steps : current.progress.steps;
      if (first || isTainted || model !== run.model) {
        void commit(current, () => {
          if (isTainted) taint.mark(current);
          queries.startRun(runId, { startedAt: run.startedAt ?? clock.now(), model, steps });
          if (first) append(run, [...journal.lost, { type: first, runId }]);
        });
      }
      current.run = { ...run, model };
      current.progress.model = model;
      host.run(instanceId, {
        ...prepared,
        input: { ...prepared.input, journalShown: journal.continues, firstStepCounted: journal === NOTHING_DONE },
        taint: () => commit(current, () => taint.mark(current)),
        sink: (batch, durability, waits) => commit(current, () => apply(current, batch, waits), durability),
      });
    } catch (err) {
      host.release(instanceId);
      fail(run, err, current);
    }
    return true;
  }

  const append = ({ agentId, conversationId }: Run, reported: AgentEvent[]) =>
    events.append(agentId, reported, conversationId);

  function fail(run: Run, err: unknown, current: ActiveRun = newActive(run)): void {
    log.error({ err, ...idsOf(run) }, "a run could not be started");
    active.add(current);
    void commit(current, () => end(run, BROKEN, current));
  }

  /** Commits what happened to a run, unless it is over. */
  function commit(current: ActiveRun, work: () => void, durability: Durability = "process"): Promise<void> {
    current.accountId ??= accountOf(current.run.instanceId) ?? "";
    const unlessOver = () => {
      if (current.state !== "live") return;
      try {
        host.spend(current.run.instanceId, work);
      } catch (reason) {
        // Immediately: later work in the same commit would leave a gap in the log.
        stall(current, reason);
        throw reason;
      }
    };
    return store.commitSoon(unlessOver, durability, current.accountId).catch((err: unknown) => stall(current, err));
  }

  /** Stops a run whose events could not be written, and starts it again later, from the log. */
  function stall(current: ActiveRun, err: unknown): void {
    const { agentId, instanceId, runId } = current.run;
    if (current.state !== "live" || host.closed()) return;
    log.error({ err, ...idsOf(current.run) }, "a run's events could not be written; it is started again");
    current.state = "stalled";
    host.cancel(instanceId, runId);
    // It keeps its place until then, so that the next run does not overtake it.
    parts.retryLater(() => {
      if (host.closed() || !active.remove(current)) return;
      queue.addUnfinished(agentId, instanceId);
    });
  }

  function apply(current: ActiveRun, batch: LoopEvent[], waits: readonly WaitingCall[]): void {
    const { run, progress } = current;
    const called = addCalls(progress, callLog.writeOf(run.runId));
    const { reported, outcome } = advance(progress, run.runId, batch);
    if (outcome !== null && outcome.kind !== "waiting") return void end(run, outcome, current, reported);
    if (reported.length > 0) append(run, reported);
    if (outcome !== null) park(current, waits);
    else if (called || batch.some(({ type }) => type === "step")) queries.setProgress(run.runId, savedOf(progress));
  }

  /** The one place where a run ends; `reported` is what it did last. */
  function end(run: Run, outcome: RunOutcome, current: ActiveRun | undefined, reported: AgentEvent[] = []): Run {
    const { runId } = run;
    const progress = current?.progress ?? newProgress(run);
    addCalls(progress, callLog.writeOf(runId));
    const text = textOf(run, current);
    for (const { ending } of listeners) ending?.(run, outcome);
    const ended = writeEnd(run, outcome, { ...progress, text }, reported);
    for (const { ended: listener } of listeners) listener?.(ended);
    letGo(run, current, () => waits.tell(runId, ended));
    return ended.run;
  }

  /** Ends this attempt: the run holds no place until its calls are decided on. */
  function park(current: ActiveRun, waits: readonly WaitingCall[]): void {
    const { run, progress } = current;
    queries.setProgress(run.runId, savedOf(progress));
    const parked = parking.park(run, waits);
    if (parked === null) return void end(run, LOST, current);
    if (parked.status === "waiting") for (const { waiting } of listeners) waiting?.(parked, waits, progress.isTainted);
    // Read again: a listener may have decided about its calls, whose `resume` came while the run was still active.
    const goesOn = () => queries.run(run.runId)?.status === "running";
    letGo(run, current, () => goesOn() && queue.addUnfinished(run.agentId, run.instanceId));
  }

  /** After the commit, frees the run's place, and starts the agent's next runs. */
  function letGo({ agentId, instanceId }: Run, current: ActiveRun | undefined, then: () => void): void {
    const before = current?.state ?? "live";
    if (current) current.state = "over";
    store.afterCommit(
      () => {
        if (current) active.remove(current);
        then();
        queue.startNext(agentId, instanceId);
      },
      () => {
        if (current) current.state = before;
      },
    );
  }

  /** What the run has shown: in memory while it is live, else in the log. */
  function textOf(run: Run, current: ActiveRun | undefined): string {
    if (current?.state === "live") return current.progress.text;
    return run.status === "queued" ? "" : (journalOf(run)?.text ?? "");
  }

  function cancel(found: Run): Run {
    // Read again: ending another one in the same commit may have ended it.
    const run = queries.run(found.runId);
    if (run === undefined || !isUnfinished(run)) return run ?? found;
    const current = active.of(run);
    const mine = current?.run.runId === run.runId ? current : undefined;
    const cancelled = end(run, { kind: "cancelled" }, mine);
    store.afterCommit(() => host.cancel(run.instanceId, run.runId));
    return cancelled;
  }

  return {
    get(agentId, runId) {
      const run = isId("run", runId) ? queries.run(runId) : undefined;
      if (run?.agentId !== agentId || queries.isCleared(run)) throw notFound("run");
      return run;
    },
    page: (...asked) => pageOfRuns(queries, ...asked),
    queue: createNewRuns(parts, active, queue),
    unkept,
    inTurn,
    resume(runId, waitId, decision) {
      const run = parking.decide(runId, waitId, decision);
      if (run?.status === "running") store.afterCommit(() => queue.addUnfinished(run.agentId, run.instanceId));
      return run !== null;
    },
    listen: (listener) => void listeners.push(listener),
    cancel,
    // Newest first, so that none starts because the one before it ended.
    cancelAll: (unfinished) => void unfinished.toReversed().map(cancel),
    cancelInProgress(instanceId) {
      for (const { run } of active.all().filter(({ run }) => run.instanceId === instanceId)) cancel(run);
    },
    cancelStopped: (instanceId, most) => queries.stoppedIn(instanceId, most).map(cancel).length,
    isAwaited: (agentId) =>
      active.count(agentId) > 0 || queries.unfinishedOf(agentId).some(({ runId }) => waits.has(runId)),
    waitFor(runId) {
      const found = queries.run(runId);
      if (!found) throw notFound("run");
      const run = accountOf(found.instanceId) === undefined ? store.transaction(() => cancel(found)) : found;
      if (!isUnfinished(run)) return { ended: Promise.resolve({ run, reply: readReply(queries, run) }), leave() {} };
      store.afterCommit(
        () => {},
        () => waits.forget(runId),
      );
      return waits.add(runId);
    },
    recover() {
      for (const { agentId, instanceId } of queries.agentsWithUnfinished()) queue.addUnfinished(agentId, instanceId);
    },
    serve: queue.serve,
  };
}
