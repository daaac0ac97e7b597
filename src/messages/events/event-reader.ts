import { and, asc, eq, gt, lte, type SQL, sql } from "drizzle-orm";
import { agents } from "../../agents/schema.ts";
import { AppError } from "../../lib/app-error.ts";
import { prepared } from "../../storage/prepared.ts";
import type { Db } from "../../storage/store.ts";
import { defaultConversationOf, events, type Run, type StoredEvent } from "../schema.ts";

/** Events that contain the conversation's text; clearing it removes them. */
export const TEXT_EVENTS =
  "('message.delta', 'message.completed', 'tool.started', 'tool.completed', 'approval.requested', 'approval.decided', 'plan.updated', 'delegation.started')";
/** How many rows' sizes are read first. */
const FEW = 8;
/** Event numbers that one call scans at most, where many events may be hidden, or another conversation's. */
const MAX_SCANNED = 1_000;

/** The next events of a stream, complete up to `upTo`. */
export interface EventBatch {
  rows: StoredEvent[];
  upTo: number;
  /** Whether nothing comes after. */
  isEnd: boolean;
}

/** How much of the log is read at once: rows, and bytes of their data, which a single row may exceed. */
export interface BatchLimits {
  rows: number;
  bytes: number;
}

/** Reads an agent's events, as far as they are kept. */
export interface EventReader {
  /** All events after the cursor `after`, or those of one conversation; null if the next ones are no longer kept. */
  follow(agentId: string, after: number, limits: BatchLimits, conversationId: string | null): EventBatch | null;
  /** One run's events after the cursor; null if its first ones are no longer kept. */
  ofRun(run: RunInLog, after: number, limit: number): StoredEvent[] | null;
  /**
   * The event after which a reader with this cursor continues. Null starts now, 0 at the first event that is kept.
   * Throws 410 for a cursor that is older than what is kept, or ahead of the log.
   */
  startAt(agentId: string, cursor: number | null): number;
  /** The event before the run's first. Throws 410 if that first one is no longer kept: the last may be gone too. */
  startOf(run: Pick<Run, "agentId" | "firstEventId">): number;
}

export type RunInLog = Pick<Run, "agentId" | "conversationId" | "runId" | "firstEventId">;

