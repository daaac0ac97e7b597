import { formatMoney } from "../lib/money.ts";
import type { Store } from "../storage/store.ts";

/** A rule of the books; `violations` is a query that finds what breaks it. */
interface Rule {
  violations: string;
  describe(found: Violation): string;
}

interface Violation {
  id: string | number;
  /** Micro-USDC. */
  has: number;
  should: number;
}

const usdc = (micros: number): string => formatMoney(BigInt(Math.round(micros)));

/** What each instance's days cost, with those that are no longer kept. */
const COST_OF_DAYS = `SELECT instance_id, sum(cost) AS cost FROM (
    SELECT instance_id, cost FROM usage_days UNION ALL SELECT instance_id, cost FROM usage_before
  ) GROUP BY instance_id`;

/**
 * The invariants of the ledger, the meter and payments (docs/contract/billing.md, Invariants), as far as the data can
 * show them.
 */
const RULES: readonly Rule[] = [
  {
    violations: `
      SELECT journal_entries.entry_id AS id, coalesce(sum(amount), 0) AS has, 0 AS should
      FROM journal_entries LEFT JOIN postings ON postings.entry_id = journal_entries.entry_id
      GROUP BY journal_entries.entry_id HAVING coalesce(sum(amount), 0) <> 0 OR count(amount) < 2`,
    describe: ({ id, has }) => `the ledger entry ${id} does not balance: it is off by ${usdc(has)}`,
  },
  {
    // Looks up each entry's predecessor by index: a window over the whole journal takes four times as long.
    violations: `
      SELECT entry.entry_id AS id, balance_after AS has, coalesce(amount, 0) + coalesce((
        SELECT balance_after FROM journal_entries AS former
        WHERE former.account_id = entry.account_id AND former.entry_id < entry.entry_id
        ORDER BY former.entry_id DESC LIMIT 1
      ), 0) AS should
      FROM journal_entries AS entry LEFT JOIN postings
        ON postings.entry_id = entry.entry_id AND ledger_account = 'customer:' || account_id
      WHERE has <> should`,
    describe: ({ id, has, should }) =>
      `the ledger entry ${id} says that the balance after it was ${usdc(has)}, but it was ${usdc(should)}`,
  },
  {
    // By the rule above, the balance after an account's last entry is the sum of its postings.
    violations: `
      SELECT account_id AS id, balance AS has, coalesce((
        SELECT balance_after FROM journal_entries
        WHERE journal_entries.account_id = balances.account_id ORDER BY entry_id DESC LIMIT 1
      ), 0) AS should
      FROM balances WHERE has <> should`,
    describe: ({ id, has, should }) => `the balance of ${id} is ${usdc(has)}, but its postings sum to ${usdc(should)}`,
  },
  {
    violations: `
      SELECT account_id AS id, balance AS has, unposted AS should
      FROM balances WHERE balance < 0 OR unposted < 0 OR unposted > balance`,
    describe: ({ id, has, should }) =>
      `the balance of ${id} is ${usdc(has)}, of which ${usdc(should)} are metered: neither may be negative, nor the second larger than the first`,
  },
  {
    violations: `
      SELECT account_id AS id, owed AS has, -coalesce(sum(amount), 0) AS should
      FROM balances LEFT JOIN postings ON ledger_account = 'receivable:' || account_id
      GROUP BY account_id HAVING owed <> -coalesce(sum(amount), 0)`,
    describe: ({ id, has, should }) => `${id} is recorded as owing ${usdc(has)}, but its postings say ${usdc(should)}`,
  },
  {
    violations: `
      SELECT balances.account_id AS id, balances.unposted AS has, coalesce(sum(meters.unposted), 0) AS should
      FROM balances LEFT JOIN meters ON meters.account_id = balances.account_id
      GROUP BY balances.account_id HAVING balances.unposted <> coalesce(sum(meters.unposted), 0)`,
    describe: ({ id, has, should }) =>
      `${usdc(has)} of ${id} are recorded as metered, but its meters say ${usdc(should)}`,
  },
  {
    violations: `
      SELECT meters.instance_id AS id, accrued AS has, coalesce(cost, 0) AS should
      FROM meters LEFT JOIN (${COST_OF_DAYS}) AS used
        ON used.instance_id = meters.instance_id
      WHERE accrued <> coalesce(cost, 0)`,
    describe: ({ id, has, should }) => `the meter of ${id} shows ${usdc(has)}, but its days cost ${usdc(should)}`,
  },
  {
    violations: `
      SELECT meters.instance_id AS id, unposted AS has, 0 AS should
      FROM meters LEFT JOIN instances ON instances.instance_id = meters.instance_id
      WHERE unposted > 0 AND coalesce(status, 'gone') <> 'running'`,
    describe: ({ id, has }) => `the meter of ${id} holds ${usdc(has)}, but the instance is not running`,
  },
  {
    violations: `
      SELECT coalesce(used.instance_id, posted.instance_id) AS id,
        coalesce(posted.cost, 0) + coalesce(unposted, 0) AS has, coalesce(used.cost, 0) AS should
      FROM (${COST_OF_DAYS}) AS used
      FULL JOIN (
        SELECT instance_id, sum(amount) AS cost
        FROM journal_entries JOIN postings ON postings.entry_id = journal_entries.entry_id
        WHERE type = 'usage' AND ledger_account = 'revenue' GROUP BY instance_id
      ) AS posted ON posted.instance_id = used.instance_id
      LEFT JOIN meters ON meters.instance_id = coalesce(used.instance_id, posted.instance_id)
      WHERE coalesce(posted.cost, 0) + coalesce(unposted, 0) <> coalesce(used.cost, 0)`,
    describe: ({ id, has, should }) =>
      `the days of ${id} cost ${usdc(should)}, but ${usdc(has)} were billed or are metered`,
  },
  {
    // A day may start with the fraction of a micro-USDC left over from the day before. A day before the first price is
    // checked with that price: somebody has set the clock back.
    violations: `
      WITH priced AS MATERIALIZED (
        SELECT day, coalesce((
          SELECT max(price_per_hour) FROM prices
          WHERE since < (unixepoch(day) + 86400) * 1000
            AND since >= coalesce((SELECT max(since) FROM prices WHERE since <= unixepoch(day) * 1000), 0)
        ), (SELECT price_per_hour FROM prices ORDER BY since LIMIT 1)) AS price
        FROM (SELECT DISTINCT day FROM usage_days)
      )
      SELECT instance_id || ' on ' || day AS id, cost AS has, running_ns / 3.6e12 * coalesce(price, 0) AS should
      FROM usage_days JOIN priced USING (day) WHERE cost > running_ns / 3.6e12 * coalesce(price, 0) + 1.001`,
    describe: ({ id, has, should }) =>
      `${id} cost ${usdc(has)}, more than the ${usdc(should)} of its time at that day's price`,
  },
  {
    violations: `
      SELECT account_id AS id, spent AS has, coalesce((
        SELECT sum(cost) FROM usage_days
        WHERE usage_days.account_id = balances.account_id AND day BETWEEN month || '-01' AND month || '-31'
      ), 0) AS should
      FROM balances WHERE month <> '' AND has <> should`,
    describe: ({ id, has, should }) =>
      `${id} is recorded as having spent ${usdc(has)} in its month, but its days cost ${usdc(should)}`,
  },
  {
    violations: `
      SELECT payments.payment_id AS id, payments.amount AS has,
        -coalesce(sum(postings.amount) FILTER (WHERE ledger_account GLOB 'clearing:*'), 0) AS should
      FROM payments
      LEFT JOIN journal_entries AS entry ON entry.transaction_id = payments.transaction_id AND type = 'top_up'
        AND entry.account_id = payments.account_id AND entry.chain_id = payments.chain_id
        AND entry.tx_hash = payments.tx_hash
      LEFT JOIN postings ON postings.entry_id = entry.entry_id
      GROUP BY payment_id HAVING has <> should`,
    describe: ({ id, has, should }) => `the payment ${id} is of ${usdc(has)}, but its top-up credits ${usdc(should)}`,
  },
  {
    violations: `
      SELECT transaction_id AS id, sum(amount) AS has, max(amount) AS should
      FROM payments GROUP BY transaction_id HAVING count(*) > 1`,
    describe: ({ id, has }) => `the top-up ${id} belongs to several payments, ${usdc(has)} together`,
  },
  {
    violations: `
      SELECT tx_hash || ' of chain ' || chain_id AS id, -total(cleared) AS has, total(paid) AS should
      FROM (
        SELECT chain_id, tx_hash, amount AS cleared, NULL AS paid
        FROM postings JOIN journal_entries USING (entry_id)
        WHERE ledger_account >= 'clearing:' AND ledger_account < 'clearing;'
        UNION ALL SELECT chain_id, tx_hash, NULL, amount FROM payments WHERE status <> 'reversed'
      ) GROUP BY chain_id, tx_hash HAVING has <> should`,
    describe: ({ id, has, should }) => `the transaction ${id} is credited ${usdc(has)}, but paid ${usdc(should)}`,
  },
  {
    violations: `
      SELECT transaction_id AS id, balance_after AS has, 0 AS should FROM journal_entries AS entry
      WHERE type = 'top_up' AND NOT EXISTS (
        SELECT 1 FROM payments WHERE payments.chain_id = entry.chain_id AND payments.tx_hash = entry.tx_hash
          AND payments.account_id = entry.account_id
      )`,
    describe: ({ id }) => `the top-up ${id} has no payment`,
  },
];

/**
 * Describes the first violation of a rule, with its id and amount; null if there is none. Reads one snapshot, so it may
 * run beside a server.
 */
export function findImbalance({ sqlite, readTogether }: Pick<Store, "sqlite" | "readTogether">): string | null {
  readTogether();
  for (const { violations, describe } of RULES) {
    const found = sqlite.query<Violation, []>(`${violations} LIMIT 1`).get();
    if (found) return describe(found);
  }
  return null;
}
