import type { KeyObject } from "node:crypto";
import { AUDIT_RETENTION, isExpired, isSigned, isSignedCut } from "./audit-checkpoints.ts";
import { type AuditQueries, auditQueries, follows, GENESIS } from "./audit-queries.ts";
import type { AuditRow, Checkpoint } from "./schema.ts";
import type { Store } from "./store.ts";

const SLICE = 1_000;

/** How much was verified. */
interface Examined {
  rows: number;
  checkpoints: number;
  /** Of the oldest row, in milliseconds; null in an empty log. */
  sinceMs: number | null;
}

/** How much was verified, and the first tampering found. */
export interface AuditVerdict extends Examined {
  /** The row that the finding is about, or the nearest to it; null if there is none. */
  brokenAt: number | null;
  finding: string | null;
  /** Whether no row need have been changed: the signatures may be of another key than the host's. */
  mayLackKey: boolean;
}

export interface AuditVerification {
  store: Store;
  nowMs: number;
  /** The public half of the checkpoint key; null if the host has none. Called only if there are checkpoints. */
  publicKey: () => KeyObject | null;
  /** The newest checkpoint according to `audit-head.json`. */
  head: Pick<Checkpoint, "auditId" | "hash"> | null;
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

/**
 * The first row whose hash does not follow from the one before it; null if the chain is intact. Checks no signatures.
 */
export function findBreak({ db }: Pick<Store, "db">): number | null {
  const queries = auditQueries(db);
  const [oldest] = queries.read(0, 1);
  let before = (oldest && queries.checkpointBefore(oldest.auditId)?.hash) ?? GENESIS;
  for (const row of rowsOf(queries)) {
    if (!follows(before, row)) return row.auditId;
    before = row.hash;
  }
  return null;
}

interface Finding {
  at: number;
  what: string;
  mayLackKey?: true;
}

/**
 * Verifies every signature, and the whole chain that is kept: from the newest checkpoint whose rows have expired (or
 * from the start) to its end. Reads one snapshot, in slices.
 */
export function verifyAudit(parts: AuditVerification): AuditVerdict {
  parts.store.readTogether();
  const queries = auditQueries(parts.store.db);
  const seen: Examined = { rows: 0, checkpoints: 0, sinceMs: null };
  const found =
    findBadSignature(queries, seen, parts) ?? findBadRow(queries, seen, parts) ?? findBadEnd(queries, parts);
  return {
    ...seen,
    brokenAt: found?.at ?? null,
    finding: found?.what ?? null,
    mayLackKey: found?.mayLackKey === true,
  };
}

function findBadSignature(
  queries: AuditQueries,
  seen: Examined,
  { publicKey, head }: AuditVerification,
): Finding | null {
  let key: KeyObject | null | undefined;
  let isHeadThere = head === null;
  for (const checkpoint of checkpointsOf(queries, 0)) {
    const at = checkpoint.auditId;
    key ??= publicKey();
    if (key === null) {
      const what = "host-keys.json holds no key for its checkpoints";
      return { at, what, mayLackKey: true };
    }
    if (!isSigned(checkpoint, key)) {
      const what = `the checkpoint at row ${at} was changed, or signed with another host-keys.json`;
      return { at, what, mayLackKey: true };
    }
    if (head?.auditId === at && head.hash.equals(checkpoint.hash)) isHeadThere = true;
    seen.checkpoints += 1;
  }
  if (head === null || isHeadThere) return null;
  const what = `the checkpoint at row ${head.auditId}, named in audit-head.json, is missing (remove that file if you restored an older database yourself)`;
  return { at: head.auditId, what };
}

function findBadRow(queries: AuditQueries, seen: Examined, { nowMs, publicKey }: AuditVerification): Finding | null {
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
      return { at, what: `row ${at} is not the one its checkpoint was signed for` };
    }
    next = checkpoints.next().value;
  }
  if (next) return { at: next.auditId, what: `row ${next.auditId}, for which a checkpoint was signed, is missing` };
  const newest = queries.newestCheckpoint();
  if (!base || !newest) return null;
  const cut = queries.cut();
  const key = publicKey();
  // Rows that an earlier version removed have no cut.
  const isOurs = cut ? key !== null && isSignedCut(cut, key) && cut.auditId === base.auditId : false;
  if (isOurs || (!cut && isExpired(base, newest.rows, nowMs, AUDIT_RETENTION))) return null;
  return { at: base.auditId, what: `the rows up to ${base.auditId} were removed before they expired` };
}

/** SQLite keeps the last row number in its own table, which exposes a tail that was simply deleted. */
function findBadEnd(queries: AuditQueries, { store }: AuditVerification): Finding | null {
  const count = "SELECT seq FROM sqlite_sequence WHERE name = 'audit'";
  const written = store.sqlite.query<{ seq: number }, []>(count).get()?.seq ?? 0;
  const at = queries.newestRow()?.auditId ?? 0;
  return written > at ? { at, what: `it ends at row ${at}, but row ${written} was written` } : null;
}
