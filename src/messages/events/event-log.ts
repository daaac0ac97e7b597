import { and, eq, isNull, sql } from "drizzle-orm";
import { agents } from "../../agents/schema.ts";
import type { Clock } from "../../lib/clock.ts";
import { prepared } from "../../storage/prepared.ts";
import type { Life } from "../../storage/retention.ts";
import type { Store } from "../../storage/store.ts";
import { events, type StoredEvent } from "../schema.ts";
import { type AgentEvent, toRow } from "./event.ts";
import { createEventReader, type EventReader } from "./event-reader.ts";
import { createPruning, EVENT_ROW_BYTES, KEPT_BYTES } from "./pruning.ts";

/** How many of the oldest events one append removes at most, if there are too many; housekeeping removes the rest. */
const MAX_REMOVED = 1_000;
const AGENTS_AT_ONCE = 100;

export interface EventLog extends EventReader {
  /**
   * Numbers events and writes them in the open transaction; they are published once it has committed, so every event
   * that anybody has seen is in the log. Returns the last number, or 0 for a deleted agent, for which nothing is
   * written. If the agent then has more than is kept, its oldest events are removed. Events of a run carry its
   * conversation.
   */
  append(agentId: string, batch: readonly AgentEvent[], conversationId?: string): number;
  /** Removes events that are too old, or more than is kept of an agent; agent by agent, a hundred at once at most. */
  prune: Life["slice"];
}

export function createEventLog(
  store: Store,
  clock: Clock,
  publish: (agentId: string, rows: StoredEvent[]) => void,
  reader: EventReader = createEventReader(store.db),
): EventLog {
  const { db } = store;
  const p = sql.placeholder;
  const advance = prepared(db, () =>
    db
      .update(agents)
      .set({
        lastEventId: sql`${agents.lastEventId} + ${p("count")}`,
        eventBytes: sql`${agents.eventBytes} + ${p("bytes")}`,
      })
      .where(and(eq(agents.agentId, p("agentId")), isNull(agents.removedAt)))
      .returning({ lastEventId: agents.lastEventId, eventBytes: agents.eventBytes }),
  );
  const insert = prepared(db, () =>
    db.insert(events).values({
      agentId: p("agentId"),
      eventId: p("eventId"),
      runId: p("runId"),
      conversationId: p("conversationId"),
      type: p("type"),
      data: p("data"),
      createdAt: p("createdAt"),
    }),
  );
  const pruning = createPruning(db);

  return {
    ...reader,
    append(agentId, batch, conversationId) {
      const now = clock.now();
      const rows = batch.map((event) => toRow(agentId, conversationId ?? null, event, now));
      let bytes = 0;
      for (const { data } of rows) bytes += EVENT_ROW_BYTES + Buffer.byteLength(data);
      const advanced = advance.get({ agentId, count: batch.length, bytes });
      if (advanced === undefined) return 0;
      const { lastEventId, eventBytes } = advanced;
      let eventId = lastEventId - batch.length;
      for (const row of rows) {
        row.eventId = ++eventId;
        insert.run(row);
      }
      const excess = eventBytes - KEPT_BYTES;
      if (excess > 0) {
        const most = Math.min(MAX_REMOVED, Math.ceil(excess / EVENT_ROW_BYTES));
        pruning.removeOldest(agentId, { before: Number.NEGATIVE_INFINITY, excess, most });
      }
      store.afterCommit(() => publish(agentId, rows));
      return lastEventId;
    },
    prune: (before, after, most) => pruning.step(before, String(after ?? ""), AGENTS_AT_ONCE, most),
  };
}
