import type { KeyObject } from "node:crypto";
import { isOver, isSigned, RETENTION, type Retention } from "./audit-checkpoints.ts";
import { type AuditQueries, auditQueries, follows, GENESIS } from "./audit-queries.ts";
import type { AuditRow, Checkpoint } from "./schema.ts";
import type { Store } from "./store.ts";

const SLICE = 1_000;

/** What was looked at. */
interface Seen {
  rows: number;
  checkpoints: number;
  /** Of the oldest row, in milliseconds; null in an empty log. */
  sinceMs: number | null;
}

/** What was looked at, and the first thing in it that is not as it was written. */
export interface AuditVerdict extends Seen {
  /** The row that what was found is about, or nearest to; null where all is well. */
  brokenAt: number | null;
  finding: string | null;
}

export interface Verifying {
  store: Store;
  nowMs: number;
  /** What the checkpoints were signed with, the public half; null where the host has none. Asked for where there are some. */
  publicKey: () => KeyObject | null;
  /** The newest checkpoint, as the file beside the database tells it. */
  head: Pick<Checkpoint, "auditId" | "hash"> | null;
  retention?: Retention;
}

function* rowsOf(queries: AuditQueries): Generator<AuditRow, undefined> {
  for (let after = 0; ; ) {
    const rows = queries.read(after, SLICE);
    yield* rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < SLICE) return;
    after = last.auditId;
  }
}

function* checkpointsOf(queries: AuditQueries, first: number): Generator<Checkpoint, undefined> {
  for (let from = first; ; ) {
    const checkpoints = queries.checkpointsFrom(from, SLICE);
    yield* checkpoints;
    const last = checkpoints.at(-1);
    if (last === undefined || checkpoints.length < SLICE) return;
    from = last.auditId + 1;
  }
}

/** The first row whose hash does not follow from the one before it; null where the chain holds. Looks at no signature. */
export function findBreak(queries: AuditQueries): number | null {
  const [oldest] = queries.read(0, 1);
  let before = (oldest && queries.checkpointBefore(oldest.auditId)?.hash) ?? GENESIS;
  for (const row of rowsOf(queries)) {
    if (!follows(before, row)) return row.auditId;
    before = row.hash;
  }
  return null;
}

/** What is not as it was written, and the row that this is about, or nearest to. */
interface Found {
  at: number;
  what: string;
}

/**
 * Verifies every signature, and the chain from the newest checkpoint whose rows are gone (from the beginning where none
 * are) through each checkpoint to its end. One snapshot, read in slices.
 */
export function verifyAudit(parts: Verifying): AuditVerdict {
  parts.store.readTogether();
  const queries = auditQueries(parts.store.db);
  const seen: Seen = { rows: 0, checkpoints: 0, sinceMs: null };
  const found = wrongSignature(queries, seen, parts) ?? wrongRow(queries, seen, parts) ?? wrongEnd(queries, parts);
  return { ...seen, brokenAt: found?.at ?? null, finding: found?.what ?? null };
}

function wrongSignature(queries: AuditQueries, seen: Seen, { publicKey, head }: Verifying): Found | null {
  let key: KeyObject | null | undefined;
  let isHeadThere = head === null;
  for (const checkpoint of checkpointsOf(queries, 0)) {
    const at = checkpoint.auditId;
    key ??= publicKey();
    if (key === null) return { at, what: "its checkpoints cannot be verified: host-keys.json holds no key for them" };
    if (!isSigned(checkpoint, key)) {
      return { at, what: `the checkpoint at row ${at} was changed, or signed with another host-keys.json` };
    }
    if (head?.auditId === at && head.hash.equals(checkpoint.hash)) isHeadThere = true;
    seen.checkpoints += 1;
  }
  if (head === null || isHeadThere) return null;
  const what = `the checkpoint at row ${head.auditId} is gone, which audit-head.json tells of (remove that file if you put back an older database yourself)`;
  return { at: head.auditId, what };
}

function wrongRow(queries: AuditQueries, seen: Seen, { nowMs, retention = RETENTION }: Verifying): Found | null {
  const [oldest] = queries.read(0, 1);
  const base = oldest && queries.checkpointBefore(oldest.auditId);
  let before = base?.hash ?? GENESIS;
  let written = base?.rows ?? 0;
  const checkpoints = checkpointsOf(queries, base ? base.auditId + 1 : 0);
  let next = checkpoints.next().value;
  for (const row of rowsOf(queries)) {
    const at = row.auditId;
    seen.sinceMs ??= row.createdAt;
    if (next && next.auditId < at) break;
    if (!follows(before, row)) return { at, what: `row ${at} does not follow from the one before it` };
    before = row.hash;
    written += 1;
    seen.rows += 1;
    if (next?.auditId !== at) continue;
    if (!next.hash.equals(row.hash) || next.rows !== written) {
      return { at, what: `row ${at} is not the one that its checkpoint was signed for` };
    }
    next = checkpoints.next().value;
  }
  if (next) return { at: next.auditId, what: `row ${next.auditId} is gone, for which a checkpoint was signed` };
  const newest = queries.newestCheckpoint();
  if (!base || !newest || isOver(base, newest.rows, nowMs, retention)) return null;
  return { at: base.auditId, what: `the rows up to ${base.auditId} were removed before their time` };
}

/** The database counts its rows apart from them: a tail that was cut off, if no more than that was done, is seen. */
function wrongEnd(queries: AuditQueries, { store }: Verifying): Found | null {
  const count = "SELECT seq FROM sqlite_sequence WHERE name = 'audit'";
  const written = store.sqlite.query<{ seq: number }, []>(count).get()?.seq ?? 0;
  const at = queries.newestRow()?.auditId ?? 0;
  return written > at ? { at, what: `it ends at row ${at}, but row ${written} was written` } : null;
}
