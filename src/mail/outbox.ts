import type { BunSQLiteDatabase } from "drizzle-orm/bun-sqlite";
import type { Clock } from "../lib/clock.ts";
import type { MailMessage } from "./mail.ts";
import { appendMail, deleteMailBefore, listMail, type OutboxMail } from "./table.ts";

const KEPT_MS = 24 * 60 * 60 * 1000;

export interface Outbox {
  append(message: MailMessage): void;
  /** What is kept, newest first; `createdAt` in milliseconds. */
  list(): OutboxMail[];
  /** Deletes what is older than 24 hours. Every `append` does so too. */
  prune(): void;
}

/** Where mail goes that no SMTP server takes: the operator reads it with `roost outbox`. */
export function createOutbox(db: BunSQLiteDatabase, clock: Clock): Outbox {
  const prune = () => deleteMailBefore(db, clock.now() - KEPT_MS);
  return {
    append({ to, subject, text, code = null }) {
      prune();
      appendMail(db, { to, subject, text, code, createdAt: clock.now() });
    },
    list: () => listMail(db),
    prune,
  };
}
