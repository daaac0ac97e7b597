import { and, asc, eq, gt, isNull, lt, min, sql } from "drizzle-orm";
import { agents } from "../agents/table.ts";
import { AppError } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import { lazily } from "../lib/lazily.ts";
import type { Store } from "../storage/store.ts";
import { type AgentEvent, toRow } from "./event.ts";
import { events, type StoredEvent } from "./table.ts";

/** Kinds that carry the conversation itself, and go with it. The index of those that last names them word for word. */
export const TOLD = "('message.delta', 'message.completed', 'tool.started', 'tool.completed')";
const KEPT_MS = 7 * 24 * 60 * 60 * 1000;

export interface EventLog {
  /**
   * Numbers and writes events in the transaction that is open; they are published when it has committed, so an event
   * that anybody saw is in the log. Gives the last number. Does nothing for an agent that is gone.
   */
  append(agentId: string, batch: readonly AgentEvent[]): number;
  /** Events behind `after`, oldest first. */
  read(agentId: string, after: number, limit: number): StoredEvent[];
  lastEventId(agentId: string): number;
  /** Throws 410 for a cursor that is older than what is kept, or ahead of the log. */
  checkCursor(agentId: string, after: number): void;
  /** Removes events older than seven days, for at most `agentsAtOnce` agents behind `afterAgentId`; gives the last one. */
  prune(afterAgentId: string, agentsAtOnce: number): string | null;
}

export function createEventLog(
  store: Store,
  clock: Clock,
  publish: (agentId: string, rows: StoredEvent[]) => void,
): EventLog {
  const { db } = store;
  const p = sql.placeholder;
  const advance = lazily(() =>
    db
      .update(agents)
      .set({ lastEventId: sql`${agents.lastEventId} + ${p("count")}` })
      .where(and(eq(agents.agentId, p("agentId")), isNull(agents.removedAt)))
      .returning({ lastEventId: agents.lastEventId })
      .prepare(),
  );
  const insert = lazily(() =>
    db
      .insert(events)
      .values({
        agentId: p("agentId"),
        eventId: p("eventId"),
        runId: p("runId"),
        type: p("type"),
        data: p("data"),
        createdAt: p("createdAt"),
      })
      .prepare(),
  );
  const read = lazily(() =>
    db
      .select()
      .from(events)
      .where(and(eq(events.agentId, p("agentId")), gt(events.eventId, p("after"))))
      .orderBy(asc(events.eventId))
      .limit(p("limit"))
      .prepare(),
  );
  // Where the conversation was cleared only what lasts is left to be seen: it is found without reading over the rest.
  const readLasting = lazily(() =>
    db
      .select()
      .from(events)
      .where(
        and(
          eq(events.agentId, p("agentId")),
          sql`${events.eventId} IN (SELECT event_id FROM events INDEXED BY lasting_events WHERE agent_id = ${p("agentId")}
            AND event_id > ${p("after")} AND event_id <= ${p("cleared")} AND type NOT IN ${sql.raw(TOLD)}
            ORDER BY event_id LIMIT ${p("limit")})`,
        ),
      )
      .orderBy(asc(events.eventId))
      .prepare(),
  );
  const last = lazily(() =>
    db
      .select({ id: agents.lastEventId, cleared: agents.clearedEventId })
      .from(agents)
      .where(eq(agents.agentId, p("agentId")))
      .prepare(),
  );
  const first = lazily(() =>
    db
      .select({ id: min(events.eventId) })
      .from(events)
      .where(eq(events.agentId, p("agentId")))
      .prepare(),
  );
  const lastEventId = (agentId: string) => last().get({ agentId })?.id ?? 0;

  return {
    append(agentId, batch) {
      const lastId = advance().get({ agentId, count: batch.length })?.lastEventId;
      if (lastId === undefined) return 0;
      const now = clock.now();
      const firstId = lastId - batch.length + 1;
      const rows = batch.map((event, index) => toRow(agentId, firstId + index, event, now));
      for (const row of rows) insert().run(row);
      store.afterCommit(() => publish(agentId, rows));
      return lastId;
    },
    read(agentId, after, limit) {
      const cleared = last().get({ agentId })?.cleared ?? 0;
      if (after >= cleared) return read().all({ agentId, after, limit });
      const lasting = readLasting().all({ agentId, after, cleared, limit });
      return [...lasting, ...read().all({ agentId, after: cleared, limit: limit - lasting.length })];
    },
    lastEventId,
    checkCursor(agentId, after) {
      const lastId = lastEventId(agentId);
      const firstKept = first().get({ agentId })?.id ?? lastId + 1;
      if (after > lastId || (after > 0 && after + 1 < firstKept)) {
        throw new AppError(
          "not_found",
          "the events at this cursor are no longer kept; begin anew without a cursor, or at 0",
          {
            status: 410,
          },
        );
      }
    },
    prune(afterAgentId, agentsAtOnce) {
      const before = clock.now() - KEPT_MS;
      const some = db
        .select({ agentId: agents.agentId })
        .from(agents)
        .where(gt(agents.agentId, afterAgentId))
        .orderBy(asc(agents.agentId))
        .limit(agentsAtOnce)
        .all();
      for (const { agentId } of some) {
        // Numbers follow time, so the old ones are a prefix; its end is found before anything is deleted.
        const kept = db
          .select({ id: events.eventId })
          .from(events)
          .where(and(eq(events.agentId, agentId), gt(events.createdAt, before)))
          .orderBy(asc(events.eventId))
          .limit(1)
          .get();
        const end = kept?.id ?? lastEventId(agentId) + 1;
        db.delete(events)
          .where(and(eq(events.agentId, agentId), lt(events.eventId, end)))
          .run();
      }
      return some.length < agentsAtOnce ? null : (some.at(-1)?.agentId ?? null);
    },
  };
}
