import type { Agents } from "../agents/agents.ts";
import type { Agent } from "../agents/schema.ts";
import type { Instances } from "../instances/instances.ts";
import { type Clock, isoTime } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import type { Quotas } from "../limits/quotas.ts";
import type { ModelAbilities } from "../models/engine.ts";
import type { Host } from "../runtime/host.ts";
import type { Removals } from "../storage/removals.ts";
import type { Store } from "../storage/store.ts";
import type { CallLog } from "../usage/call-log.ts";
import { type Aftermath, createAftermath } from "./aftermath.ts";
import { type Aging, createAging } from "./aging.ts";
import { createContext, type ReadContext } from "./context.ts";
import { type ConversationQueries, conversationQueries } from "./conversation-queries.ts";
import { type Conversations, createConversations } from "./conversations.ts";
import type { AgentEvent } from "./events/event.ts";
import { createEventLog, type EventLog } from "./events/event-log.ts";
import { createEventReader } from "./events/event-reader.ts";
import { createHub, type Hub } from "./events/hub.ts";
import { createForks, type Forks } from "./forks.ts";
import { createMessages, type Messages } from "./messages.ts";
import { messageQueries } from "./queries.ts";
import { createCompacting } from "./runs/compacting.ts";
import { createHistory } from "./runs/history.ts";
import { stepQueries } from "./runs/past-steps.ts";
import { abilitiesOf, modelsOf, type PrepareParts, prepareRun, prepareUnkept } from "./runs/prepare.ts";
import { createRuns, type Runs } from "./runs/runs.ts";
import { createTaint } from "./runs/taint.ts";
import { createWindows } from "./runs/window.ts";
import { createSummaries } from "./summaries.ts";
import { createTransfer, type Transfer } from "./transfer.ts";

export interface MessagingParts extends Omit<PrepareParts, "history" | "taint" | "outputOf"> {
  store: Store;
  clock: Clock;
  log: Log;
  instances: Instances;
  agents: Agents;
  host: Host;
  removals: Pick<Removals, "add">;
  quotas: Pick<Quotas, "requireHistoryRoom">;
  callLog: CallLog;
  /** Called in the transaction in which the oldest messages of a conversation come to the end of their life. */
  shortened(conversationId: string): void;
  /** Throws `budget_exceeded`, `forbidden` if the limits of its models leave no room for an answer. */
  requireBudget(whose: { accountId: string; instanceId: string; agentId: string }, model: string): void;
}

export interface Messaging {
  events: EventLog;
  hub: Hub;
  runs: Runs;
  messages: Messages;
  conversations: Conversations;
  forks: Forks;
  transfer: Transfer;
  /** Continues what an earlier process left unfinished. */
  recover(): void;
  aftermath: Aftermath;
  aging: Aging;
  context: ReadContext;
  /** What the model of this agent can do. */
  abilitiesOf(agent: Agent): ModelAbilities;
}

const RETRY_MS = 5_000;

