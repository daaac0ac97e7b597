import { createHash, randomBytes } from "node:crypto";
import { and, desc, eq, gt, isNull, lt, sql } from "drizzle-orm";
import { base62 } from "../lib/base62.ts";
import type { Clock } from "../lib/clock.ts";
import { newId } from "../lib/id.ts";
import { formatMoney, type Micros } from "../lib/money.ts";
import type { Audit } from "../storage/audit.ts";
import type { Store } from "../storage/store.ts";
import { type Invite, invites } from "./schema.ts";

export interface Invites {
  /** Only the code's hash is stored; the code itself is returned here once. */
  create(input: { uses: number; credit: Micros; lifeMs: number }): { invite: Invite; code: string };
  /** The invite, if its code can be used now; undefined if it is unknown, expired, revoked or used up. */
  findUsable(code: string): Invite | undefined;
  /** Takes one use and returns the invite; undefined if none is left. Call it in the transaction that creates the account. */
  consume(inviteId: string): Invite | undefined;
  revoke(inviteId: string): boolean;
  list(before: string | null, limit: number): Invite[];
  /** True before the host's first invite. */
  none(): boolean;
}

const hashOf = (code: string) => createHash("sha256").update(code.trim()).digest();

export function createInvites(store: Store, clock: Clock, audit: Audit): Invites {
  const { db } = store;
  const usable = () => and(isNull(invites.revokedAt), gt(invites.usesLeft, 0), gt(invites.expiresAt, clock.now()));
  return {
    create({ uses, credit, lifeMs }) {
      const code = `roost-${base62(randomBytes(10), 14)}`;
      const now = clock.now();
      const inviteId = newId("invite");
      return store.transaction(() => {
        const invite = db
          .insert(invites)
          .values({
            inviteId,
            codeHash: hashOf(code),
            uses,
            usesLeft: uses,
            credit,
            createdAt: now,
            expiresAt: now + lifeMs,
          })
          .returning()
          .get();
        audit.append({
          actor: "operator",
          action: "invite.create",
          subject: inviteId,
          detail: { uses, credit: formatMoney(credit) },
        });
        return { invite, code };
      });
    },
    findUsable: (code) =>
      db
        .select()
        .from(invites)
        .where(and(eq(invites.codeHash, hashOf(code)), usable()))
        .get(),
    consume: (inviteId) =>
      db
        .update(invites)
        .set({ usesLeft: sql`${invites.usesLeft} - 1` })
        .where(and(eq(invites.inviteId, inviteId), usable()))
        .returning()
        .get(),
    revoke(inviteId) {
      return store.transaction(() => {
        const revoked = db
          .update(invites)
          .set({ revokedAt: clock.now() })
          .where(and(eq(invites.inviteId, inviteId), isNull(invites.revokedAt)))
          .returning()
          .get();
        if (revoked) audit.append({ actor: "operator", action: "invite.revoke", subject: inviteId });
        return revoked !== undefined;
      });
    },
    list: (before, limit) =>
      db
        .select()
        .from(invites)
        .where(before === null ? undefined : lt(invites.inviteId, before))
        .orderBy(desc(invites.inviteId))
        .limit(limit)
        .all(),
    none: () => db.select({ inviteId: invites.inviteId }).from(invites).limit(1).get() === undefined,
  };
}
