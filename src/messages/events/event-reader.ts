import { and, asc, eq, gt, sql } from "drizzle-orm";
import { agents } from "../../agents/schema.ts";
import { AppError } from "../../lib/app-error.ts";
import { lazily } from "../../lib/lazily.ts";
import type { Db } from "../../storage/store.ts";
import { events, type Run, type StoredEvent } from "../schema.ts";

/** Kinds that carry the conversation itself, and go with it. The index of those that last names them word for word. */
export const TOLD = "('message.delta', 'message.completed', 'tool.started', 'tool.completed')";
/** Rows whose sizes are looked at first. */
const FEW = 8;

/** What was told of an agent, as far as it is kept. */
export interface EventReader {
  /** Events behind `after`, oldest first. */
  read(agentId: string, after: number, limit: number): StoredEvent[];
  /**
   * The same for a reader who has all up to `after`: no more than what holds `bytes` of data, at least one. Null where
   * the next ones are no longer kept.
   */
  follow(agentId: string, after: number, limit: number, bytes: number): StoredEvent[] | null;
  /** Events of one run behind `after`. Null where its first ones are no longer kept. */
  ofRun(run: Pick<Run, "agentId" | "runId" | "firstEventId">, after: number, limit: number): StoredEvent[] | null;
  /**
   * Behind which event a reader with this cursor goes on; null: now, 0: the first that is kept. Throws 410 for a cursor
   * that is older than what is kept, or ahead of the log.
   */
  startAt(agentId: string, cursor: number | null): number;
}

export function createEventReader(db: Db): EventReader {
  const p = sql.placeholder;
  const read = lazily(() =>
    db
      .select()
      .from(events)
      .where(and(eq(events.agentId, p("agentId")), gt(events.eventId, p("after"))))
      .orderBy(asc(events.eventId))
      .limit(p("limit"))
      .prepare(),
  );
  const sizes = lazily(() =>
    db
      .select({ bytes: sql<number>`octet_length(${events.data})` })
      .from(events)
      .where(and(eq(events.agentId, p("agentId")), gt(events.eventId, p("after"))))
      .orderBy(asc(events.eventId))
      .limit(p("limit"))
      .prepare(),
  );
  const readRun = lazily(() =>
    db
      .select()
      .from(events)
      .where(and(eq(events.agentId, p("agentId")), gt(events.eventId, p("after")), eq(events.runId, p("runId"))))
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
      .select({ id: agents.lastEventId, cleared: agents.clearedEventId, pruned: agents.prunedEventId })
      .from(agents)
      .where(eq(agents.agentId, p("agentId")))
      .prepare(),
  );
  const NOTHING = { id: 0, cleared: 0, pruned: 0 };
  const boundsOf = (agentId: string) => last().get({ agentId }) ?? NOTHING;

  /** How many of the next events hold so many bytes, by their lengths. */
  function fitting(agentId: string, after: number, limit: number, bytes: number): number {
    // To step over a large row SQLite reads it. Where the first few are enough, no others are looked at.
    for (const some of [Math.min(FEW, limit), limit]) {
      const rows = sizes().all({ agentId, after, limit: some });
      let left = bytes;
      const end = rows.findIndex((row) => {
        left -= row.bytes;
        return left <= 0;
      });
      if (end >= 0) return end + 1;
      if (rows.length < some) return rows.length;
    }
    return limit;
  }

  function readBehind(agentId: string, after: number, cleared: number, limit: number, bytes: number): StoredEvent[] {
    const lasting = after < cleared ? readLasting().all({ agentId, after, cleared, limit }) : [];
    const from = Math.max(after, cleared);
    const rest = limit - lasting.length;
    const count = bytes === Number.POSITIVE_INFINITY ? rest : fitting(agentId, from, rest, bytes);
    return [...lasting, ...read().all({ agentId, after: from, limit: count })];
  }

  return {
    read: (agentId, after, limit) =>
      readBehind(agentId, after, boundsOf(agentId).cleared, limit, Number.POSITIVE_INFINITY),
    follow(agentId, after, limit, bytes) {
      const { cleared, pruned } = boundsOf(agentId);
      return after < pruned ? null : readBehind(agentId, after, cleared, limit, bytes);
    },
    ofRun({ agentId, runId, firstEventId }, after, limit) {
      return boundsOf(agentId).pruned >= firstEventId ? null : readRun().all({ agentId, runId, after, limit });
    },
    startAt(agentId, cursor) {
      const { id, pruned } = boundsOf(agentId);
      if (cursor === null) return id;
      if (cursor > id || (cursor > 0 && cursor < pruned)) {
        throw new AppError(
          "not_found",
          "the events at this cursor are no longer kept; begin anew without a cursor, or at 0",
          {
            status: 410,
          },
        );
      }
      return Math.max(cursor, pruned);
    },
  };
}
