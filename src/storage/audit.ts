import type { Clock } from "../lib/clock.ts";
import { auditQueries } from "./audit-queries.ts";
import type { AuditRow } from "./schema.ts";
import type { Store } from "./store.ts";

export interface AuditEntry {
  /** An account id, or `operator` for the command line, or `host`. */
  actor: string;
  /** What was done, such as `key.create`. */
  action: string;
  /** The id of the thing it was done to. */
  subject: string;
  detail?: Record<string, string | number | boolean | null>;
}

/**
 * Whether an entry is to be written, counting it if so. `detail` is JSON. Throws if the action itself must be refused
 * (src/limits/audit-allowance.ts).
 */
export type AdmitEntry = (actor: string, action: string, detail: string) => boolean;

export interface Audit {
  /**
   * Appends in the open transaction, so that an action and its entry are committed together or not at all. Throws
   * `rate_limited` for an account that floods the log; never for the operator, the host, sign-ins, revocations and
   * payments.
   */
  append(entry: AuditEntry): void;
  /**
   * Claims the room for an entry now, throwing as `append` does; the returned function appends it, in a later
   * transaction.
   */
  reserve(entry: AuditEntry): () => void;
  /** Oldest first, at most `limit` rows after the row `after`. */
  read(after: number, limit: number): AuditRow[];
}

/**
 * The append-only, hash-chained log of everything that touches credentials, secrets and money
 * (docs/contract/security.md, Audit log).
 */
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
  };
}
