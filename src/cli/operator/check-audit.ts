import { readAuditKey } from "../../accounts/host-keys.ts";
import { isoTime } from "../../lib/clock.ts";
import { readAuditHead } from "../../storage/audit-checkpoints.ts";
import { type AuditVerdict, verifyAudit } from "../../storage/audit-verify.ts";
import type { Store } from "../../storage/store.ts";

/** Verifies a data folder's audit log. Changes nothing. Throws if one of its files cannot be read. */
export const checkAuditLog = (store: Store, dataDir: string): AuditVerdict =>
  verifyAudit({ store, nowMs: Date.now(), publicKey: () => readAuditKey(dataDir), head: readAuditHead(dataDir) });

/** "12 rows since 2026-11-21T10:00:00.000Z, 3 checkpoints". */
export function describeVerdict({ rows, checkpoints, sinceMs }: AuditVerdict): string {
  const since = sinceMs === null ? "" : ` since ${isoTime(sinceMs)}`;
  return `${count(rows, "row")}${since}, ${count(checkpoints, "checkpoint")}`;
}

/** "the audit log was changed: row 2 does not follow from the one before it"; null if all is well. */
export function findingOf({ finding, mayLackKey }: AuditVerdict): string | null {
  if (finding === null) return null;
  return `the audit log ${mayLackKey ? "cannot be verified" : "was changed"}: ${finding}`;
}

const count = (number: number, what: string): string => `${number} ${what}${number === 1 ? "" : "s"}`;
