import { desc, lt } from "drizzle-orm";
import type { Clock } from "../lib/clock.ts";
import type { Store } from "../storage/store.ts";
import type { MailMessage } from "./message.ts";
import { type OutboxMail, outbox } from "./schema.ts";

const KEPT_MS = 24 * 60 * 60 * 1000;

export interface Outbox {
  append(message: MailMessage): void;
  /** All stored mail, newest first; `createdAt` in milliseconds. */
  list(): OutboxMail[];
  /** Deletes mail older than 24 hours. Every `append` does so too, so there is never much. Returns false: none is left. */
  prune(): boolean;
}

/** Stores mail when no SMTP server is set; the operator reads it with `roost outbox`. */
export function createOutbox({ db, transaction }: Store, clock: Clock): Outbox {
  const deleteOld = () =>
    db
      .delete(outbox)
      .where(lt(outbox.createdAt, clock.now() - KEPT_MS))
      .run();
  return {
    append({ to, subject, text, code = null }) {
      transaction(() => {
        deleteOld();
        db.insert(outbox).values({ to, subject, text, code, createdAt: clock.now() }).run();
      });
    },
    list() {
      const { to, subject, text, code, createdAt } = outbox;
      return db.select({ to, subject, text, code, createdAt }).from(outbox).orderBy(desc(outbox.id)).all();
    },
    prune() {
      transaction(deleteOld);
      return false;
    },
  };
}
