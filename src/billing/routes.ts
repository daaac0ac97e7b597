import { z } from "zod";
import { NETWORK_NAMES, NETWORKS, type NetworkName } from "../chain/networks.ts";
import { Reply } from "../http/answer.ts";
import { money } from "../http/fields.ts";
import { pageOf, pageQuery, toPage } from "../http/paging.ts";
import { queryOf } from "../http/request.ts";
import { type Route, route } from "../http/route.ts";
import { AppError, notFound } from "../lib/app-error.ts";
import { type Clock, isoTime, isoTimeOrNull } from "../lib/clock.ts";
import { changeForm, currencyForm, idForm, moneyForm } from "../lib/forms.ts";
import { isId } from "../lib/id.ts";
import { CURRENCY, formatMoney, type Micros, parseMoney } from "../lib/money.ts";
import type { Db } from "../storage/store.ts";
import { dayOf } from "./calendar.ts";
import type { Meter } from "./meter/meter.ts";
import type { DayUsage } from "./meter/meter-table.ts";
import type { Invoices, Wanted } from "./payments/invoices.ts";
import type { Payment, Refusal } from "./payments/payment.ts";
import { placeText, readPlace, readStatement, type Transaction } from "./statement.ts";
import { ENTRY_TYPES } from "./table.ts";
import { type Days, hasHad, readUsage, readUsageOf } from "./usage.ts";

const BillingRecord = z.object({
  balance: moneyForm("9.970000"),
  currency: currencyForm,
  pricePerHour: moneyForm("0.030000"),
  minimumLaunchBalance: moneyForm("0.500000").describe(
    "What an account must have for an instance to be created or started",
  ),
  minimumTopUp: moneyForm("1.000000").describe("A quote is for at least this, whatever is asked for"),
  runningInstances: z.int(),
  estimatedEmptyAt: z.iso.datetime().nullable(),
  networks: z.array(z.string()),
});

const UsageRecord = z.object({
  instanceId: idForm("inst"),
  day: z.iso.date(),
  seconds: z.int(),
  cost: moneyForm("0.720000"),
  currency: currencyForm,
});

const TransactionRecord = z.object({
  transactionId: idForm("txn"),
  type: z.enum(ENTRY_TYPES),
  amount: changeForm,
  balanceAfter: changeForm,
  instanceId: idForm("inst").nullable(),
  txHash: z.string().nullable(),
  network: z.string().nullable(),
  createdAt: z.iso.datetime(),
});

export interface BillingRouteParts {
  db: Db;
  clock: Clock;
  meter: Pick<Meter, "balanceOf" | "runningInstances" | "emptyAt" | "unread">;
  pricePerHour: Micros;
  minimumLaunchBalance: Micros;
  minimumTopUp: Micros;
  /** The first is the default. */
  networks: readonly NetworkName[];
  /** Takes the payment that the request carries, if it does. Throws `invalid_request` for a header that is none. */
  takePayment(accountId: string, request: Request): Promise<Payment | null>;
  quote: Invoices["quote"];
}

const DAY_MS = 86_400_000;
const DEFAULT_DAYS = 30;
const day = z.iso.date({ error: "a day such as 2026-11-21" }).optional();
const LARGEST_TOP_UP = "1000000.00";

