import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Foundation, openFoundation } from "../../src/app/foundation.ts";
import type { NetworkName } from "../../src/chain/networks.ts";
import type { AppError } from "../../src/lib/app-error.ts";
import { parseMoney } from "../../src/lib/money.ts";
import { advertiseNothing } from "../../src/payments/facilitator/advertiser.ts";
import { createHeads } from "../../src/payments/heads.ts";
import { createInvoices, type Wanted } from "../../src/payments/invoices.ts";
import { explainAmount } from "../../src/payments/quote.ts";
import { DAY, HOUR, handClock } from "../lib/hand-clock.ts";

interface Quote {
  amount: string;
  network: string;
  invoiceId: string;
  options: { network: string; amount: string }[];
}

const quoteIn = (error: AppError): Quote => error.body.x402 as Quote;
const micros = (amount: string): bigint => parseMoney(amount) ?? 0n;
const MINIMUM = 1_000_000n;
type Heads = Partial<Record<NetworkName, () => Promise<bigint | null>>>;

/** Invoices on a database of their own, with a clock that the test moves. */
function openInvoices(heads: Heads = { base: async () => 7n, polygon: async () => 9n }, cutOff = false) {
  const dataDir = mkdtempSync(join(tmpdir(), "roost-invoices-"));
  const clock = handClock();
  const foundation: Foundation = openFoundation({ dataDir }, clock);
  const { store, accounts } = foundation;
  const balances = new Map<string, bigint>();
  const invoices = createInvoices({
    store,
    clock,
    balanceOf: (accountId) => balances.get(accountId) ?? 0n,
    owedBy: () => 0n,
    recipient: "0x00000000000000000000000000000000000000A1",
    networks: Object.keys(heads) as NetworkName[],
    heads: createHeads(new Map(Object.entries(heads).map(([name, head]) => [name as NetworkName, { head }])), {
      spacingMs: 0,
    }),
    minimumTopUp: MINIMUM,
    topUpAt: () => "https://roost.example.org",
    isCutOff: () => cutOff,
    advertise: advertiseNothing,
  });
  let made = 0;
  return {
    clock,
    invoices,
    sqlite: store.sqlite,
    account(balance = 0n): string {
      const email = `payer${++made}@example.com`;
      const { accountId } = store.transaction(() =>
        accounts.create({ email, name: "Payer", credit: 0n, note: "test" }),
      );
      balances.set(accountId, balance);
      return accountId;
    },
    quote: async (accountId: string, wanted: Partial<Wanted> = {}) =>
      quoteIn(await invoices.quote(accountId, { reason: "pay", ...wanted })),
    [Symbol.dispose]() {
      store.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

test("an amount is what is needed, to a cent, plus 1 to 9,999 micro-USDC that nobody else has", async () => {
  using at = openInvoices();
  const seen = new Set<string>();
  for (let nth = 0; nth < 300; nth++) {
    const { amount, options } = await at.quote(at.account(), { missing: BigInt(nth) * 9_137n });
    const least = BigInt(nth) * 9_137n > MINIMUM ? BigInt(nth) * 9_137n : MINIMUM;
    const cents = ((least + 9_999n) / 10_000n) * 10_000n;
    expect(Number(micros(amount) - cents)).toBeWithin(1, 10_000);
    expect(options.map((option) => option.amount)).toEqual([amount, amount]);
    seen.add(amount);
  }
  expect(seen.size).toBe(300);
});

test("after a cent whose amounts are all taken comes the next", async () => {
  using at = openInvoices();
  const taken = at.account();
  const insert = at.sqlite.prepare(
    "INSERT INTO invoices (invoice_id, account_id, amount, status, created_at, expires_at) VALUES (?, ?, ?, 'expired', ?, 0)",
  );
  at.sqlite.transaction(() => {
    for (let extra = 1; extra < 10_000; extra++) insert.run(`inv_${extra}`, taken, 1_000_000 + extra, at.clock.now());
  })();
  expect((await at.quote(at.account())).amount).toStartWith("1.01");
  at.clock.advance(30 * DAY);
  expect((await at.quote(at.account())).amount).toStartWith("1.00");
});

test("an open invoice is quoted again for what it covers, but not for less than half of it", async () => {
  using at = openInvoices();
  const payer = at.account();
  const large = await at.quote(payer, { missing: 4_000_000n });
  expect((await at.quote(payer, { missing: 2_000_000n })).invoiceId).toBe(large.invoiceId);
  expect((await at.quote(payer, { missing: 4_000_001n, network: "polygon" })).invoiceId).toBe(large.invoiceId);
  const small = await at.quote(payer, { missing: 1_500_000n });
  expect(small.invoiceId).not.toBe(large.invoiceId);
  expect((await at.quote(payer)).invoiceId).toBe(small.invoiceId);
  expect((await at.quote(payer, { invoiceId: large.invoiceId })).invoiceId).toBe(large.invoiceId);
});

test("a top-up is quoted for exactly the cents that it asked for", async () => {
  using at = openInvoices();
  const payer = at.account();
  const quote = await at.quote(payer, { amount: 3_000_000n });
  expect(quote.amount).toStartWith("3.00");
  expect((await at.quote(payer, { amount: 2_990_001n })).invoiceId).toBe(quote.invoiceId);
  expect((await at.quote(payer, { amount: 2_990_000n })).amount).toStartWith("2.99");
  expect((await at.quote(payer, { amount: 10n })).amount).toStartWith("1.00");
});

test("two requests at once are quoted the same invoice", async () => {
  using at = openInvoices();
  const payer = at.account();
  const quotes = await Promise.all(Array.from({ length: 10 }, () => at.quote(payer)));
  expect(new Set(quotes.map(({ invoiceId }) => invoiceId)).size).toBe(1);
  expect(at.invoices.countOpen()).toBe(1);
});

test("no account has more than three open invoices, and the one that fits least is replaced", async () => {
  using at = openInvoices();
  const payer = at.account();
  const amounts = [1_000_000n, 10_000_000n, 50_000_000n, 20_000_000n];
  const quotes: Quote[] = [];
  for (const amount of amounts) quotes.push(await at.quote(payer, { amount }));
  expect(at.invoices.countOpen()).toBe(3);
  const open = at.sqlite.query<{ id: string }, []>("SELECT invoice_id AS id FROM invoices WHERE status = 'open'").all();
  // 50 is farther from 20 than 1 is.
  expect(open.map(({ id }) => id).sort()).toEqual([0, 1, 3].map((nth) => quotes[nth]?.invoiceId ?? "").sort());
  expect(at.invoices.withAmount(micros(quotes[2]?.amount ?? ""))).toHaveLength(1);
});

test("the hundred and first new quote of an account within an hour is refused", async () => {
  using at = openInvoices();
  const payer = at.account();
  for (let nth = 0n; nth < 100n; nth++) await at.quote(payer, { amount: MINIMUM + nth * 10_000n });
  await expect(at.quote(payer, { amount: 9_000_000n })).rejects.toMatchObject({ code: "rate_limited" });
  expect((await at.quote(payer, { amount: MINIMUM + 99n * 10_000n })).amount).toStartWith("1.99");
  at.clock.advance(HOUR);
  expect((await at.quote(payer, { amount: 9_000_000n })).amount).toStartWith("9.00");
});

test("an invoice is open for a day; its amount belongs to its account for 30 days and is then free", async () => {
  using at = openInvoices();
  const payer = at.account();
  const { amount, invoiceId } = await at.quote(payer);
  at.clock.advance(DAY - 1);
  expect((await at.quote(payer)).invoiceId).toBe(invoiceId);
  at.clock.advance(1);
  expect((await at.quote(payer)).invoiceId).not.toBe(invoiceId);
  at.invoices.expire();
  expect(at.invoices.withAmount(micros(amount)).map((invoice) => invoice.status)).toEqual(["expired"]);
  at.clock.advance(29 * DAY - 1);
  expect(at.invoices.withAmount(micros(amount))).toHaveLength(1);
  at.invoices.prune(10);
  expect(at.invoices.withAmount(micros(amount))).toHaveLength(1);
  at.clock.advance(1);
  expect(at.invoices.withAmount(micros(amount))).toEqual([]);
  at.invoices.prune(10);
  expect(at.sqlite.query("SELECT 1 FROM invoices WHERE invoice_id = ?").all(invoiceId)).toEqual([]);
});

test("the heads of all networks are recorded, and a node that hangs does not keep a quote back", async () => {
  using at = openInvoices({ base: async () => 7n, ethereum: () => new Promise(() => {}), polygon: async () => null });
  const { invoiceId } = await at.quote(at.account(), { network: "ethereum" });
  const heads = at.sqlite.query<{ heads: string }, [string]>("SELECT heads FROM invoices WHERE invoice_id = ?");
  expect(heads.get(invoiceId)?.heads).toBe('{"base":"7"}');
});

test("the network that was asked for comes first, else the first configured one", async () => {
  using at = openInvoices();
  const payer = at.account();
  expect((await at.quote(payer)).network).toBe("base");
  const { network, options } = await at.quote(payer, { network: "polygon" });
  expect([network, options.map((option) => option.network)]).toEqual(["polygon", ["polygon", "base"]]);
});

test("a sufficient balance is asked for nothing, unless a payment was refused", async () => {
  using at = openInvoices();
  const rich = at.account(500_000n);
  await at.invoices.requireBalance(rich, 500_000n, null);
  await at.invoices.requireBalance(rich, 500_000n, { kind: "known" });
  expect(at.invoices.countOpen()).toBe(0);
  const refused = at.invoices.requireBalance(rich, 500_000n, { kind: "refused", reason: "no", retryAfterSeconds: 4 });
  await expect(refused).rejects.toMatchObject({
    code: "payment_required",
    message: "no",
    headers: { "Retry-After": "4" },
  });
  await expect(at.invoices.requireBalance(at.account(499_999n), 500_000n, { kind: "known" })).rejects.toMatchObject({
    message: expect.stringMatching(
      /^the balance is 0\.499999 USDC and this needs 0\.500000: pay exactly 1\.00\d{4} USDC, as described in x402, and repeat /,
    ),
  });
});

test("a balance that is too low is answered with what a program and a person can do", async () => {
  for (const cutOff of [false, true]) {
    using at = openInvoices(undefined, cutOff);
    const { message, body } = (await at.invoices
      .requireBalance(at.account(), 500_000n, null)
      .catch((error) => error)) as AppError;
    const { amount } = body.x402 as Quote;
    expect(message).toContain(
      `pay exactly ${amount} USDC, as described in x402, and repeat the request with the transaction`,
    );
    expect(message).toContain(
      `The amount is 1.00, the minimum top-up here, and 0.00${amount.slice(-4)}`.replace(/0+$/, ""),
    );
    expect(message).toEndWith("A person tops up at https://roost.example.org or asks the host's operator for credit");
    expect(message.includes("No network can be reached from here right now")).toBe(cutOff);
  }
});

const MARK = "and 0.005715 that identifies the payment as this account's";
test.each<[amount: bigint, asked: bigint, missing: bigint, explained: string]>([
  [1_005_715n, 500_000n, 0n, `1.00, the minimum top-up here (0.50 was asked for), ${MARK}`],
  [1_005_715n, 0n, 500_000n, `1.00, the minimum top-up here, ${MARK}`],
  [5_005_715n, 5_000_000n, 0n, `5.00, as asked for, ${MARK}`],
  [5_015_715n, 5_001_000n, 0n, `5.01, the 5.001 asked for, to a cent, ${MARK}`],
  [3_465_715n, 0n, 3_456_789n, `3.46, what is missing, to a cent, ${MARK}`],
  [1_805_715n, 0n, 1_500_000n, `1.80, the amount of an open quote of this account, ${MARK}`],
])("%p where %p is asked for and %p missing is explained", (amount, asked, missing, explained) => {
  expect(explainAmount(amount, { asked, missing, minimumTopUp: MINIMUM })).toBe(explained);
});
