import type { Agents } from "../agents/agents.ts";
import type { Instances } from "../instances/instances.ts";
import { type Clock, isoTime } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import type { Quotas } from "../limits/usage.ts";
import type { Host } from "../runtime/host.ts";
import type { Removals } from "../storage/removals.ts";
import type { Store } from "../storage/store.ts";
import { createEventLog, type EventLog } from "./event-log.ts";
import { createHub, type Hub } from "./hub.ts";
import { messageQueries } from "./message-table.ts";
import { createMessages, type Messages } from "./messages.ts";
import { type PrepareParts, prepareRun } from "./prepare-run.ts";
import { createRuns, type Runs } from "./runs.ts";

export interface ConversationParts extends Omit<PrepareParts, "conversation"> {
  store: Store;
  clock: Clock;
  log: Log;
  instances: Instances;
  agents: Agents;
  host: Host;
  removals: Pick<Removals, "add">;
  quotas: Pick<Quotas, "requireHistoryRoom">;
}

export interface Conversations {
  events: EventLog;
  hub: Hub;
  runs: Runs;
  messages: Messages;
}

/** Puts messages, runs and events together, and makes them follow what happens to instances and agents. */
export function createConversations(parts: ConversationParts): Conversations {
  const { store, clock, log, instances, agents, host } = parts;
  const hub: Hub = createHub((...behind) => events.follow(...behind));
  const events = createEventLog(store, clock, hub.publish);
  const queries = messageQueries(store.db);
  const runs: Runs = createRuns({
    store,
    clock,
    log,
    events,
    queries,
    host,
    prepare: (run, journal) => prepareRun({ ...parts, conversation: messages.conversation }, run, journal),
    accountOf: (instanceId) => instances.find(instanceId)?.accountId,
    senderOf: (agentId) => ({ id: agentId, name: agents.find(agentId)?.displayName ?? "agent" }),
  });
  const messages = createMessages(store, clock, queries, runs, parts.removals, parts.quotas);

  agents.listen({
    updated: ({ agentId }) => void events.append(agentId, [{ type: "agent.updated" }]),
    removed({ agentId }) {
      runs.cancelAll(queries.unfinishedOf(agentId));
      events.append(agentId, [{ type: "agent.deleted" }]);
      store.afterCommit(() => hub.end(agentId));
    },
  });
  instances.listen({
    statusChanged({ instanceId, status }) {
      if (status !== "running") {
        runs.cancelAll(queries.unfinishedIn(instanceId));
        store.afterCommit(() => host.sleep(instanceId));
      }
      for (const agentId of agents.idsOf(instanceId)) events.append(agentId, [{ type: "instance.status", status }]);
    },
    runwayShort(instanceId, { reason, secondsLeft, stopsAt }) {
      const event = { type: "instance.runway", reason, secondsLeft, stopsAt: isoTime(stopsAt) } as const;
      for (const agentId of agents.idsOf(instanceId)) events.append(agentId, [event]);
    },
    removed({ instanceId }) {
      // Who follows or waits learns the end. Nobody can ask for what the others had: it is cleared away untold.
      const awaited = runs.awaited();
      const told = agents.idsOf(instanceId).filter((agentId) => hub.isWatched(agentId) || awaited.has(agentId));
      for (const agentId of told) {
        runs.cancelAll(queries.unfinishedOf(agentId));
        events.append(agentId, [{ type: "agent.deleted" }]);
      }
      store.afterCommit(() => {
        for (const agentId of told) hub.end(agentId);
        host.sleep(instanceId);
      });
    },
  });
  return { events, hub, runs, messages };
}
