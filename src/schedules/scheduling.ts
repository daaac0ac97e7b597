import type { Agents, FoundAgent } from "../agents/agents.ts";
import type { Workspaces } from "../agents/workspaces.ts";
import type { Instances } from "../instances/instances.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import type { Quotas } from "../limits/quotas.ts";
import type { Messaging } from "../messages/messaging.ts";
import type { Store } from "../storage/store.ts";
import { createDeciding, type Deciding } from "./deciding.ts";
import { dutiesIn } from "./duties.ts";
import { createOutcomes, type OutcomeParts } from "./outcome.ts";
import { scheduleQueries } from "./queries.ts";
import { createScheduleTimer, type ScheduleTimer } from "./schedule-timer.ts";
import { createSchedules, type ScheduleParts, type Schedules } from "./schedules.ts";

export interface SchedulingParts extends Pick<ScheduleParts, "modelChoice">, Pick<OutcomeParts, "tell"> {
  store: Store;
  clock: Clock;
  log: Log;
  agents: Pick<Agents, "find" | "listen">;
  workspaces: Pick<Workspaces, "some" | "taintedOf">;
  instances: Pick<Instances, "find">;
  quotas: Quotas;
  messaging: Pick<Messaging, "messages" | "conversations" | "runs" | "events">;
}

export interface Scheduling {
  schedules: Schedules;
  deciding: Deciding;
  timer: ScheduleTimer;
}

/** Wires schedules to the messages that they send. */
export function createScheduling(parts: SchedulingParts): Scheduling {
  const { store, clock, log, agents, workspaces, instances, quotas, modelChoice, messaging, tell } = parts;
  const { messages, conversations, runs, events } = messaging;
  const queries = scheduleQueries(store.db);
  const outcomes = createOutcomes({ queries, messages, events, tell });
  runs.listen({ ended: outcomes.ended });

  function agentOf(agentId: string): FoundAgent | undefined {
    const agent = agents.find(agentId);
    const instance = agent && instances.find(agent.instanceId);
    return instance && { instance, agent };
  }

  const deciding = createDeciding({
    ...{ clock, queries, agentOf, messages, conversations, runs },
    dutiesOf: dutiesIn(workspaces),
  });
  const timer = createScheduleTimer({ store, clock, log, queries, deciding, outcomes });
  const { letPass } = deciding;
  const schedules = createSchedules({ clock, queries, quotas, modelChoice, letPass, changed: timer.changed });
  agents.listen({ heartbeatSet: (agent) => schedules.setHeartbeat(agent, true) });
  return { schedules, deciding, timer };
}

/** The model that a schedule asks for. */
export function modelForSchedule({ db }: Pick<Store, "db">): (scheduleId: string) => string | null {
  const queries = scheduleQueries(db);
  return (scheduleId) => queries.find(scheduleId)?.model ?? null;
}
