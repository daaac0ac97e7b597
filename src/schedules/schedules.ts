import type { Agent } from "../agents/schema.ts";
import { AppError, notFound } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import { isId, newId } from "../lib/id.ts";
import { isTimeZone } from "../lib/wall-time.ts";
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
  /** Called after a change, when the next time may be another. */
  changed(): void;
}

export interface Schedules {
  /** Throws `not_found`. */
  get(agentId: string, scheduleId: string): Schedule;
  /**
   * Throws `invalid_request` for a time zone, a pattern or a model that is none, or one that is never due; `conflict`
   * beyond 100 of the agent or 1,000 of the account. Call it in a transaction, like everything here that changes.
   */
  create(agent: Agent, accountId: string, settings: ScheduleSettings): Schedule;
  /** Throws `invalid_request` as `create` does. */
  update(schedule: Schedule, agent: Agent, change: Partial<ScheduleSettings>): Schedule;
  remove(schedule: Schedule): void;
  /** Oldest first. */
  page(agentId: string, after: string | null, limit: number): Schedule[];
  /** Newest first. */
  slots(schedule: Schedule, before: number | null, limit: number): Slot[];
}

export const recurrenceOf = ({ cron, everySeconds, anchor, timeZone }: Schedule): Recurrence =>
  cron === null ? { cron, everySeconds: everySeconds as number, anchor } : { cron, everySeconds: null, timeZone };

export function createSchedules({ clock, queries, quotas, modelChoice, changed }: ScheduleParts): Schedules {
  const refuse = (message: string) => new AppError("invalid_request", message);

  function check({ cron, everySeconds, timeZone, model }: ScheduleSettings, instanceId: string): void {
    if ((cron === null) === (everySeconds === null)) {
      throw refuse("cron, everySeconds: expected exactly one of them; the other is null");
    }
    if (!isTimeZone(timeZone)) throw refuse("timeZone: expected a name such as Europe/Berlin or UTC");
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

  return {
    get(agentId, scheduleId) {
      const found = isId("sched", scheduleId) ? queries.find(scheduleId) : undefined;
      if (found?.agentId !== agentId) throw notFound("schedule");
      return found;
    },
    create({ agentId, instanceId }, accountId, settings) {
      check(settings, instanceId);
      refuseOverQuota("schedules", "an agent", queries.countOfAgent(agentId) + 1, MAX_OF_AGENT);
      refuseOverQuota("schedules", "the account", queries.countOfAccount(accountId) + 1, MAX_OF_ACCOUNT);
      quotas.requireHistoryRoom(accountId, Buffer.byteLength(settings.message));
      const now = clock.now();
      const schedule = withNext(
        {
          ...settings,
          scheduleId: newId("sched"),
          agentId,
          anchor: now,
          conversationId: null,
          nextAt: null,
          lastSlot: null,
          failuresInARow: 0,
          createdAt: now,
          updatedAt: now,
        },
        now,
      );
      queries.insert(schedule);
      changed();
      return schedule;
    },
    update(schedule, { instanceId }, change) {
      const now = clock.now();
      const settings = { ...schedule, ...change };
      check(settings, instanceId);
      const isOther = settings.everySeconds !== schedule.everySeconds;
      const isBack = settings.enabled && !schedule.enabled;
      const updated = withNext(
        {
          ...settings,
          anchor: isOther || isBack ? now : schedule.anchor,
          failuresInARow: isBack ? 0 : schedule.failuresInARow,
          updatedAt: now,
        },
        now,
      );
      queries.update(schedule.scheduleId, updated);
      changed();
      return updated;
    },
    remove: ({ scheduleId }) => queries.remove(scheduleId),
    page: queries.page,
    slots: ({ scheduleId }, before, limit) => queries.slots(scheduleId, before, limit),
  };
}
