import type { Clock } from "../lib/clock.ts";
import { auditQueries } from "./audit-queries.ts";
import { findBreak } from "./audit-verify.ts";
import type { AuditRow } from "./schema.ts";
import type { Store } from "./store.ts";

export interface AuditEntry {
  /** An account id, or `operator` for the command line, or `host`. */
  actor: string;
  /** What was done, such as `key.create`. */
  action: string;
  /** The id of what it was done to. */
  subject: string;
  detail?: Record<string, string | number | boolean | null>;
}

/**
 * Whether an entry is to be written, which it then is: `detail` is JSON. Throws where what it tells is not to be done
 * (src/limits/audit-allowance.ts).
 */
export type AdmitEntry = (actor: string, action: string, detail: string) => boolean;

export interface Audit {
  /**
   * Appends in the transaction that is open, so that what is done and what is told of it stand or fall together. Throws
   * `rate_limited` for an account that fills the log; never for the operator and the host, for signing in, for revoking
   * and for payments.
   */
  append(entry: AuditEntry): void;
  /** Takes the room for an entry now, throwing as `append`; what it gives appends it in a later transaction. */
  reserve(entry: AuditEntry): () => void;
  /** Oldest first, `limit` rows behind `after`. */
  read(after: number, limit: number): AuditRow[];
  /** The first row whose hash does not follow from the one before it; null where the chain holds. */
  findBreak(): number | null;
}

/** The append-only, hash-chained log of what touches credentials, secrets and money (security.md). */
export function createAudit(store: Store, clock: Clock, admit: AdmitEntry): Audit {
  const queries = auditQueries(store.db);

  function reserve({ actor, action, subject, detail = {} }: AuditEntry): () => void {
    const text = JSON.stringify(detail);
    if (!admit(actor, action, text)) return () => {};
    return () =>
      store.transaction(() => queries.append({ actor, action, subject, detail: text, createdAt: clock.now() }));
  }

  return {
    append: (entry) => reserve(entry)(),
    reserve,
    read: queries.read,
    findBreak: () => findBreak(queries),
  };
}