/** Wires messages, runs and events together, and makes them react to changes of instances and agents. */
export function createMessaging(parts: MessagingParts): Messaging {
  const { store, clock, log, instances, agents, host } = parts;
  const reader = createEventReader(store.db);
  const hub = createHub(reader.follow, (err, { agentId, conversationId, runId }) =>
    log.error({ err, agentId, conversationId, runId }, "events could not be read; a stream of them was ended"),
  );
  const events = createEventLog(store, clock, hub.publish, reader);
  const queries = messageQueries(store.db);
  const steps = stepQueries(store.db);
  const accountOf = (instanceId: string) => instances.find(instanceId)?.accountId;
  const windows = createWindows(queries, steps, accountOf);
  const summaries = createSummaries(store.db);
  const taint = createTaint(store.db);
  const stored = conversationQueries(store.db);
  const findConversation = stored.find;
  const compacting = createCompacting({ clock, queries, steps, summaries, findConversation });
  const history = createHistory({ windows, summaries, findConversation, compacting });
  const preparing: PrepareParts = { ...parts, history, taint, outputOf: queries.outputOf };
  const runs = createRuns({
    store,
    clock,
    log,
    events,
    queries,
    taint,
    steps,
    host,
    callLog: parts.callLog,
    prepare(run, journal) {
      // Also where it starts in a later turn than the one in which its message was written.
      store.readTogether();
      return prepareRun(preparing, run, journal);
    },
    prepareUnkept(run, asked) {
      store.readTogether();
      return prepareUnkept(parts, run, asked);
    },
    accountOf,
    retryLater: (retry) => void setTimeout(retry, RETRY_MS).unref(),
    senderOf: (agentId) => ({ id: agentId, name: agents.nameOf(agentId) ?? "agent" }),
  });
  const { removals, quotas } = parts;
  const rows: ConversationQueries = {
    ...stored,
    clear(conversationId, now) {
      windows.forget(conversationId);
      summaries.forget(conversationId);
      stored.clear(conversationId, now);
    },
  };
  const messages = createMessages({
    ...{ store, clock, queries, events, rows, runs, removals, quotas },
    modelOf: (agent, caused) => modelsOf(agent, parts, caused)[0],
    requireBudget: ({ agentId }, { accountId, instanceId }, model) =>
      parts.requireBudget({ accountId, instanceId, agentId }, model),
  });
  const conversations = createConversations({
    store,
    clock,
    queries,
    rows,
    runs,
    removals,
    endStreams: ({ agentId, conversationId }) => hub.end(agentId, conversationId),
  });
  const transfer = createTransfer({ queries, rows, quotas });
  const forks = createForks({ store, clock, queries, steps, summaries, rows, conversations, removals, quotas });

  /** Cancels a deleted agent's runs and ends its streams. Returns how many changes that took. */
  function dismiss(agentId: string): number {
    const unfinished = queries.unfinishedOf(agentId);
    runs.cancelAll(unfinished);
    events.append(agentId, [{ type: "agent.deleted" }]);
    store.afterCommit(() => hub.end(agentId));
    return unfinished.length + 1;
  }

  const aftermath = createAftermath({
    store,
    log,
    cancelStopped: runs.cancelStopped,
    tell(agentId, kind, data) {
      // An agent that nobody follows or waits for needs no events: nothing of a deleted instance can be read.
      if (kind === "agent.deleted") return hub.isWatched(agentId) || runs.isAwaited(agentId) ? dismiss(agentId) : 0;
      events.append(agentId, [{ type: kind, ...data } as AgentEvent]);
      return 1;
    },
  });

  function letGo(instanceId: string): void {
    runs.unkept.cancelOf({ instanceId });
    host.sleep(instanceId);
  }

  agents.listen({
    updated: ({ agentId }) => void events.append(agentId, [{ type: "agent.updated" }]),
    removed({ agentId }) {
      dismiss(agentId);
      store.afterCommit(() => runs.unkept.cancelOf({ agentId }));
    },
  });
  instances.listen({
    statusChanged({ instanceId, status }) {
      if (status !== "running") {
        runs.cancelInProgress(instanceId);
        aftermath.add(instanceId, "cancel");
        store.afterCommit(() => letGo(instanceId));
      }
      aftermath.add(instanceId, "instance.status", { status });
    },
    runwayShort(instanceId, { reason, secondsLeft, stopsAt }) {
      aftermath.add(instanceId, "instance.runway", { reason, secondsLeft, stopsAt: isoTime(stopsAt) });
    },
    removed({ instanceId }) {
      runs.cancelInProgress(instanceId);
      aftermath.add(instanceId, "agent.deleted");
      store.afterCommit(() => letGo(instanceId));
    },
  });
  function recover(): void {
    store.transaction(forks.recover);
    runs.recover();
    aftermath.run();
  }
  const abilities = (agent: Agent) => abilitiesOf(parts, modelsOf(agent, parts)[0], agent.instanceId);
  const context = createContext(preparing);
  const aging = createAging(store, windows.forget, parts.shortened);
  const rooms = { events, hub, runs, messages, conversations, forks, transfer, context, aging };
  return { ...rooms, recover, aftermath, abilitiesOf: abilities };
}
