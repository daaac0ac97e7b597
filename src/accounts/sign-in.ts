import { createHmac, randomInt, timingSafeEqual } from "node:crypto";
import { and, desc, eq, isNull, sql } from "drizzle-orm";
import { AppError } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import { MailError } from "../mail/message.ts";
import type { Audit } from "../storage/audit.ts";
import { prepared } from "../storage/prepared.ts";
import type { Store } from "../storage/store.ts";
import type { Accounts } from "./accounts.ts";
import { createCodeLimits } from "./code-limits.ts";
import type { Invites } from "./invites.ts";
import { type Account, signInCodes } from "./schema.ts";
import { rememberAddress } from "./sign-in-addresses.ts";

/** How long a code is valid, and how often it may be tried (docs/contract/api.md, Signing in). */
export const CODE_LIFE_SECONDS = 600;
const MAX_TRIES = 5;

export interface SignInParts {
  store: Store;
  clock: Clock;
  audit: Audit;
  accounts: Accounts;
  invites: Invites;
  pepper: Buffer;
  sendCode(to: string, code: string): Promise<void>;
}

/** Every `address` is an address key (src/limits/address.ts). */
export interface SignIn {
  /** Throws `rate_limited` if this address asked too often. Call it before reading the body. */
  checkAddress(address: string): void;
  /** Sends a code. Throws `rate_limited`, or `invite_required` for a stranger without a valid invite. */
  sendCode(input: { email: string; inviteCode: string | null; address: string }): Promise<void>;
  /**
   * Signs in with a code, creating the account for a new e-mail. Throws `unauthorized`, `invite_required`, `forbidden`.
   */
  verifyCode(input: { email: string; code: string; name: string | null; address: string }): Account;
}

const wrongCode = () =>
  new AppError("unauthorized", "the code is wrong or no longer valid; ask for a new one", {
    headers: { "WWW-Authenticate": 'Bearer realm="roost"' },
  });
const inviteRequired = () => new AppError("invite_required", "inviteCode: expected a valid invite code");

const NOT_MAILED = {
  "not sent": "the code could not be mailed; try again in a minute",
  "recipient refused": "the code could not be mailed: the mail server refuses this address; check it",
  unknown: "the mail server has not said in time that it takes the code; if no mail comes, try again in a minute",
} as const;

export function createSignIn({ store, clock, audit, accounts, invites, pepper, sendCode }: SignInParts): SignIn {
  const { db } = store;
  const limits = createCodeLimits(db, clock);
  const hmac = (email: string, code: string) => createHmac("sha256", pepper).update(`${email}\n${code}`).digest();
  const latest = prepared(db, () =>
    db
      .select()
      .from(signInCodes)
      .where(and(eq(signInCodes.email, sql.placeholder("email")), isNull(signInCodes.refusedAt)))
      .orderBy(desc(signInCodes.codeId))
      .limit(1),
  );

  /**
   * Takes one try of the latest code and returns its row; undefined if this address has no tries left. Committed
   * whatever follows. The address that requested the code has its own tries.
   */
  function takeTry(email: string, address: string) {
    return store.transaction(() => {
      const row = latest.get({ email });
      if (!row || row.usedAt !== null || row.expiresAt <= clock.now()) return undefined;
      const tries = row.address === address ? "tries" : "otherTries";
      if (row[tries] >= MAX_TRIES) return undefined;
      db.update(signInCodes)
        .set({ [tries]: row[tries] + 1 })
        .where(eq(signInCodes.codeId, row.codeId))
        .run();
      return row;
    });
  }

  /** Checks every limit in the transaction that counts towards it, so that concurrent requests cannot slip past. */
  function makeCode(email: string, inviteCode: string | null, address: string): { codeId: number; code: string } {
    return store.transaction(() => {
      const account = accounts.findByEmail(email);
      limits.checkAddress(address);
      limits.checkEmail(email, account?.accountId ?? null, address);
      const invite = inviteCode === null ? undefined : invites.findUsable(inviteCode);
      if (!invite && (inviteCode !== null || !account)) throw inviteRequired();
      if (invite) limits.checkInvite(invite);
      const code = String(randomInt(100_000_000)).padStart(8, "0");
      const now = clock.now();
      const row = {
        email,
        address,
        codeHmac: hmac(email, code),
        inviteId: invite?.inviteId ?? null,
        createdAt: now,
        expiresAt: now + CODE_LIFE_SECONDS * 1000,
      };
      const { codeId } = db.insert(signInCodes).values(row).returning().get();
      return { codeId, code };
    });
  }

  /**
   * A code whose mail failed neither signs in nor replaces another, but counts: otherwise such mails would have no
   * limit.
   */
  function markRefused(codeId: number): void {
    store.transaction(() =>
      db.update(signInCodes).set({ refusedAt: clock.now() }).where(eq(signInCodes.codeId, codeId)).run(),
    );
  }

  function register(email: string, name: string | null, inviteId: string | null): Account {
    const invite = inviteId === null ? undefined : invites.consume(inviteId);
    if (!invite) throw inviteRequired();
    return accounts.create({ email, name, credit: invite.credit, note: `invite ${invite.inviteId}` });
  }

  return {
    checkAddress: limits.checkAddress,
    async sendCode({ email, inviteCode, address }) {
      const { codeId, code } = makeCode(email, inviteCode, address);
      try {
        await sendCode(email, code);
      } catch (cause) {
        const outcome = cause instanceof MailError ? cause.outcome : "not sent";
        if (outcome !== "unknown") markRefused(codeId);
        throw new AppError("internal_error", NOT_MAILED[outcome], {
          cause,
          status: 503,
          retryAfterSeconds: 60,
        });
      }
    },
    verifyCode({ email, code, name, address }) {
      const given = hmac(email, code);
      const row = takeTry(email, address);
      if (!row || !timingSafeEqual(row.codeHmac, given)) throw wrongCode();
      return store.transaction(() => {
        const used = db
          .update(signInCodes)
          .set({ usedAt: clock.now() })
          .where(and(eq(signInCodes.codeId, row.codeId), sql`${signInCodes.usedAt} is null`))
          .returning({ codeId: signInCodes.codeId })
          .get();
        if (!used) throw wrongCode();
        const account = accounts.findByEmail(email) ?? register(email, name, row.inviteId);
        if (account.suspendedAt !== null) {
          throw new AppError("forbidden", "this account is suspended; ask the host's operator");
        }
        rememberAddress(db, account.accountId, address, clock.now());
        audit.append({
          actor: account.accountId,
          action: "sign_in",
          subject: account.accountId,
          detail: { by: "code" },
        });
        return account;
      });
    },
  };
}
