import type { Instance } from "../../instances/schema.ts";
import { notFound } from "../../lib/app-error.ts";
import type { Clock } from "../../lib/clock.ts";
import { isId, newId } from "../../lib/id.ts";
import type { Log } from "../../lib/log.ts";
import type { Host, HostedRun } from "../../runtime/host.ts";
import type { JournalStep, LoopEvent, RunOutcome } from "../../runtime/protocol.ts";
import type { Store } from "../../storage/store.ts";
import type { AgentEvent } from "../events/event.ts";
import type { EventLog } from "../events/event-log.ts";
import type { MessageQueries, RunsOf } from "../queries.ts";
import { type MessageRecord, showMessage } from "../record.ts";
import type { Run, RunStatus } from "../schema.ts";
import { createActiveRuns } from "./active-runs.ts";
import { readJournal } from "./journal.ts";
import { advance, newProgress, type Progress } from "./progress.ts";
import { type Caused, queuedRun } from "./queued-run.ts";
import { replyOfRun } from "./reply.ts";
import { pageOfRuns } from "./run-page.ts";
import { createRunQueue } from "./run-queue.ts";

export interface RunParts {
  store: Store;
  clock: Clock;
  log: Log;
  events: EventLog;
  queries: MessageQueries;
  host: Host;
  /** What the runtime needs for this run, as the agent stands now; null when its instance is not running. */
  prepare(run: Run, journal: JournalStep[]): Omit<HostedRun, "sink"> | null;
  /** The account that a run's places are taken for; undefined for an instance that is gone. */
  accountOf(instanceId: string): string | undefined;
  /** How the agent signs its messages. */
  senderOf(agentId: string): { id: string; name: string };
  /** How long after a commit that failed (a full disk) a run is taken up again. */
  retryMs?: number;
  /** How long starting runs may hold one turn of the event loop. */
  startsMs?: number;
}

/** A run that has ended, with the agent's message that it wrote; null when it failed before it said anything. */
export interface EndedRun {
  run: Run;
  reply: MessageRecord | null;
}

export interface Runs {
  get(agentId: string, runId: string): Run;
  /** Newest first, behind this place in the agent's log; of every status where none is named. */
  page(whose: RunsOf, status: RunStatus | null, before: number | null, limit: number): Run[];
  /** Writes a queued run and its event; it starts when its turn comes. Call it in the transaction of its message. */
  queue(of: Caused, instance: Pick<Instance, "instanceId" | "stops">, messageId: string): Run;
  /** Ends a run with what there is; an ended run stays as it is. Call it in a transaction. */
  cancel(run: Run): Run;
  cancelAll(runs: Run[]): void;
  /** Cancels the instance's runs in progress, as many as have a place. Call it in a transaction. */
  cancelInProgress(instanceId: string): void;
  /** Cancels at most `most` runs of before the instance's last stop; gives how many. Call it in a transaction. */
  cancelStopped(instanceId: string, most: number): number;
  /** Whether the agent has a run in progress, or one that a request waits for. */
  isAwaited(agentId: string): boolean;
  /** The run, once it has ended and its end is on disk. */
  whenEnded(runId: string): Promise<EndedRun>;
  /** Gives places that have become free to the runs that wait for one. */
  serve(): void;
  /**
   * After a start: runs what was queued, and goes on with what was in progress (docs/contract/api.md, After a restart).
   */
  recover(): void;
}

interface ActiveRun {
  run: Run;
  progress: Progress;
  /** `stalled`: a commit failed, and what is in memory is ahead of the log; the run waits to be taken up from there. */
  state: "live" | "stalled" | "ended";
}

const BROKEN: RunOutcome = {
  kind: "failed",
  code: "internal_error",
  message: "the agent's run could not be started; the host's log tells why",
};

