import { z } from "zod";
import { NETWORK_NAMES, NETWORKS } from "../chain/networks.ts";
import { pageOf, pageQuery, toPage } from "../http/paging.ts";
import { type Route, route } from "../http/route.ts";
import { AppError } from "../lib/app-error.ts";
import { isoTime } from "../lib/clock.ts";
import { changeForm, idForm } from "../lib/forms.ts";
import { formatMoney } from "../lib/money.ts";
import { record } from "../lib/record.ts";
import type { Db } from "../storage/store.ts";
import { ENTRY_TYPES } from "./schema.ts";
import { decodeCursor, encodeCursor, readStatement, type Transaction } from "./statement.ts";

const TransactionRecord = record("Transaction", () =>
  z.object({
    transactionId: idForm("txn"),
    type: z.enum(ENTRY_TYPES),
    amount: changeForm,
    balanceAfter: changeForm,
    instanceId: idForm("inst").nullable(),
    txHash: z.string().nullable(),
    network: z.string().nullable(),
    createdAt: z.iso.datetime(),
  }),
);

export function ledgerRoutes({ db }: { db: Db }): Route[] {
  return [
    route({
      method: "GET",
      path: "/v1/billing/transactions",
      name: "listTransactions",
      tag: "billing",
      summary: "The account's ledger entries, newest first; usage summed by instance and hour",
      access: "account-read",
      bound: "page",
      query: pageQuery,
      answer: pageOf(TransactionRecord),
      handle({ caller: { accountId }, query, startPage }) {
        const start = startPage(`transactions ${accountId}`, query());
        const from = start.position === null ? null : decodeCursor(start.position);
        if (start.position !== null && from === null)
          throw new AppError("invalid_request", "after: expected a nextCursor of this list");
        const lines = readStatement(db, accountId, from, start.limit + 1);
        return toPage(start, lines, ({ cursor }) => encodeCursor(cursor), showTransaction);
      },
    }),
  ];
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
