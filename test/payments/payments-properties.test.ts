import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openFoundation } from "../../src/app/foundation.ts";
import type { Finding, Transfer } from "../../src/chain/chain.ts";
import { type Address, NETWORKS } from "../../src/chain/networks.ts";
import { findImbalance } from "../../src/ledger/imbalance.ts";
import { createLog } from "../../src/lib/log.ts";
import { parseMoney } from "../../src/lib/money.ts";
import { meterQueries } from "../../src/meter/queries.ts";
import { advertiseNothing } from "../../src/payments/facilitator/advertiser.ts";
import { createHeads } from "../../src/payments/heads.ts";
import { createInvoices } from "../../src/payments/invoices.ts";
import { createPayments } from "../../src/payments/payments.ts";
import { handClock, SECOND } from "../lib/hand-clock.ts";
import { createRandom } from "../openapi/random.ts";

const STEPS = 20_000;
const CONFIRMATIONS = 4n;
const RECIPIENT: Address = "0x00000000000000000000000000000000000000A1";
const STRANGER: Address = "0x00000000000000000000000000000000000000A2";

/** A transaction of the simulated chain; not in the chain while its block is null. */
interface Played {
  txHash: string;
  block: bigint | null;
  transfers: Transfer[];
}

/** A chain with one node that answers as the test wants. */
function playChain() {
  const played = new Map<string, Played>();
  const state = { head: 100n, isSilent: false };
  return {
    state,
    all: () => [...played.values()],
    add(transfers: Omit<Transfer, "logIndex">[]): void {
      state.head += 1n;
      const txHash = `0x${(played.size + 1).toString(16).padStart(64, "0")}`;
      const placed = transfers.map((transfer, logIndex) => ({ ...transfer, logIndex }));
      played.set(txHash, { txHash, block: state.head, transfers: placed });
    },
    async head(): Promise<bigint | null> {
      return state.isSilent ? null : state.head;
    },
    async find(txHash: string): Promise<Finding> {
      if (state.isSilent) return { kind: "unavailable", detail: "" };
      const { block = null, transfers = [] } = played.get(txHash) ?? {};
      if (block === null) return { kind: "unknown" };
      const confirmations = state.head - block + 1n;
      const place = { blockNumber: block, blockHash: `0x${block}`, blockTimeMs: 0, confirmations };
      return { kind: "mined", mined: { ...place, finalized: confirmations > 500n, transfers } };
    },
  };
}