export function createRuns(parts: RunParts): Runs {
  const { store, clock, log, events, queries, host, prepare, accountOf, senderOf, retryMs = 5_000 } = parts;
  const active = createActiveRuns<ActiveRun>();
  const waiting = new Map<string, ((ended: EndedRun) => void)[]>();

  const queue = createRunQueue({
    nextRun: (agentId) => (host.closed() ? undefined : active.next(agentId, queries.inTurn)),
    accountOf,
    reserve: host.reserve,
    start: take,
    onFailure: fail,
    startsMs: parts.startsMs,
  });
  const { dispatch } = queue;

  /** Takes up a run that has a place: a new one, or one that an earlier process, or a failed commit, left in progress. */
  function take(run: Run): boolean {
    const { runId } = run;
    const isNew = run.status === "queued";
    const journal = isNew ? null : readJournal(events, run);
    if (isNew) return start(run, [], { type: "run.started", runId });
    if (journal) return start(run, journal.steps, journal.shown ? { type: "run.restarted", runId } : null);
    host.release(run.instanceId);
    fail(run, new Error("what it did is no longer in its agent's events"));
    return true;
  }

  /** Hands a run to the host. It never throws: it follows commits, whose other consequences must come to pass. */
  function start(run: Run, journal: JournalStep[], first: AgentEvent | null): boolean {
    const { instanceId, runId } = run;
    const current: ActiveRun = { run, progress: newProgress(run), state: "live" };
    try {
      const prepared = prepare(run, journal);
      if (!prepared) {
        host.release(instanceId);
        return false;
      }
      const { model } = prepared;
      active.add(current);
      if (first || model !== run.model) {
        void commit(current, () => {
          queries.startRun(runId, run.startedAt ?? clock.now(), model);
          if (first) append(run, [first]);
        });
      }
      current.run = { ...run, model };
      host.run(instanceId, { ...prepared, sink: (batch) => commit(current, () => apply(current, batch)) });
    } catch (err) {
      host.release(instanceId);
      fail(run, err, current);
    }
    return true;
  }

  const append = ({ agentId, conversationId }: Run, told: AgentEvent[]) => events.append(agentId, told, conversationId);

  function fail(run: Run, err: unknown, current: ActiveRun = { run, progress: newProgress(run), state: "live" }): void {
    log.error({ err, runId: run.runId }, "a run could not be started");
    active.add(current);
    void commit(current, () => end(run, BROKEN, current));
  }

  /** Commits what happened to a run, unless it is over. */
  function commit(current: ActiveRun, work: () => void): Promise<void> {
    return store
      .commitSoon(() => {
        if (current.state !== "live") return;
        try {
          work();
        } catch (reason) {
          // At once: what follows in the same commit would leave a hole in the log.
          stall(current, reason);
          throw reason;
        }
      }, "process")
      .catch((err: unknown) => stall(current, err));
  }

  /** Gives a run up whose events could not be written, and takes it up again later, from the log. */
  function stall(current: ActiveRun, err: unknown): void {
    const { agentId, instanceId, runId } = current.run;
    if (current.state !== "live" || host.closed()) return;
    log.error({ err, runId }, "a run's events could not be written; it is taken up again");
    current.state = "stalled";
    host.cancel(instanceId, runId);
    // It stays in its place meanwhile: the run behind it must not overtake it.
    setTimeout(() => {
      if (host.closed() || !active.remove(current)) return;
      dispatch(agentId);
    }, retryMs).unref();
  }

  function apply(current: ActiveRun, batch: LoopEvent[]): void {
    const { run, progress } = current;
    const { told, outcome } = advance(progress, run.runId, batch);
    // Its end writes them too.
    if (!outcome && batch.some(({ type }) => type === "step" || type === "usage")) {
      queries.setProgress(run.runId, { steps: progress.steps, ...progress.usage });
    }
    if (told.length > 0) append(run, told);
    if (outcome) end(run, outcome, current);
  }

  /** The one place where a run ends: its message, its row and its last events, in one transaction. */
  function end(run: Run, outcome: RunOutcome, current: ActiveRun | undefined): Run {
    const { agentId, runId } = run;
    const { steps, usage } = current?.progress ?? newProgress(run);
    const text = textOf(run, current);
    const told: AgentEvent[] = [];
    let reply: MessageRecord | null = null;
    if (outcome.kind !== "failed" || text !== "") {
      const message = replyOfRun(run, { text, outcome, usage, sender: senderOf(agentId), createdAt: clock.now() });
      queries.insertMessage(message);
      reply = showMessage(message);
      told.push({ type: "message.completed", runId, message: reply });
    }
    const failure = outcome.kind === "failed" ? { code: outcome.code, message: outcome.message } : null;
    told.push(
      failure
        ? { type: "run.failed", runId, error: failure }
        : { type: `run.${outcome.kind as "completed" | "cancelled"}`, runId },
    );
    const change = {
      status: outcome.kind,
      finishedAt: clock.now(),
      errorCode: failure?.code ?? null,
      errorMessage: failure?.message ?? null,
      steps,
      ...usage,
    };
    queries.endRun(runId, change);
    append(run, told);
    const ended: Run = { ...run, ...change };
    const before = current?.state ?? "live";
    if (current) current.state = "ended";
    store.afterCommit(
      () => {
        if (current) active.remove(current);
        for (const tell of waiting.get(runId) ?? []) tell({ run: ended, reply });
        waiting.delete(runId);
        dispatch(agentId);
      },
      () => {
        if (current) current.state = before;
      },
    );
    return ended;
  }

  /** What the run has shown. Memory knows it while the run is live; else the log does. */
  function textOf(run: Run, current: ActiveRun | undefined): string {
    if (current?.state === "live") return current.progress.text;
    return run.status === "running" ? (readJournal(events, run)?.text ?? "") : "";
  }

  function cancel(run: Run): Run {
    if (run.status !== "queued" && run.status !== "running") return run;
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
    queue(caused, { instanceId, stops }, messageId) {
      const { agentId, conversationId } = caused;
      const runId = newId("run");
      const firstEventId = events.append(agentId, [{ type: "run.queued", runId }], conversationId);
      const run = queuedRun(caused, { runId, instanceId, messageId, firstEventId, stops, createdAt: clock.now() });
      queries.insertRun(run);
      store.afterCommit(() => dispatch(agentId));
      return run;
    },
    cancel,
    cancelAll: (unfinished) => {
      // The youngest first: none of them starts because the one before it ended.
      for (const run of unfinished.toReversed()) cancel(run);
    },
    cancelInProgress(instanceId) {
      for (const { run } of active.all()) {
        // As the database has it: another work of the same commit may have ended it.
        const current = run.instanceId === instanceId ? queries.run(run.runId) : undefined;
        if (current) cancel(current);
      }
    },
    cancelStopped(instanceId, most) {
      const stopped = queries.stoppedIn(instanceId, most);
      for (const run of stopped) cancel(run);
      return stopped.length;
    },
    isAwaited: (agentId) =>
      active.count(agentId) > 0 || queries.unfinishedOf(agentId).some(({ runId }) => waiting.has(runId)),
    whenEnded(runId) {
      const run = queries.run(runId);
      if (!run) throw notFound("run");
      if (run.status === "queued" || run.status === "running") {
        return new Promise((resolve) => void waiting.set(runId, [...(waiting.get(runId) ?? []), resolve]));
      }
      const reply = queries.reply(run.conversationId, run.messageId);
      return Promise.resolve({ run, reply: reply ? showMessage(reply) : null });
    },
    recover() {
      for (const agentId of queries.agentsWithUnfinished()) dispatch(agentId);
    },
    serve: queue.serve,
  };
}
