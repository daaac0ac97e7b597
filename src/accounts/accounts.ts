import { asc, eq, gt, sql } from "drizzle-orm";
import { AppError, notFound } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import { newId } from "../lib/id.ts";
import type { Micros } from "../lib/money.ts";
import type { Audit } from "../storage/audit.ts";
import { prepared } from "../storage/prepared.ts";
import type { Store } from "../storage/store.ts";
import { type Account, accounts } from "./schema.ts";

export interface AccountParts {
  store: Store;
  clock: Clock;
  audit: Audit;
  /** Opens the new account's balance, in the transaction that creates the account. */
  openBalance(accountId: string, credit: Micros, note: string): void;
}

export interface Accounts {
  find(accountId: string): Account | undefined;
  findByEmail(email: string): Account | undefined;
  /** Throws `not_found`. */
  get(accountId: string): Account;
  /**
   * Creates an account with an opening credit; without a name it has that of its mailbox. Call it in a transaction;
   * throws `conflict` if the e-mail is taken.
   */
  create(input: { email: string; name: string | null; credit: Micros; note: string }): Account;
  update(accountId: string, change: Partial<Pick<Account, "name" | "monthlyLimit" | "modelLimits">>): Account;
  /** Every token issued before now stops working. */
  revokeTokens(accountId: string): void;
  setSuspended(accountId: string, suspended: boolean): void;
  list(after: string | null, limit: number): Account[];
}

export function createAccounts({ store, clock, audit, openBalance }: AccountParts): Accounts {
  const { db } = store;
  const byId = prepared(db, () =>
    db
      .select()
      .from(accounts)
      .where(eq(accounts.accountId, sql.placeholder("accountId"))),
  );
  const byEmail = prepared(db, () =>
    db
      .select()
      .from(accounts)
      .where(eq(accounts.email, sql.placeholder("email"))),
  );
  const find = store.oncePerSnapshot((accountId: string) => byId.get({ accountId }));
  const get = (accountId: string) => {
    const account = find(accountId);
    if (!account) throw notFound("account");
    return account;
  };

  return {
    find,
    findByEmail: (email) => byEmail.get({ email }),
    get,
    create({ email, name, credit, note }) {
      return store.transaction(() => {
        if (byEmail.get({ email })) throw new AppError("conflict", "email: an account with this e-mail exists");
        const accountId = newId("acct");
        const shownName = name ?? email.split("@")[0] ?? email;
        db.insert(accounts).values({ accountId, email, name: shownName, createdAt: clock.now() }).run();
        openBalance(accountId, credit, note);
        audit.append({ actor: accountId, action: "account.create", subject: accountId, detail: { note } });
        return get(accountId);
      });
    },
    update(accountId, change) {
      if (Object.keys(change).length > 0) {
        store.transaction(() => db.update(accounts).set(change).where(eq(accounts.accountId, accountId)).run());
      }
      return get(accountId);
    },
    revokeTokens(accountId) {
      store.transaction(() => {
        db.update(accounts)
          .set({ tokenEpoch: sql`${accounts.tokenEpoch} + 1` })
          .where(eq(accounts.accountId, accountId))
          .run();
        audit.append({ actor: accountId, action: "tokens.revoke", subject: accountId });
      });
    },
    setSuspended(accountId, suspended) {
      store.transaction(() => {
        const suspendedAt = suspended ? clock.now() : null;
        db.update(accounts).set({ suspendedAt }).where(eq(accounts.accountId, accountId)).run();
        const action = suspended ? "account.suspend" : "account.resume";
        audit.append({ actor: "operator", action, subject: accountId });
      });
    },
    list: (after, limit) =>
      db
        .select()
        .from(accounts)
        .where(after === null ? undefined : gt(accounts.accountId, after))
        .orderBy(asc(accounts.accountId))
        .limit(limit)
        .all(),
  };
}
