import { AppError, notFound } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import { isId, newId } from "../lib/id.ts";
import type { Log } from "../lib/log.ts";
import type { Host, HostedRun } from "../runtime/host.ts";
import type { JournalStep, LoopEvent, RunOutcome, Usage } from "../runtime/protocol.ts";
import type { Store } from "../storage/store.ts";
import type { AgentEvent } from "./event.ts";
import type { EventLog } from "./event-log.ts";
import { readJournal } from "./journal.ts";
import type { MessageQueries } from "./message-table.ts";
import { showMessage } from "./record.ts";
import type { Message, Run } from "./table.ts";

export interface RunParts {
  store: Store;
  clock: Clock;
  log: Log;
  events: EventLog;
  queries: MessageQueries;
  host: Host;
  /** What the runtime needs for this run, as the agent stands now; null when its instance is not running. */
  prepare(run: Run, journal: JournalStep[]): Omit<HostedRun, "sink"> | null;
  /** How the agent signs its messages. */
  senderOf(agentId: string): { id: string; name: string };
}

export interface Runs {
  get(agentId: string, runId: string): Run;
  /** Writes a queued run and its event; it starts when its turn comes. Call it in the transaction of its message. */
  queue(agentId: string, instanceId: string, messageId: string): Run;
  /** Ends a run with what there is; an ended run stays as it is. Call it in a transaction. */
  cancel(run: Run): Run;
  cancelAll(runs: Run[]): void;
  /** The run, once it has ended and its end is on disk. */
  whenEnded(runId: string): Promise<Run>;
  /** After a start: runs what was queued, and goes on with what was in progress (api.md section 5, rule 7). */
  recover(): void;
}

/** A run in progress, in memory: what the database learns of it in batches. */
interface ActiveRun {
  run: Run;
  text: string;
  steps: number;
  usage: Usage;
  ended: boolean;
}

/** How long after a commit that failed (a full disk) the agent's run is taken up again. */
const RETRY_MS = 5_000;

