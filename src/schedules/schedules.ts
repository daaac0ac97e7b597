import type { Agent } from "../agents/schema.ts";
import { AppError, notFound } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import { isId, newId } from "../lib/id.ts";
import { refuseOverQuota } from "../limits/account-limits.ts";
import type { Quotas } from "../limits/quotas.ts";
import type { ScheduleQueries } from "./queries.ts";
import { nextSlot, parseCron, type Recurrence } from "./recurrence.ts";
import type { Schedule, Slot } from "./schema.ts";

/** Of one agent, and of all agents of an account (docs/contract/api.md, Schedules). */
const MAX_OF_AGENT = 100;
export const MAX_OF_ACCOUNT = 1_000;

/** What a person decides about a schedule. */
export type ScheduleSettings = Pick<
  Schedule,
  | "name"
  | "message"
  | "cron"
  | "everySeconds"
  | "timeZone"
  | "enabled"
  | "missed"
  | "activeFrom"
  | "activeTo"
  | "conversation"
  | "announce"
  | "model"
>;

export interface ScheduleParts {
  clock: Clock;
  queries: ScheduleQueries;
  quotas: Pick<Quotas, "requireHistoryRoom">;
  modelChoice: { allows(model: string, instanceId: string): boolean; expected: string };
  /** Decides that the times that have come pass without a run; returns them. */
  letPass(schedule: Schedule): Slot[];
  /** Called after a change, when the next time may be another. */
  changed(): void;
}

export interface Schedules {
  /** Throws `not_found`. */
  get(agentId: string, scheduleId: string): Schedule;
  /**
   * Throws `invalid_request` for a model that the host does not have, or a pattern that is invalid or never due; `conflict`
   * beyond 100 of the agent or 1,000 of the account. Call it in a transaction, like everything here that changes.
   */
  create(agent: Agent, accountId: string, settings: ScheduleSettings): Schedule;
  /** Throws `invalid_request` as `create` does, and `conflict` for a heartbeat, which is changed with its agent. */
  update(schedule: Schedule, agent: Agent, change: Partial<ScheduleSettings>): Schedule;
  /** Throws `conflict` for a heartbeat, as `update` does. */
  remove(schedule: Schedule): void;
  /** Plans the agent's heartbeat as the agent says, or plans it no more. */
  setHeartbeat(agent: Agent, enabled: boolean): void;
  /** Oldest first. */
  page(agentId: string, after: string | null, limit: number): Schedule[];
  /** Newest first. */
  slots(schedule: Schedule, before: number | null, limit: number): Slot[];
}

/** What is the same in every heartbeat. */
const BEAT = {
  name: "Heartbeat",
  message: "",
  cron: null,
  missed: "run_once",
  conversation: "own",
  announce: true,
  model: null,
} as const;

export const recurrenceOf = ({ cron, everySeconds, anchor, timeZone }: Schedule): Recurrence =>
  cron === null ? { cron, everySeconds: everySeconds as number, anchor } : { cron, everySeconds: null, timeZone };

export function createSchedules(parts: ScheduleParts): Schedules {
  const { clock, queries, quotas, modelChoice, letPass, changed } = parts;
  const refuse = (message: string) => new AppError("invalid_request", message);

  function check({ cron, everySeconds, model }: ScheduleSettings, instanceId: string): void {
    if ((cron === null) === (everySeconds === null)) {
      throw refuse("cron, everySeconds: expected exactly one of them; the other is null");
    }
    if (cron !== null && parseCron(cron) === null) {
      throw refuse(
        'cron: expected five fields (minute, hour, day, month, weekday) that are due some day, such as "0 9 * * 1-5"',
      );
    }
    if (model !== null && !modelChoice.allows(model, instanceId)) {
      throw refuse(`model: expected ${modelChoice.expected}`);
    }
  }

  const withNext = (schedule: Schedule, now: number): Schedule => ({
    ...schedule,
    nextAt: schedule.enabled ? nextSlot(recurrenceOf(schedule), now) : null,
  });

  function add(agentId: string, kind: Schedule["kind"], settings: ScheduleSettings): Schedule {
    const now = clock.now();
    const blank = { conversationId: null, nextAt: null, lastSlot: null, failuresInARow: 0 };
    const at = { anchor: now, createdAt: now, updatedAt: now };
    const schedule = withNext({ ...settings, ...blank, ...at, scheduleId: newId("sch"), agentId, kind }, now);
    queries.insert(schedule);
    changed();
    return schedule;
  }

  function set(schedule: Schedule, settings: Schedule): Schedule {
    const now = clock.now();
    const isOther = settings.everySeconds !== schedule.everySeconds;
    const isBack = settings.enabled && !schedule.enabled;
    const anchor = isOther || isBack ? now : schedule.anchor;
    const failuresInARow = isBack ? 0 : schedule.failuresInARow;
    const updated = planned(schedule, { ...settings, anchor, failuresInARow, updatedAt: now }, now);
    queries.update(schedule.scheduleId, updated);
    changed();
    return updated;
  }

  /** A time that has come and is not decided yet is not lost: the timer may be late, or the host have just started. */
  function planned(before: Schedule, after: Schedule, now: number): Schedule {
    const { nextAt } = before;
    const hasSameTimes = after.enabled && Bun.deepEquals(recurrenceOf(before), recurrenceOf(after));
    if (hasSameTimes && nextAt !== null && nextAt <= now) return { ...after, nextAt };
    const lastSlot = letPass(before).at(-1)?.slotAt ?? before.lastSlot;
    return withNext({ ...after, lastSlot }, now);
  }

  function refuseHeartbeat({ kind }: Schedule): void {
    if (kind !== "heartbeat") return;
    throw new AppError(
      "conflict",
      "this is the agent's heartbeat: change it with PATCH …/agents/:agentId and `heartbeat`; null switches it off",
    );
  }

  return {
    get(agentId, scheduleId) {
      const found = isId("sch", scheduleId) ? queries.find(scheduleId) : undefined;
      if (found?.agentId !== agentId) throw notFound("schedule");
      return found;
    },
    create({ agentId, instanceId }, accountId, settings) {
      check(settings, instanceId);
      refuseOverQuota("schedules", "an agent", queries.countOfAgent(agentId) + 1, MAX_OF_AGENT);
      refuseOverQuota("schedules", "the account", queries.countOfAccount(accountId) + 1, MAX_OF_ACCOUNT);
      quotas.requireHistoryRoom(accountId, Buffer.byteLength(settings.message));
      return add(agentId, "schedule", settings);
    },
    update(schedule, { instanceId }, change) {
      refuseHeartbeat(schedule);
      const settings = { ...schedule, ...change };
      check(settings, instanceId);
      return set(schedule, settings);
    },
    remove(schedule) {
      refuseHeartbeat(schedule);
      queries.remove(schedule.scheduleId);
    },
    setHeartbeat({ agentId, heartbeat }, enabled) {
      const before = queries.heartbeatOf(agentId);
      if (heartbeat === null) {
        if (before) queries.remove(before.scheduleId);
        return;
      }
      const { everySeconds, timeZone, activeHours } = heartbeat;
      const hours = { activeFrom: activeHours?.from ?? null, activeTo: activeHours?.to ?? null };
      const settings = { ...BEAT, ...hours, everySeconds, timeZone, enabled };
      if (before) set(before, { ...before, ...settings });
      else add(agentId, "heartbeat", settings);
    },
    page: queries.page,
    slots: ({ scheduleId }, before, limit) => queries.slots(scheduleId, before, limit),
  };
}
