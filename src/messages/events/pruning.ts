import { and, asc, eq, gt, lte, sql } from "drizzle-orm";
import { agents } from "../../agents/schema.ts";
import { prepared } from "../../storage/prepared.ts";
import type { Db } from "../../storage/store.ts";
import { events } from "../schema.ts";

/** What an event counts beside its data: its ids, kind and time, and its place in the index. The triggers have it too. */
export const EVENT_ROW_BYTES = 128;
/** The events of one agent that are kept, the newest; so there are 131,072 of them at most. */
export const KEPT_BYTES = 16 * 1024 * 1024;
export const KEPT_MS = 7 * 24 * 60 * 60 * 1000;

export interface Pruning {
  /**
   * Removes an agent's oldest events: those of `before` (ms) and earlier, and more until `excess` bytes are gone; at most
   * `most` rows. Gives how many. Call it in a transaction.
   */
  removeOldest(agentId: string, which: { before: number; excess: number; most: number }): number;
  /** For many agents, a bounded step at each call: see `EventLog.prune`. */
  step(before: number, afterAgentId: string, agentsAtOnce: number, rowsAtOnce: number): string | null;
}

export function createPruning(db: Db): Pruning {
  const p = sql.placeholder;
  const oldest = prepared(db, () =>
    db
      .select({
        eventId: events.eventId,
        createdAt: events.createdAt,
        bytes: sql<number>`octet_length(${events.data}) + ${sql.raw(String(EVENT_ROW_BYTES))}`,
      })
      .from(events)
      .where(and(eq(events.agentId, p("agentId")), gt(events.eventId, p("after"))))
      .orderBy(asc(events.eventId))
      .limit(p("limit")),
  );
  const remove = prepared(db, () =>
    db.delete(events).where(and(eq(events.agentId, p("agentId")), lte(events.eventId, p("end")))),
  );
  const mark = prepared(db, () =>
    db
      .update(agents)
      .set({ prunedEventId: p("end") as never })
      .where(eq(agents.agentId, p("agentId"))),
  );

  function removeOldest(agentId: string, { before, excess, most }: { before: number; excess: number; most: number }) {
    let left = excess;
    let end = 0;
    let count = 0;
    // Numbers follow time, so the old ones are a prefix, mostly an empty or a short one. To step over a large row SQLite
    // reads it, so few are asked for first.
    let isDone = false;
    for (let limit = 1; !isDone && count < most; limit *= 8) {
      const rows = oldest.all({ agentId, after: end, limit: Math.min(limit, most - count) });
      isDone = rows.length === 0;
      for (const row of rows) {
        isDone = left <= 0 && row.createdAt > before;
        if (isDone) break;
        left -= row.bytes;
        end = row.eventId;
        count++;
      }
    }
    if (count === 0) return 0;
    remove.run({ agentId, end });
    mark.run({ agentId, end });
    return count;
  }

  return {
    removeOldest,
    step(before, afterAgentId, agentsAtOnce, rowsAtOnce) {
      const some = db
        .select({ agentId: agents.agentId, bytes: agents.eventBytes })
        .from(agents)
        .where(gt(agents.agentId, afterAgentId))
        .orderBy(asc(agents.agentId))
        .limit(agentsAtOnce)
        .all();
      let left = rowsAtOnce;
      let done = afterAgentId;
      for (const { agentId, bytes } of some) {
        left -= removeOldest(agentId, { before, excess: bytes - KEPT_BYTES, most: left });
        // It may have more, so the next step begins with it.
        if (left <= 0) return done;
        done = agentId;
      }
      return some.length < agentsAtOnce ? null : done;
    },
  };
}
