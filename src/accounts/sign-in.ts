import { createHmac, randomInt, timingSafeEqual } from "node:crypto";
import { and, count, desc, eq, gt, lt, min, sql } from "drizzle-orm";
import { AppError } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import { lazily } from "../lib/lazily.ts";
import type { Audit } from "../storage/audit.ts";
import type { Store } from "../storage/store.ts";
import type { Accounts } from "./accounts.ts";
import type { Invites } from "./invites.ts";
import { type Account, signInCodes } from "./table.ts";

/** Limits of api.md section 2. They are counted from the rows of the codes sent, so a restart resets nothing. */
export const CODE_LIFE_SECONDS = 600;
const TRIES = 5;
const MINUTE = 60_000;
const EMAIL_LIMITS = [
  { windowMs: MINUTE, most: 1 },
  { windowMs: 60 * MINUTE, most: 5 },
  { windowMs: 24 * 60 * MINUTE, most: 10 },
];
const ADDRESS_LIMIT = { windowMs: 60 * MINUTE, most: 20 };

export interface SignInParts {
  store: Store;
  clock: Clock;
  audit: Audit;
  accounts: Accounts;
  invites: Invites;
  pepper: Buffer;
  sendCode(to: string, code: string): Promise<void>;
}

export interface SignIn {
  /** Throws `rate_limited` when this address asked too often; judged before the body is read. */
  checkAddress(address: string): void;
  /** Sends a code. Throws `rate_limited`, or `invite_required` for a stranger without a valid invite. */
  sendCode(input: { email: string; inviteCode: string | null; address: string }): Promise<void>;
  /** The account that the code opens, made now for a new e-mail. Throws `unauthorized`, `invite_required`, `forbidden`. */
  verifyCode(input: { email: string; code: string; name: string | null }): Account;
}

const wrongCode = () =>
  new AppError("unauthorized", "the code is wrong or no longer valid; ask for a new one", {
    headers: { "WWW-Authenticate": 'Bearer realm="roost"' },
  });
const inviteRequired = () => new AppError("invite_required", "inviteCode: expected a valid invite code");

export function createSignIn({ store, clock, audit, accounts, invites, pepper, sendCode }: SignInParts): SignIn {
  const { db } = store;
  const hmac = (email: string, code: string) => createHmac("sha256", pepper).update(`${email}\n${code}`).digest();
  const latest = lazily(() =>
    db
      .select()
      .from(signInCodes)
      .where(eq(signInCodes.email, sql.placeholder("email")))
      .orderBy(desc(signInCodes.codeId))
      .limit(1)
      .prepare(),
  );

  function checkLimit(who: "email" | "address", value: string, limit: { windowMs: number; most: number }): void {
    const since = clock.now() - limit.windowMs;
    const sent = db
      .select({ times: count(), first: min(signInCodes.createdAt) })
      .from(signInCodes)
      .where(and(eq(signInCodes[who], value), gt(signInCodes.createdAt, since)))
      .get();
    if (!sent || sent.times < limit.most) return;
    const retryAfterSeconds = ((sent.first ?? clock.now()) - since) / 1000;
    throw new AppError(
      "rate_limited",
      `too many codes were asked for; try again in ${Math.ceil(retryAfterSeconds)} seconds`,
      {
        retryAfterSeconds,
      },
    );
  }

  /** The latest code's row when it may still be tried, one try taken; undefined else. Committed whatever follows. */
  function takeTry(email: string) {
    return store.transaction(() => {
      const row = latest().get({ email });
      if (!row || row.usedAt !== null || row.expiresAt <= clock.now() || row.tries >= TRIES) return undefined;
      db.update(signInCodes)
        .set({ tries: row.tries + 1 })
        .where(eq(signInCodes.codeId, row.codeId))
        .run();
      return row;
    });
  }

  function register(email: string, name: string | null, inviteId: string | null): Account {
    const invite = inviteId === null ? undefined : invites.consume(inviteId);
    if (!invite) throw inviteRequired();
    const shownName = name ?? (email.split("@")[0] ?? email).slice(0, 100);
    return accounts.create({ email, name: shownName, credit: invite.credit, note: `invite ${invite.inviteId}` });
  }

  return {
    checkAddress: (address) => checkLimit("address", address, ADDRESS_LIMIT),
    async sendCode({ email, inviteCode, address }) {
      for (const limit of EMAIL_LIMITS) checkLimit("email", email, limit);
      const invite = inviteCode === null ? undefined : invites.findUsable(inviteCode);
      if (inviteCode !== null && !invite) throw inviteRequired();
      if (!invite && !accounts.findByEmail(email)) throw inviteRequired();
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
      const { codeId } = store.transaction(() => db.insert(signInCodes).values(row).returning().get());
      try {
        await sendCode(email, code);
      } catch (cause) {
        store.transaction(() => db.delete(signInCodes).where(eq(signInCodes.codeId, codeId)).run());
        throw new AppError("internal_error", "the code could not be mailed; try again in a minute", {
          cause,
          status: 503,
          retryAfterSeconds: 60,
        });
      }
    },
    verifyCode({ email, code, name }) {
      const given = hmac(email, code);
      const row = takeTry(email);
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

/** Removes the codes that no limit counts any more. */
export function pruneSignInCodes({ db, transaction }: Store, clock: Clock): void {
  const old = lt(signInCodes.createdAt, clock.now() - 25 * 60 * MINUTE);
  transaction(() => db.delete(signInCodes).where(old).run());
}
