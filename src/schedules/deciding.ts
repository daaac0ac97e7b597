import type { FoundAgent } from "../agents/agents.ts";
import { AppError } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import { wallTimeAt } from "../lib/wall-time.ts";
import { MAX_MESSAGE } from "../limits/message-length.ts";
import type { Conversations } from "../messages/conversations.ts";
import type { Messages } from "../messages/messages.ts";
import type { Runs } from "../messages/runs/runs.ts";
import type { Run } from "../messages/schema.ts";
import { DUTIES_FILE, type Duties } from "./duties.ts";
import { KEPT_SLOTS, type ScheduleQueries } from "./queries.ts";
import { nextSlot, slotsBetween } from "./recurrence.ts";
import { recurrenceOf } from "./schedules.ts";
import type { Schedule, Slot } from "./schema.ts";

/** A time that is looked at later than this has passed while the host stood still, or its clock was elsewhere. */
const LATE_MS = 60_000;
const NO_DUTIES = `${DUTIES_FILE} has nothing but headings and comments`;

export interface DecidingParts {
  clock: Clock;
  queries: ScheduleQueries;
  /** The agent with its instance; undefined once it is deleted. */
  agentOf(agentId: string): FoundAgent | undefined;
  messages: Pick<Messages, "send">;
  conversations: Pick<Conversations, "get" | "createFor" | "page">;
  runs: Pick<Runs, "inTurn">;
  /** What the agent is told at a beat; null for nothing. */
  dutiesOf(agent: FoundAgent["agent"]): Duties | null;
}

export interface Deciding {
  /** Decides about the times that have come, and starts the run of the last of them within the active hours. Call it in a transaction. */
  decide(schedule: Schedule): Slot[];
  /** The same where that has thrown: nothing is started. */
  giveUp(schedule: Schedule): Slot[];
  /** The same where its times are about to change: nobody wants the old ones any more, so nothing is started. */
  letPass(schedule: Schedule): Slot[];
  /** Starts a run now. Throws what a message does that is refused. Call it in a transaction. */
  runNow(schedule: Schedule, found: FoundAgent): Run;
}

