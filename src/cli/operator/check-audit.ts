import { readAuditKey } from "../../accounts/host-keys.ts";
import { isoTime } from "../../lib/clock.ts";
import { readHead } from "../../storage/audit-checkpoints.ts";
import { type AuditVerdict, verifyAudit } from "../../storage/audit-verify.ts";
import type { Store } from "../../storage/store.ts";

/** What the audit log of a data folder is worth. Changes nothing. Throws where a file of it cannot be read. */
export const examineAudit = (store: Store, dataDir: string): AuditVerdict =>
  verifyAudit({ store, nowMs: Date.now(), publicKey: () => readAuditKey(dataDir), head: readHead(dataDir) });

/** "12 rows since 2026-11-21T10:00:00.000Z, 3 checkpoints". */
export function tellVerified({ rows, checkpoints, sinceMs }: AuditVerdict): string {
  const since = sinceMs === null ? "" : ` since ${isoTime(sinceMs)}`;
  return `${count(rows, "row")}${since}, ${count(checkpoints, "checkpoint")}`;
}

const count = (number: number, what: string): string => `${number} ${what}${number === 1 ? "" : "s"}`;