test(`after ${STEPS.toLocaleString("en")} payments, replays, thefts and reorganisations the books are correct, and each log is credited once`, async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "roost-payments-"));
  const clock = handClock();
  const { store, ledger, audit, accounts } = openFoundation({ dataDir }, clock);
  const chain = playChain();
  const balanceOf = (accountId: string) => ledger.accountBalance(accountId).balance;
  const chains = new Map([["base" as const, { ...chain, network: "base" as const, health: () => [] }]]);
  const common = { store, clock, recipient: RECIPIENT, networks: ["base" as const], chains: chains as never };
  const invoices = createInvoices({
    ...common,
    balanceOf,
    owedBy: (accountId) => ledger.accountBalance(accountId).owed,
    heads: createHeads(chains, { spacingMs: 0 }),
    minimumTopUp: 1_000_000n,
    advertise: advertiseNothing,
    topUpAt: () => "",
    isCutOff: () => false,
  });
  const payments = createPayments({
    ...common,
    log: await createLog("silent", "json"),
    ledger,
    audit,
    invoices,
    meter: { settle() {} },
    confirmations: { base: Number(CONFIRMATIONS), ethereum: 12, polygon: 128 },
  });
  const who = Array.from({ length: 5 }, (_, at) => {
    const input = { email: `p${at}@example.com`, name: "P", credit: 0n, note: "test" };
    return store.transaction(() => accounts.create(input)).accountId;
  });
  const random = createRandom(20_261_121, 0);
  const asked: bigint[] = [];
  let spent = 0n;
  const meters = meterQueries(store.db);

  const transferOf = (): Omit<Transfer, "logIndex"> => ({
    token: random.chance(0.9) ? NETWORKS.base.asset : STRANGER,
    from: STRANGER,
    to: random.chance(0.9) ? RECIPIENT : STRANGER,
    amount: asked.length > 0 && random.chance(0.9) ? random.pick(asked.slice(-20)) : BigInt(random.below(5_000_000)),
  });
  const step: Record<string, () => void | Promise<void>> = {
    async quote() {
      const missing = BigInt(random.below(3_000_000));
      const { body } = await invoices.quote(random.pick(who), { reason: "pay", missing });
      asked.push(parseMoney((body.x402 as { amount: string }).amount) ?? 0n);
    },
    pay: () => chain.add(Array.from({ length: 1 + random.below(3) }, transferOf)),
    mine() {
      chain.state.head += BigInt(1 + random.below(4));
    },
    async present() {
      const recent = chain.all().slice(-15);
      if (recent.length === 0) return;
      const header = JSON.stringify({ txHash: random.pick(recent).txHash, network: "base" });
      await Promise.all(Array.from({ length: 1 + random.below(3) }, () => payments.present(random.pick(who), header)));
    },
    reorganise() {
      const recent = chain.all().slice(-15);
      if (recent.length === 0) return;
      const hit = random.pick(recent);
      hit.block = hit.block === null || random.chance(0.3) ? chain.state.head : null;
    },
    async look() {
      clock.advance(10 * SECOND);
      await payments.tick();
    },
    fallSilent() {
      chain.state.isSilent = random.chance(0.5);
    },
    spend() {
      const accountId = random.pick(who);
      const amount = BigInt(random.below(Number(balanceOf(accountId)) + 1));
      if (amount === 0n) return;
      spent += amount;
      const instanceId = `inst of ${accountId}`;
      const used = { accountId, instanceId, day: "2026-11-21", runningNs: 3_600_000_000_000n, cost: amount };
      ledger.post({ type: "usage", accountId, amount: -amount, against: "revenue", usage: { instanceId, hour: 1 } });
      meters.addDay(used);
    },
  };
  const choices = [
    "quote",
    "pay",
    "mine",
    "mine",
    "present",
    "present",
    "present",
    "reorganise",
    "look",
    "fallSilent",
    "spend",
  ];

  const { sqlite } = store;
  const sum = (sql: string) => BigInt(sqlite.query<{ sum: number | null }, []>(sql).get()?.sum ?? 0);
  function check(): void {
    expect(findImbalance(store)).toBeNull();
    const standing = sum("SELECT sum(amount) AS sum FROM payments WHERE status <> 'reversed'");
    expect(sum("SELECT sum(balance - owed) AS sum FROM balances")).toBe(standing - spent);
  }

  // One transaction for all of it, its parts being savepoints, to spare the disk.
  sqlite.run("BEGIN IMMEDIATE");
  try {
    meters.notePrice(1_000_000_000n, 0);
    for (let at = 0; at < STEPS; at++) {
      await step[random.pick(choices)]?.();
      if (at % 500 === 0) check();
    }
    check();
    const reversed = sum("SELECT count(*) AS sum FROM payments WHERE status = 'reversed'");
    const again = sum("SELECT count(*) AS sum FROM journal_entries WHERE type = 'top_up'");
    const once = sum("SELECT count(*) AS sum FROM payments");
    // All of it happened: credits, reversals, debts, and new credits after a reversal.
    for (const count of [once, reversed, again - once, spent]) expect(count).toBeGreaterThan(0n);
    expect(sum("SELECT sum(owed) AS sum FROM balances")).toBeGreaterThan(0n);
  } finally {
    sqlite.run("ROLLBACK");
    store.close();
    rmSync(dataDir, { recursive: true, force: true });
  }
});
