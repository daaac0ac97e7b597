import { z } from "zod";
import type { NetworkName } from "../chain/networks.ts";
import { Reply } from "../http/answer.ts";
import { money } from "../http/fields.ts";
import { type Route, route } from "../http/route.ts";
import { isoTimeOrNull } from "../lib/clock.ts";
import { currencyForm, idForm, moneyForm } from "../lib/forms.ts";
import { CURRENCY, formatMoney, type Micros, parseMoney } from "../lib/money.ts";
import { record } from "../lib/record.ts";
import type { Meter } from "../meter/meter.ts";
import type { Invoices, Wanted } from "./invoices.ts";
import type { Payment, Refusal } from "./payment.ts";

const BillingRecord = record("Billing", () =>
  z.object({
    balance: moneyForm("9.970000"),
    owed: moneyForm("0.000000").describe("What is taken of the next payment, since an earlier one was reversed"),
    currency: currencyForm,
    pricePerHour: moneyForm("0.030000"),
    minimumLaunchBalance: moneyForm("0.500000").describe("The balance needed to create or start an instance"),
    minimumTopUp: moneyForm("1.000000").describe("A quote is for at least this"),
    runningInstances: z.int(),
    estimatedEmptyAt: z.iso.datetime().nullable(),
    networks: z.array(z.string()),
  }),
);

export interface BillingRouteParts {
  meter: Pick<Meter, "balanceOf" | "owedBy" | "runningInstances" | "emptyAt">;
  pricePerHour: Micros;
  minimumLaunchBalance: Micros;
  minimumTopUp: Micros;
  /** The first is the default. */
  networks: readonly NetworkName[];
  /** Takes the request's payment, if it has one. Throws `invalid_request` for a malformed header. */
  takePayment(accountId: string, request: Request, requestId: string): Promise<Payment | null>;
  quote: Invoices["quote"];
}

const MAX_TOP_UP = "1000000.00";

export function billingRoutes(parts: BillingRouteParts): Route[] {
  const { meter, networks, takePayment, quote } = parts;
  const amount = money
    .refine((text) => (parseMoney(text) ?? 0n) > 0n, { error: "an amount above zero" })
    .refine((text) => (parseMoney(text) ?? 0n) <= (parseMoney(MAX_TOP_UP) ?? 0n), {
      error: `at most ${MAX_TOP_UP}`,
    });
  const topUp = z.object({
    amount: amount
      .describe(
        "The amount to add: the quote is for this to a cent, at least the minimum top-up, and its mark (see Quote)",
      )
      .optional(),
    network: z.enum(networks, { error: `one of ${networks.join(", ")}` }).optional(),
  });

  return [
    route({
      method: "GET",
      path: "/v1/billing",
      name: "getBilling",
      tag: "billing",
      summary: "The current balance, and what things cost",
      access: "account-read",
      bound: "record",
      answer: BillingRecord,
      handle: ({ caller: { accountId } }) => ({
        balance: formatMoney(meter.balanceOf(accountId)),
        owed: formatMoney(meter.owedBy(accountId)),
        currency: CURRENCY,
        pricePerHour: formatMoney(parts.pricePerHour),
        minimumLaunchBalance: formatMoney(parts.minimumLaunchBalance),
        minimumTopUp: formatMoney(parts.minimumTopUp),
        runningInstances: meter.runningInstances(accountId),
        estimatedEmptyAt: isoTimeOrNull(meter.emptyAt(accountId)),
        networks,
      }),
    }),
    route({
      method: "POST",
      path: "/v1/billing/top-up",
      name: "topUp",
      tag: "billing",
      summary: "Ask for a quote, or present the payment",
      description:
        "Without a payment the answer is 402, which says what to pay and where. With one in `X-PAYMENT` it is 402 until the transfer has enough confirmations, then 201.",
      access: "account",
      bound: "outside",
      body: topUp,
      example: { amount: "5.00" },
      status: 201,
      answer: z.object({
        transactionId: idForm("txn"),
        amount: moneyForm("1.005715"),
        balance: moneyForm("1.005715"),
        currency: currencyForm,
      }),
      errors: ["payment_required"],
      commit: "shared",
      async handle({ caller: { accountId }, request, requestId, body, commit }) {
        const payment = await takePayment(accountId, request, requestId);
        const input = await body();
        if (payment?.kind !== "credited") {
          const amount = parseMoney(input.amount ?? "") ?? undefined;
          throw await quote(accountId, { amount, network: input.network, ...reasonFor(payment) });
        }
        const { transactionId, amount, headers } = payment;
        return commit(() => {
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