export function billingRoutes(parts: BillingRouteParts): Route[] {
  const { db, clock, meter, networks, takePayment, quote } = parts;
  const amount = money
    .refine((text) => (parseMoney(text) ?? 0n) > 0n, { error: "an amount above zero" })
    .refine((text) => (parseMoney(text) ?? 0n) <= (parseMoney(LARGEST_TOP_UP) ?? 0n), {
      error: `at most ${LARGEST_TOP_UP}`,
    });
  const topUp = z.object({
    amount: amount
      .describe(
        "What is to be added: the quote is for this to a cent, at least the minimum top-up, and its mark (see Quote)",
      )
      .optional(),
    network: z.enum(networks, { error: `one of ${networks.join(", ")}` }).optional(),
  });

  /** The row and what the meter has not yet added to it. */
  function showUsage(row: DayUsage): z.infer<typeof UsageRecord> {
    const unread = meter.unread(row.instanceId);
    const more = unread?.day === row.day ? unread : { runningNs: 0n, cost: 0n };
    return {
      instanceId: row.instanceId,
      day: row.day,
      seconds: Number((row.runningNs + more.runningNs) / 1_000_000_000n),
      cost: formatMoney(row.cost + more.cost),
      currency: CURRENCY,
    };
  }

  return [
    route({
      method: "GET",
      path: "/v1/billing",
      summary: "The balance, live, and what things cost",
      access: "account-read",
      bound: "record",
      answer: BillingRecord,
      handle: ({ caller: { accountId } }) => ({
        balance: formatMoney(meter.balanceOf(accountId)),
        currency: CURRENCY,
        pricePerHour: formatMoney(parts.pricePerHour),
        minimumLaunchBalance: formatMoney(parts.minimumLaunchBalance),
        minimumTopUp: formatMoney(parts.minimumTopUp),
        runningInstances: meter.runningInstances(accountId),
        estimatedEmptyAt: isoTimeOrNull(tellable(meter.emptyAt(accountId))),
        networks,
      }),
    }),
    route({
      method: "GET",
      path: "/v1/billing/usage",
      summary: "What each instance ran and cost on each day, newest day first",
      access: "account-read",
      bound: "page",
      query: pageQuery.extend({ from: day, to: day, instanceId: idForm("inst").optional() }),
      answer: pageOf(UsageRecord),
      errors: ["not_found"],
      handle({ caller: { accountId }, request, query, startPage }) {
        const { instanceId } = queryOf(request);
        const isOwn = instanceId === undefined || (isId("inst", instanceId) && hasHad(db, accountId, instanceId));
        if (!isOwn) throw notFound("instance");
        const { from, to, ...page } = query();
        const days = rangeOf(from, to, clock.now());
        const start = startPage(`usage ${accountId} ${instanceId} ${from} ${to}`, page);
        const behind = start.position === null ? null : usagePlace(start.position);
        const limit = start.limit + 1;
        const rows =
          instanceId === undefined
            ? readUsage(db, accountId, days, behind, limit)
            : readUsageOf(db, accountId, instanceId, days, behind, limit);
        return toPage(start, rows, (row) => `${row.day} ${row.instanceId}`, showUsage);
      },
    }),
    route({
      method: "GET",
      path: "/v1/billing/transactions",
      summary: "The account's ledger entries, newest first; usage summed by instance and hour",
      access: "account-read",
      bound: "page",
      query: pageQuery,
      answer: pageOf(TransactionRecord),
      handle({ caller: { accountId }, query, startPage }) {
        const start = startPage(`transactions ${accountId}`, query());
        const from = start.position === null ? null : readPlace(start.position);
        if (start.position !== null && from === null) throw noCursor();
        const lines = readStatement(db, accountId, from, start.limit + 1);
        return toPage(start, lines, ({ place }) => placeText(place), showTransaction);
      },
    }),
    route({
      method: "POST",
      path: "/v1/billing/top-up",
      summary: "Ask what to pay, and show the payment",
      access: "account",
      bound: "outside",
      body: topUp,
      status: 201,
      answer: z.object({
        transactionId: idForm("txn"),
        amount: moneyForm("1.005715"),
        balance: moneyForm("1.005715"),
        currency: currencyForm,
      }),
      errors: ["payment_required"],
      async handle({ caller: { accountId }, request, body, once }) {
        const payment = await takePayment(accountId, request);
        const input = await body();
        if (payment?.kind !== "credited") {
          const amount = parseMoney(input.amount ?? "") ?? undefined;
          throw await quote(accountId, { amount, network: input.network, ...reasonFor(payment) });
        }
        const { transactionId, amount, headers } = payment;
        return once(() => {
          const balance = formatMoney(meter.balanceOf(accountId));
          return new Reply(201, { transactionId, amount: formatMoney(amount), balance, currency: CURRENCY }, headers);
        });
      },
    }),
  ];
}

/** Why a top-up is answered with a quote. */
function reasonFor(payment: { kind: "known" } | Refusal | null): Pick<Wanted, "reason" | "tellHow"> & Partial<Refusal> {
  if (payment === null) return { reason: "this is the quote for a top-up", tellHow: true };
  if (payment.kind === "known") return { reason: "already credited: this payment was credited to this account before" };
  return payment;
}

const LAST_DATE_MS = Date.UTC(9999, 11, 31);
/** A time that a date can tell; null for one in ages. */
const tellable = (ms: number | null): number | null => (ms !== null && ms <= LAST_DATE_MS ? ms : null);

const noCursor = (): AppError => new AppError("invalid_request", "after: expected a nextCursor of this list");

function usagePlace(position: string): { day: string; instanceId: string } {
  const [day, instanceId] = position.split(" ");
  if (day === undefined || instanceId === undefined) throw noCursor();
  return { day, instanceId };
}

/** The days that are asked for. Throws `invalid_request` for an end before its beginning. */
function rangeOf(from: string | undefined, to: string | undefined, nowMs: number): Days {
  const today = dayOf(nowMs);
  const last = to ?? (from !== undefined && from > today ? from : today);
  const first = from ?? dayOf(Date.parse(last) - (DEFAULT_DAYS - 1) * DAY_MS);
  if (first > last) throw new AppError("invalid_request", "to: expected a day that is not before from");
  return { from: first, to: last };
}

function showTransaction(line: Transaction): z.infer<typeof TransactionRecord> {
  const network = NETWORK_NAMES.find((name) => NETWORKS[name].chainId === line.chainId);
  return {
    transactionId: line.transactionId,
    type: line.type,
    amount: formatMoney(line.amount),
    balanceAfter: formatMoney(line.balanceAfter),
    instanceId: line.instanceId,
    txHash: line.txHash,
    network: network ?? null,
    createdAt: isoTime(line.createdAt),
  };
}
