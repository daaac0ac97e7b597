import type { Hex } from "viem";
import { createLedger } from "../../src/billing/ledger.ts";
import type { NetworkName } from "../../src/chain/networks.ts";
import type { Clock } from "../../src/lib/clock.ts";
import { parseMoney } from "../../src/lib/money.ts";
import { type Anvil, startAnvil } from "../support/anvil.ts";
import { type Answer, type Appliance, type Person, startAppliance } from "../support/appliance.ts";
import { type RpcProxy, startRpcProxy } from "../support/rpc-proxy.ts";

/** Where nobody listens: a network that nothing is to be asked of. */
const NOBODY = "http://127.0.0.1:9";

/** An appliance that takes payments on a chain of its own. Instances cost nothing, so that balances are exact. */
export interface Paying extends AsyncDisposable {
  anvil: Anvil;
  /** In front of the node; the appliance asks this one. */
  proxy: RpcProxy;
  appliance: Appliance;
  network: NetworkName;
  /** Signs up somebody with this credit. */
  someone(credit?: string): Promise<Person>;
  /** Transfers exactly this much, as a quote writes it, and buries it as deep as is asked for. */
  pay(amount: string, depth?: number): Promise<Hex>;
}

export async function startPaying({
  network = "base",
  settings = {},
  clock,
  confirmations = 10,
}: {
  network?: NetworkName;
  settings?: Record<string, string>;
  clock?: Clock;
  confirmations?: number;
} = {}): Promise<Paying> {
  const anvil = await startAnvil({ network });
  const proxy = startRpcProxy(anvil.url);
  const appliance = await startAppliance(
    {
      ROOST_NETWORKS: network,
      ROOST_BASE_RPC_URL: NOBODY,
      ROOST_ETHEREUM_RPC_URL: NOBODY,
      ROOST_POLYGON_RPC_URL: NOBODY,
      [`ROOST_${network.toUpperCase()}_RPC_URL`]: proxy.url,
      [`ROOST_${network.toUpperCase()}_CONFIRMATIONS`]: String(confirmations),
      ROOST_PRICE_PER_HOUR: "0",
      ...settings,
    },
    clock ? { clock } : {},
  );
  const recipient = await recipientOf(appliance);
  return {
    anvil,
    proxy,
    appliance,
    network,
    someone: (credit = "0") => appliance.signUp(undefined, credit),
    async pay(amount, depth = confirmations) {
      const hash = await anvil.transfer({ to: recipient, amount: micros(amount) });
      if (depth > 1) await anvil.mine(depth - 1);
      return hash;
    },
    async [Symbol.asyncDispose]() {
      await appliance.stop();
      await proxy.stop();
      await anvil.stop();
    },
  };
}

async function recipientOf(appliance: Appliance): Promise<Hex> {
  const { body } = await (await appliance.signUp(undefined, "0")).ask("POST", "/v1/billing/top-up");
  return body.x402.recipient;
}

export const micros = (amount: string): bigint => parseMoney(amount) ?? 0n;

export const proofOf = (txHash: string, network: NetworkName): string => JSON.stringify({ txHash, network });

/** Asks for an instance, with a proof of payment where there is one. */
export const launch = (person: Person, txHash?: string, network: NetworkName = "base"): Promise<Answer> =>
  person.ask(
    "POST",
    "/v1/instances",
    { name: "Paid" },
    txHash === undefined ? {} : { "X-PAYMENT": proofOf(txHash, network) },
  );

/** The quote that a launch without balance gets. */
export async function quoteFor(person: Person): Promise<Answer["body"]> {
  const { status, body } = await launch(person);
  if (status !== 402) throw new Error(`expected a quote, got ${status}`);
  return body.x402;
}

export const balanceOf = async (person: Person): Promise<string> =>
  (await person.ask("GET", "/v1/auth/me")).body.balance;

/** Types and amounts, oldest first. */
export async function entriesOf(person: Person): Promise<[string, string][]> {
  const { body } = await person.ask("GET", "/v1/billing/transactions");
  return body.data.map(({ type, amount }: { type: string; amount: string }) => [type, amount]).reverse();
}

/** Polls until it holds; throws after ten seconds. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const endsAt = performance.now() + 10_000;
  while (!(await holds())) {
    if (performance.now() > endsAt) throw new Error("it did not come to hold within ten seconds");
    await Bun.sleep(20);
  }
}

/** What the journal says all its sides sum to, and what a customer's sides do. */
export function bookSums({ appliance }: Paying, accountId: string): { all: bigint; customer: bigint; owed: bigint } {
  const { store, clock } = appliance.foundation;
  const sum = (where: string) =>
    BigInt(
      store.sqlite.query<{ sum: number }, []>(`SELECT coalesce(sum(amount), 0) AS sum FROM postings ${where}`).get()
        ?.sum ?? 0,
    );
  return {
    all: sum(""),
    customer: sum(`WHERE ledger_account = 'customer:${accountId}'`),
    owed: createLedger(store, clock).booksOf(accountId).owed,
  };
}