/** What becomes of a schedule's times (docs/contract/api.md, Schedules). */
export function createDeciding(parts: DecidingParts): Deciding {
  const { clock, queries, agentOf, messages, conversations, runs, dutiesOf } = parts;
  let startedAt = clock.now();

  /** Whether a time has passed while the host did not run. A host that is busy is seconds late. */
  function isPassed(slotAt: number, now: number): boolean {
    // The clock has been set back behind the start: the times that it shows from now on come while the host runs.
    if (now < startedAt) startedAt = Number.NEGATIVE_INFINITY;
    return slotAt < startedAt || now - slotAt > LATE_MS;
  }

  function runNow(schedule: Schedule, { instance, agent }: FoundAgent): Run {
    const { scheduleId, name, kind } = schedule;
    const { text, isTainted } = kind === "heartbeat" ? heldDuties(agent) : { text: schedule.message, isTainted: false };
    return messages.send(instance, agent, {
      conversationId: conversationOf(schedule, { instance, agent }),
      text,
      isTainted,
      sender: { type: kind, id: scheduleId, name },
      whileRunning: "queue",
      output: null,
      origin: { originType: kind, originId: scheduleId },
    });
  }

  function heldDuties(agent: FoundAgent["agent"]): Duties {
    const duties = dutiesOf(agent);
    if (duties === null) throw new AppError("conflict", `${NO_DUTIES}: write into it what the agent is to look after`);
    if (duties.text.length <= MAX_MESSAGE || [...duties.text].length <= MAX_MESSAGE) return duties;
    throw new AppError("conflict", `${DUTIES_FILE} is longer than a message, ${MAX_MESSAGE} characters: shorten it`);
  }

  /** Its own is made when it first runs, and again if it was deleted. */
  function conversationOf(schedule: Schedule, { agent }: FoundAgent): string {
    const { scheduleId, name, kind } = schedule;
    if (schedule.conversation === "default") return conversations.get(agent).conversationId;
    const own = schedule.conversationId === null ? undefined : existing(agent, schedule.conversationId);
    if (own !== undefined) return own;
    const { conversationId } =
      earlierBeats(schedule, agent) ?? conversations.createFor(agent, { originType: kind, originId: scheduleId }, name);
    queries.update(scheduleId, { conversationId });
    return conversationId;
  }

  /** A heartbeat that was taken away and set again goes on where it was. */
  const earlierBeats = ({ kind }: Schedule, agent: FoundAgent["agent"]) =>
    kind === "heartbeat" ? conversations.page(agent, "heartbeat", null, 1)[0] : undefined;

  function existing(agent: FoundAgent["agent"], conversationId: string): string | undefined {
    try {
      return conversations.get(agent, conversationId).conversationId;
    } catch (error) {
      if (error instanceof AppError && error.code === "not_found") return undefined;
      throw error;
    }
  }

  /** Why a time is let pass; null if it is to run. */
  function reasonToSkip(schedule: Schedule, slotAt: number, { instance, agent }: FoundAgent): string | null {
    if (instance.status !== "running") return `the instance is ${instance.status}`;
    if (!isActive(schedule, slotAt)) return outsideHours(schedule).reason;
    if (schedule.kind === "heartbeat" && dutiesOf(agent) === null) return NO_DUTIES;
    const before = runs.inTurn(agent.agentId).find(({ originId }) => originId === schedule.scheduleId);
    if (before?.status === "waiting") return "the run before it waits for a person or another agent";
    return before ? "the run before it has not ended" : null;
  }

  function outcomeOf(schedule: Schedule, slotAt: number, isLate: boolean): Pick<Slot, "status" | "reason" | "runId"> {
    const found = agentOf(schedule.agentId);
    if (!found) return { status: "skipped", reason: "the agent is deleted", runId: null };
    if (isLate && schedule.missed === "skip") return MISSED;
    const reason = reasonToSkip(schedule, slotAt, found);
    if (reason !== null) return { status: "skipped", reason, runId: null };
    try {
      const { runId } = runNow(schedule, found);
      return { status: "ran", reason: isLate ? "late: the host was not running at that time" : null, runId };
    } catch (error) {
      // A full history or queue, or a limit of models: the next time may find room.
      if (!(error instanceof AppError) || error.code === "internal_error") throw error;
      const status = error.code === "budget_exceeded" ? "skipped" : "failed";
      return { status, reason: error.message, runId: null };
    }
  }

  function decideBy(outcome: typeof outcomeOf, schedule: Schedule): Slot[] {
    const { scheduleId, nextAt } = schedule;
    const now = clock.now();
    if (nextAt === null || nextAt > now) return [];
    const recurrence = recurrenceOf(schedule);
    const times = slotsBetween(recurrence, nextAt, now, KEPT_SLOTS).filter(
      (slotAt) => !queries.isDecided(scheduleId, slotAt),
    );
    const last = times.at(-1);
    const lastActive = times.findLast((slotAt) => isActive(schedule, slotAt)) ?? last;
    const slots = times.map((slotAt): Slot => {
      const isLate = isPassed(slotAt, now);
      if (slotAt === lastActive) return { scheduleId, slotAt, ...outcome(schedule, slotAt, isLate) };
      return { scheduleId, slotAt, ...(isActive(schedule, slotAt) ? MISSED : outsideHours(schedule)) };
    });
    queries.move(scheduleId, { nextAt: nextSlot(recurrence, now), lastSlot: last ?? null });
    slots.forEach(queries.decide);
    return slots;
  }

  return {
    runNow,
    decide: (schedule) => decideBy(outcomeOf, schedule),
    giveUp: (schedule) => decideBy(() => BROKEN, schedule),
    letPass: (schedule) => decideBy(() => CHANGED, schedule),
  };
}

const BROKEN = {
  status: "failed",
  reason: "the run could not be started; the cause is in the host's log",
  runId: null,
} as const;
const CHANGED = {
  status: "skipped",
  reason: "the schedule's times were changed, or it was switched off, before this one was decided",
  runId: null,
} as const;
const MISSED = { status: "missed", reason: "the host was not running at that time", runId: null } as const;

const outsideHours = ({ activeFrom, activeTo }: Schedule) =>
  ({ status: "skipped", reason: `outside the active hours, ${activeFrom} to ${activeTo}`, runId: null }) as const;

/** From and to as wall times of its zone; `22:00` to `06:00` is over midnight. */
function isActive({ activeFrom, activeTo, timeZone }: Schedule, at: number): boolean {
  if (activeFrom === null || activeTo === null) return true;
  const time = new Date(wallTimeAt(timeZone, at)).toISOString().slice(11, 16);
  return activeFrom <= activeTo ? activeFrom <= time && time < activeTo : activeFrom <= time || time < activeTo;
}
