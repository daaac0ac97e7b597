import { and, asc, eq, gt, lt, lte, ne, sql } from "drizzle-orm";
import { balances } from "../ledger/schema.ts";
import { dayOf, monthOf } from "../lib/calendar.ts";
import { prepared } from "../storage/prepared.ts";
import type { Life } from "../storage/retention.ts";
import type { Db } from "../storage/store.ts";
import { usageBefore, usageDays } from "./schema.ts";

const ACCOUNTS_AT_ONCE = 100;

/**
 * Removes days of usage, account by account. What they cost is added to what the instance cost before, so that the
 * books still balance (src/ledger/imbalance.ts).
 */
export function pruneUsage(db: Db): Life["slice"] {
  const p = sql.placeholder;
  const accounts = prepared(db, () =>
    db
      .select({ accountId: balances.accountId })
      .from(balances)
      .where(gt(balances.accountId, p("after")))
      .orderBy(asc(balances.accountId))
      .limit(p("limit")),
  );
  const oldest = prepared(db, () =>
    db
      .select({ day: usageDays.day, instanceId: usageDays.instanceId, cost: usageDays.cost })
      .from(usageDays)
      .where(and(eq(usageDays.accountId, p("accountId")), lt(usageDays.day, p("day"))))
      .orderBy(asc(usageDays.day), asc(usageDays.instanceId))
      .limit(p("limit")),
  );
  const add = prepared(db, () =>
    db
      .insert(usageBefore)
      .values({ instanceId: p("instanceId"), accountId: p("accountId"), cost: p("cost") })
      .onConflictDoUpdate({
        target: usageBefore.instanceId,
        set: { cost: sql`${usageBefore.cost} + excluded.cost` },
      }),
  );
  const remove = prepared(db, () =>
    db
      .delete(usageDays)
      .where(
        and(
          eq(usageDays.accountId, p("accountId")),
          eq(usageDays.day, p("day")),
          eq(usageDays.instanceId, p("instanceId")),
        ),
      ),
  );
  // An account that has run nothing since then still has its last month's sum, which the meter forms anew if asked.
  const forgetMonth = prepared(db, () =>
    db
      .update(balances)
      .set({ month: "", spent: 0n })
      .where(
        and(eq(balances.accountId, p("accountId")), ne(balances.month, ""), lte(balances.month, p("monthOfFirstKept"))),
      ),
  );

  return (before, after, most) => {
    const firstKept = dayOf(before);
    const monthOfFirstKept = monthOf(before);
    let done = String(after ?? "");
    let left = most;
    const some = accounts.all({ after: done, limit: ACCOUNTS_AT_ONCE });
    for (const { accountId } of some) {
      forgetMonth.run({ accountId, monthOfFirstKept });
      for (const { day, instanceId, cost } of oldest.all({ accountId, day: firstKept, limit: left })) {
        add.run({ instanceId, accountId, cost });
        remove.run({ accountId, day, instanceId });
        left--;
      }
      // This account may have more, so the next slice starts with it.
      if (left === 0) return { removed: most, next: done };
      done = accountId;
    }
    return { removed: most - left, next: some.length < ACCOUNTS_AT_ONCE ? null : done };
  };
}
