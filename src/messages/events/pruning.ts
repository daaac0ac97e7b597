import { and, asc, eq, gt, lte, sql } from "drizzle-orm";
import { agents } from "../../agents/schema.ts";
import { placeholdersOf } from "../../storage/columns.ts";
import { prepared } from "../../storage/prepared.ts";
import type { Slice } from "../../storage/retention.ts";
import type { Db } from "../../storage/store.ts";
import { events } from "../schema.ts";

/** What an event counts besides its data: ids, type, time and its index entries. The database's triggers use it too. */
export const EVENT_ROW_BYTES = 128;
/** How much is kept of one agent's newest events; so there are at most 131,072 of them. */
export const KEPT_BYTES = 16 * 1024 * 1024;

export interface Pruning {
  /**
   * Removes an agent's oldest events: those of `before` (ms) and earlier, and more until `excess` bytes are freed; at
   * most `most` rows. Returns how many. Call it in a transaction.
   */
  removeOldest(agentId: string, which: { before: number; excess: number; most: number }): number;
  /** See `EventLog.prune`; `before` is in milliseconds. */
  step(before: number, afterAgentId: string, agentsAtOnce: number, rowsAtOnce: number): Slice;
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
      .set(placeholdersOf(["prunedEventId"]))
      .where(eq(agents.agentId, p("agentId"))),
  );

  function removeOldest(agentId: string, { before, excess, most }: { before: number; excess: number; most: number }) {
    let left = excess;
    let end = 0;
    let count = 0;
    // Event numbers are in order of time, so the old ones are a prefix, usually an empty or short one. SQLite reads a
    // large row even to skip it, so the first queries ask for few.
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
    mark.run({ agentId, prunedEventId: end });
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
        // This agent may have more to remove, so the next step starts with it.
        if (left <= 0) return { removed: rowsAtOnce - left, next: done };
        done = agentId;
      }
      return { removed: rowsAtOnce - left, next: some.length < agentsAtOnce ? null : done };
    },
  };
}