export function createEventReader(db: Db): EventReader {
  const p = sql.placeholder;
  const ofAgent = and(eq(events.agentId, p("agentId")), gt(events.eventId, p("after")));
  const isOfConversation = eq(events.conversationId, p("conversationId"));
  // The second condition is written exactly as the index's, which has no events of default conversations: most are theirs,
  // and a message would change one more page at each commit.
  const ofOther = and(
    isOfConversation,
    sql`${events.conversationId} <> replace(${events.agentId}, 'agt_', 'conv_')`,
    gt(events.eventId, p("after")),
  );
  /** Looked for among all of the agent's. */
  const ofDefault = and(ofAgent, isOfConversation);
  /** Rows of a cleared conversation exist until housekeeping deletes them. */
  const isSeen = sql`(${events.type} NOT IN ${sql.raw(TEXT_EVENTS)} OR ${events.conversationId} IS NULL OR ${events.eventId} >
    coalesce((SELECT c.cleared_event_id FROM conversations AS c WHERE c.conversation_id = ${events.conversationId}), 0))`;
  const rowsOf = (which: SQL | undefined) =>
    prepared(db, () => db.select().from(events).where(which).orderBy(asc(events.eventId)).limit(p("limit")));
  const sizesOf = (which: SQL | undefined) =>
    prepared(db, () =>
      db
        .select({ bytes: sql<number>`octet_length(${events.data})` })
        .from(events)
        .where(which)
        .orderBy(asc(events.eventId))
        .limit(p("limit")),
    );
  const reading = (which: SQL | undefined) => ({ rows: rowsOf(which), sizes: sizesOf(which) });
  const upToEnd = lte(events.eventId, p("end"));
  const seenUpTo = (which: SQL | undefined) => reading(and(which, upToEnd, isSeen));
  const all = { whole: reading(ofAgent), ofDefault: reading(and(ofDefault, upToEnd)), ofOther: reading(ofOther) };
  const seen = { whole: seenUpTo(ofAgent), ofDefault: seenUpTo(ofDefault), ofOther: seenUpTo(ofOther) };
  const isOfRun = eq(events.runId, p("runId"));
  const runIn = { ofDefault: rowsOf(and(ofDefault, isOfRun)), ofOther: rowsOf(and(ofOther, isOfRun)) };
  const placeOf = (agentId: string, conversationId: string) =>
    conversationId === defaultConversationOf(agentId) ? "ofDefault" : "ofOther";
  const log = prepared(db, () =>
    db
      .select({
        id: agents.lastEventId,
        pruned: agents.prunedEventId,
        /** Up to this number, events may be hidden. */
        cleared: sql<number>`coalesce((SELECT max(c.cleared_event_id) FROM conversations AS c
          WHERE c.agent_id = ${p("agentId")} AND c.cleared_event_id > 0), 0)`,
      })
      .from(agents)
      .where(eq(agents.agentId, p("agentId"))),
  );
  const NOTHING = { id: 0, pruned: 0, cleared: 0 };
  const boundsOf = (agentId: string) => log.get({ agentId }) ?? NOTHING;

  type Reading = ReturnType<typeof reading>;
  interface Range {
    agentId: string;
    conversationId: string | null;
    after: number;
    end: number;
  }

  /** How many of the next events fit the limits, by their sizes, and whether those are all of them. */
  function fitting(
    { sizes }: Reading,
    range: Range,
    { rows: limit, bytes }: BatchLimits,
  ): { count: number; isAll: boolean } {
    // SQLite reads a large row even to skip it, so if the first few are enough, no others are looked at.
    for (const some of [Math.min(FEW, limit), limit]) {
      const lengths = sizes.all({ ...range, limit: some });
      let left = bytes;
      const end = lengths.findIndex((row) => {
        left -= row.bytes;
        return left <= 0;
      });
      if (end >= 0) return { count: end + 1, isAll: false };
      if (lengths.length < some) return { count: lengths.length, isAll: true };
    }
    return { count: limit, isAll: false };
  }

  return {
    follow(agentId, after, limits, conversationId) {
      const { id, pruned, cleared } = boundsOf(agentId);
      if (after < pruned) return null;
      const which = conversationId === null ? "whole" : placeOf(agentId, conversationId);
      const reader = (after >= cleared ? all : seen)[which];
      const last = after >= cleared ? id : cleared;
      // What is not shown is skipped a part at a time.
      const end = after >= cleared && which !== "ofDefault" ? id : Math.min(last, after + MAX_SCANNED);
      const range = { agentId, conversationId, after, end };
      const { count, isAll } = fitting(reader, range, limits);
      const rows = count === 0 ? [] : reader.rows.all({ ...range, limit: count });
      const upTo = isAll ? Math.max(end, after) : (rows.at(-1)?.eventId ?? after);
      return { rows, upTo, isEnd: isAll && end >= id };
    },
    ofRun(run, after, limit) {
      if (boundsOf(run.agentId).pruned >= run.firstEventId) return null;
      return runIn[placeOf(run.agentId, run.conversationId)].all({ ...run, after, limit });
    },
    startAt(agentId, cursor) {
      const { id, pruned } = boundsOf(agentId);
      if (cursor === null) return id;
      if (cursor > id || (cursor > 0 && cursor < pruned)) {
        throw gone("the events at this cursor are no longer kept; start again without a cursor, or from 0");
      }
      return Math.max(cursor, pruned);
    },
    startOf({ agentId, firstEventId }) {
      if (boundsOf(agentId).pruned >= firstEventId) throw gone("the run's first events are no longer kept");
      return firstEventId - 1;
    },
  };
}

const gone = (message: string) => new AppError("not_found", message, { status: 410 });