export function createRuns({ store, clock, log, events, queries, host, prepare, senderOf }: RunParts): Runs {
  /** One for each agent at most. */
  const active = new Map<string, ActiveRun>();
  const waiting = new Map<string, ((run: Run) => void)[]>();

  /** Starts the agent's next run, if none is in progress. */
  function dispatch(agentId: string, journal: JournalStep[] = [], resumed?: Run): void {
    if (active.has(agentId)) return;
    const run = resumed ?? queries.nextQueued(agentId);
    const prepared = run ? prepare(run, journal) : null;
    if (!run || !prepared) return;
    const current: ActiveRun = {
      run,
      text: "",
      steps: 0,
      usage: { promptTokens: 0, completionTokens: 0 },
      ended: false,
    };
    active.set(agentId, current);
    if (!resumed) {
      void commit(current, () => {
        queries.updateRun(run.runId, { status: "running", startedAt: clock.now() });
        events.append(agentId, [{ type: "run.started", runId: run.runId }]);
      });
    }
    host.run(run.instanceId, { ...prepared, sink: (batch) => commit(current, () => apply(current, batch)) });
  }

  /** Commits what happened to a run. A failed commit gives the run up and takes it up again later, from the log. */
  function commit(current: ActiveRun, work: () => void): Promise<void> {
    return store
      .commitSoon(() => {
        if (!current.ended) work();
      }, "process")
      .catch((err: unknown) => {
        const { agentId, instanceId, runId } = current.run;
        log.error({ err, runId }, "a run's events could not be written; it is taken up again");
        if (active.get(agentId) !== current) return;
        current.ended = true;
        active.delete(agentId);
        host.cancel(instanceId, runId);
        setTimeout(() => resume(runId), RETRY_MS).unref();
      });
  }

  function apply(current: ActiveRun, batch: LoopEvent[]): void {
    const { agentId, runId } = current.run;
    const told: AgentEvent[] = [];
    let outcome: RunOutcome | null = null;
    for (const event of batch) {
      switch (event.type) {
        case "step":
          current.steps++;
          queries.updateRun(runId, { steps: current.run.steps + current.steps });
          break;
        case "usage":
          current.usage.promptTokens += event.usage.promptTokens;
          current.usage.completionTokens += event.usage.completionTokens;
          break;
        case "delta":
          current.text += event.text;
          told.push({ type: "message.delta", runId, delta: event.text });
          break;
        case "tool.started":
          told.push({ ...event, runId, input: asJson(event.input) });
          break;
        case "tool.completed":
          told.push({ ...event, runId });
          break;
        case "ended":
          outcome = event.outcome;
      }
    }
    if (told.length > 0) events.append(agentId, told);
    if (outcome) end(current.run, outcome, current);
  }

  /** The one place where a run ends: its message, its row and its last events, in one transaction. */
  function end(run: Run, outcome: RunOutcome, current: ActiveRun | undefined): Run {
    const { agentId, runId } = run;
    if (current) current.ended = true;
    const usage = current?.usage ?? { promptTokens: 0, completionTokens: 0 };
    const text = current?.text ?? "";
    const told: AgentEvent[] = [];
    if (outcome.kind !== "failed" || text !== "") {
      const message = showMessage(writeReply(run, text, outcome, usage));
      told.push({ type: "message.completed", runId, message });
    }
    const failure = outcome.kind === "failed" ? { code: outcome.code, message: outcome.message } : null;
    told.push(
      failure
        ? { type: "run.failed", runId, error: failure }
        : { type: `run.${outcome.kind as "completed" | "cancelled"}`, runId },
    );
    const change: Partial<Run> = {
      status: outcome.kind,
      finishedAt: clock.now(),
      errorCode: failure?.code ?? null,
      errorMessage: failure?.message ?? null,
      ...usage,
    };
    queries.updateRun(runId, change);
    events.append(agentId, told);
    const ended: Run = { ...run, steps: run.steps + (current?.steps ?? 0), ...change };
    store.afterCommit(() => {
      if (current && active.get(agentId) === current) active.delete(agentId);
      for (const tell of waiting.get(runId) ?? []) tell(ended);
      waiting.delete(runId);
      dispatch(agentId);
    });
    return ended;
  }

  function writeReply(run: Run, text: string, outcome: RunOutcome, usage: Usage): Message {
    const sender = senderOf(run.agentId);
    const used = usage.promptTokens + usage.completionTokens > 0;
    return queries.insertMessage({
      messageId: newId("msg"),
      agentId: run.agentId,
      runId: run.runId,
      role: "agent",
      text,
      senderType: "agent",
      senderId: sender.id,
      senderName: sender.name,
      inReplyTo: run.messageId,
      finishReason:
        outcome.kind === "completed" ? outcome.finishReason : outcome.kind === "failed" ? "error" : "cancelled",
      promptTokens: used ? usage.promptTokens : null,
      completionTokens: used ? usage.completionTokens : null,
      createdAt: clock.now(),
    });
  }

  function cancel(run: Run): Run {
    if (run.status !== "queued" && run.status !== "running") return run;
    const current = active.get(run.agentId);
    const mine = current?.run.runId === run.runId ? current : undefined;
    const cancelled = end(run, { kind: "cancelled" }, mine);
    store.afterCommit(() => host.cancel(run.instanceId, run.runId));
    return cancelled;
  }

  /** Takes up a run that an earlier process, or a commit that failed, left in progress. */
  function resume(runId: string): void {
    const run = queries.run(runId);
    if (!run || active.has(run.agentId)) return;
    if (run.status !== "running") {
      dispatch(run.agentId);
      return;
    }
    const { shown, steps } = readJournal(events, run);
    if (shown) store.transaction(() => events.append(run.agentId, [{ type: "run.restarted", runId }]));
    dispatch(run.agentId, steps, run);
  }

  return {
    get(agentId, runId) {
      const run = isId("run", runId) ? queries.run(runId) : undefined;
      if (run?.agentId !== agentId) throw notFound("run");
      return run;
    },
    queue(agentId, instanceId, messageId) {
      const runId = newId("run");
      const firstEventId = events.append(agentId, [{ type: "run.queued", runId }]);
      const run = queries.insertRun({
        runId,
        agentId,
        instanceId,
        messageId,
        status: "queued",
        errorCode: null,
        errorMessage: null,
        steps: 0,
        promptTokens: 0,
        completionTokens: 0,
        firstEventId,
        createdAt: clock.now(),
        startedAt: null,
        finishedAt: null,
      });
      store.afterCommit(() => dispatch(agentId));
      return run;
    },
    cancel,
    cancelAll: (unfinished) => {
      // The youngest first: none of them starts because the one before it ended.
      for (const run of unfinished.toReversed()) cancel(run);
    },
    whenEnded(runId) {
      const run = queries.run(runId);
      if (!run) throw new AppError("not_found", "run not found");
      if (run.status !== "queued" && run.status !== "running") return Promise.resolve(run);
      return new Promise((resolve) => waiting.set(runId, [...(waiting.get(runId) ?? []), resolve]));
    },
    recover() {
      for (const run of queries.allUnfinished()) resume(run.runId);
    },
  };
}

/** A tool's input as the model wrote it: JSON where it is that, else its text. */
function asJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
