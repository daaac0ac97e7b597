import { createHash, randomBytes } from "node:crypto";
import { and, eq, gt, inArray, isNull, lt } from "drizzle-orm";
import { AppError } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import type { Micros } from "../lib/money.ts";
import type { Audit } from "../storage/audit.ts";
import type { Store } from "../storage/store.ts";
import type { Accounts } from "./accounts.ts";
import { type Account, signInLinks } from "./schema.ts";
import { rememberAddress } from "./sign-in-addresses.ts";

const LIFE_MS = 60 * 60 * 1000;
const ENDED_KEPT_MS = 24 * 60 * 60 * 1000;

export interface SignInLinks {
  /** A token for a link that signs in once, within an hour; `credit` is for an account that the link creates. */
  create(email: string, credit: Micros): string;
  /**
   * The link's account, created if the e-mail is new. Throws `unauthorized` for a used or expired link. `address` is
   * the caller's address key.
   */
  redeem(token: string, address: string): Account;
  /** Removes at most `limit` links that ended a day ago, used or not. Returns whether there may be more. */
  prune(limit: number): boolean;
}

const hashOf = (token: string) => createHash("sha256").update(token).digest();

/** One-time links created by the operator, for hosts or people without a mailbox. */
export function createSignInLinks(store: Store, clock: Clock, accounts: Accounts, audit: Audit): SignInLinks {
  const { db } = store;
  return {
    create(email, credit) {
      const token = randomBytes(24).toString("base64url");
      const now = clock.now();
      store.transaction(() => {
        db.insert(signInLinks)
          .values({ tokenHash: hashOf(token), email, credit, createdAt: now, expiresAt: now + LIFE_MS })
          .run();
        audit.append({ actor: "operator", action: "sign_in_link.create", subject: email });
      });
      return token;
    },
    redeem(token, address) {
      return store.transaction(() => {
        const now = clock.now();
        const link = db
          .update(signInLinks)
          .set({ usedAt: now })
          .where(
            and(eq(signInLinks.tokenHash, hashOf(token)), isNull(signInLinks.usedAt), gt(signInLinks.expiresAt, now)),
          )
          .returning()
          .get();
        if (!link)
          throw new AppError(
            "unauthorized",
            "this link was used or has expired; create a new one: roost login-link EMAIL",
            { headers: { "WWW-Authenticate": 'Bearer realm="roost"' } },
          );
        const { email, credit } = link;
        const opening = { email, name: null, credit, note: "sign-in link" };
        const account = accounts.findByEmail(email) ?? accounts.create(opening);
        if (account.suspendedAt !== null) throw new AppError("forbidden", "this account is suspended");
        rememberAddress(db, account.accountId, address, now);
        audit.append({
          actor: account.accountId,
          action: "sign_in",
          subject: account.accountId,
          detail: { by: "link" },
        });
        return account;
      });
    },
    prune(limit) {
      return store.transaction(() => {
        const { tokenHash, expiresAt } = signInLinks;
        const old = db
          .select({ tokenHash })
          .from(signInLinks)
          .where(lt(expiresAt, clock.now() - ENDED_KEPT_MS))
          .limit(limit);
        return db.delete(signInLinks).where(inArray(tokenHash, old)).returning({ tokenHash }).all().length === limit;
      });
    },
  };
}
