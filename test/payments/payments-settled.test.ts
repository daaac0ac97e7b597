import { expect, test } from "bun:test";
import { createChain } from "../../src/chain/create-chain.ts";
import { createLog } from "../../src/lib/log.ts";
import { advertiseNothing } from "../../src/payments/facilitator/advertiser.ts";
import { createHeads } from "../../src/payments/heads.ts";
import { createInvoices } from "../../src/payments/invoices.ts";
import { createPayments, type SettledTransfer } from "../../src/payments/payments.ts";
import { balanceOf, booksOf, launch, type Paying, startPaying, statusesOf } from "./paying.ts";

/** Only ends what hangs. */
const deadlineMs = 60_000;
const NO_INVOICE = "the transfer's amount matches no open invoice of this account";

/** The rules of payments on a server's books and chain, to be called as a facilitator's client calls them. */
async function paymentsOf({ server, anvil, recipient, clock }: Paying) {
  const { store, ledger, audit } = server.foundation;
  const chains = new Map([["base" as const, createChain({ network: "base", urls: [anvil.url], clock, deadlineMs })]]);
  const balanceOf = (accountId: string) => ledger.accountBalance(accountId).balance;
  const told = {
    owedBy: () => 0n,
    minimumTopUp: 1_000_000n,
    topUpAt: () => "",
    isCutOff: () => false,
    advertise: advertiseNothing,
  };
  const networks = ["base" as const];
  const parts = { store, clock, balanceOf, recipient, networks, chains, ...told };
  return createPayments({
    ...parts,
    log: await createLog("silent", "json"),
    ledger,
    audit,
    meter: { settle() {} },
    invoices: createInvoices({ ...parts, heads: createHeads(chains, { timeoutMs: deadlineMs }) }),
    confirmations: { base: 10, ethereum: 12, polygon: 128 },
    deadlineMs,
  });
}

async function settledTransfer(paying: Paying, accountId: string): Promise<SettledTransfer> {
  const [payer] = paying.anvil.accounts;
  const txHash = await paying.pay("1.000000", 1);
  return { accountId, network: "base", txHash, payer: payer?.address ?? "", amount: 1_000_000n };
}

test("what a facilitator settled is credited in its first block, once, without an invoice", async () => {
  await using paying = await startPaying();
  const [person, other] = [await paying.someone(), await paying.someone()];
  const { creditSettled } = await paymentsOf(paying);
  const settled = await settledTransfer(paying, person.accountId);
  const answers = await Promise.all([creditSettled(settled), creditSettled(settled)]);
  expect(answers.map(({ kind }) => kind)).toEqual(["credited", "credited"]);
  expect(await creditSettled(settled)).toEqual({ kind: "known" });
  expect(await creditSettled({ ...settled, accountId: other.accountId })).toEqual({
    kind: "refused",
    reason: NO_INVOICE,
  });
  expect([await balanceOf(person), await balanceOf(other)]).toEqual(["1.000000", "0.000000"]);
  expect(booksOf(paying, person)).toEqual({ all: 0n, customer: 1_000_000n, owed: 0n });
});

test.each([
  ["payer", { payer: "0x00000000000000000000000000000000000000A2" }],
  ["amount", { amount: 999_999n }],
])("a settlement with another %s than the chain shows is refused", async (_, wrong) => {
  await using paying = await startPaying();
  const person = await paying.someone();
  const { creditSettled } = await paymentsOf(paying);
  const settled = { ...(await settledTransfer(paying, person.accountId)), ...wrong };
  expect(await creditSettled(settled)).toEqual({ kind: "refused", reason: NO_INVOICE });
  expect(await balanceOf(person)).toBe("0.000000");
  expect(statusesOf(paying, "claims")).toEqual(["refused"]);
});

test("if one transaction settles the signatures of two accounts, both are credited", async () => {
  await using paying = await startPaying();
  const [person, other] = [await paying.someone(), await paying.someone()];
  const { creditSettled } = await paymentsOf(paying);
  const transfer = { to: paying.recipient, amount: 1_000_000n };
  const txHash = await paying.anvil.transferMany([transfer, transfer]);
  const settled = { ...(await settledTransfer(paying, person.accountId)), txHash };
  expect((await creditSettled(settled)).kind).toBe("credited");
  const others = { ...settled, accountId: other.accountId };
  expect((await creditSettled(others)).kind).toBe("credited");
  expect([(await creditSettled(settled)).kind, (await creditSettled(others)).kind]).toEqual(["known", "known"]);
  expect([await balanceOf(person), await balanceOf(other)]).toEqual(["1.000000", "1.000000"]);
});

test("while a transaction is looked for on behalf of one account, another's settlement in it is put off, not refused", async () => {
  await using paying = await startPaying();
  const [person, other] = [await paying.someone(), await paying.someone()];
  const { creditSettled } = await paymentsOf(paying);
  const transfer = { to: paying.recipient, amount: 1_000_000n };
  const txHash = await paying.anvil.transferMany([transfer, transfer]);
  const settled = { ...(await settledTransfer(paying, person.accountId)), txHash };
  const first = creditSettled({ ...settled, payer: paying.anvil.accounts[1]?.address ?? "" });
  expect(await creditSettled({ ...settled, accountId: other.accountId })).toMatchObject({
    kind: "refused",
    retryAfterSeconds: 5,
  });
  expect((await first).kind).toBe("refused");
  expect((await creditSettled({ ...settled, accountId: other.accountId })).kind).toBe("credited");
});

test("for another account, the hash of a settlement is a hash without an invoice", async () => {
  await using paying = await startPaying();
  const [person, thief] = [await paying.someone(), await paying.someone()];
  const { creditSettled } = await paymentsOf(paying);
  const settled = await settledTransfer(paying, person.accountId);
  expect((await launch(thief, settled.txHash)).body.error.message).toBe(NO_INVOICE);
  expect((await creditSettled(settled)).kind).toBe("credited");
  expect((await launch(thief, settled.txHash)).body.error.message).toBe(NO_INVOICE);
  expect([await balanceOf(person), await balanceOf(thief)]).toEqual(["1.000000", "0.000000"]);
});

test("a settlement that the nodes do not show within five seconds is credited when they do", async () => {
  await using paying = await startPaying();
  const person = await paying.someone();
  const { creditSettled } = await paymentsOf(paying);
  const settled = await settledTransfer(paying, person.accountId);
  const raw = await paying.anvil.rpc("eth_getRawTransactionByHash", [settled.txHash]);
  await paying.anvil.reorg(1);
  const answer = await creditSettled(settled);
  expect(answer.kind).toBe("refused");
  expect(statusesOf(paying, "claims")).toEqual(["pending"]);
  await paying.anvil.rpc("eth_sendRawTransaction", [raw]);
  await paying.until(async () => (await balanceOf(person)) === "1.000000");
});
