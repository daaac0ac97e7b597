import type { Hex } from "viem";
import type { Address, NetworkName } from "../../src/chain/networks.ts";
import { createLedger } from "../../src/ledger/ledger.ts";
import { parseMoney } from "../../src/lib/money.ts";
import { type HandClock, handClock } from "../lib/hand-clock.ts";
import { type Anvil, startAnvil } from "../support/anvil.ts";
import { type RpcProxy, startRpcProxy } from "../support/rpc-proxy.ts";
import { type Answer, type Person, startTestServer, type TestServer } from "../support/test-server.ts";

/** Nobody listens there: a network that must not be called. */
const NOBODY = "http://127.0.0.1:9";

/** A server that takes payments on a chain of its own. Instances cost nothing, so that balances are exact. */
export interface Paying extends AsyncDisposable {
  anvil: Anvil;
  /** The nodes that the server asks, each in front of the chain. */
  proxies: RpcProxy[];
  /** The first of them. */
  proxy: RpcProxy;
  server: TestServer;
  clock: HandClock;
  recipient: Address;
  /** Signs up a new person with this credit. */
  someone(credit?: string): Promise<Person>;
  /** Transfers exactly this amount, as a quote writes it, and mines the given number of blocks. */
  pay(amount: string, depth?: number): Promise<Hex>;
  /** Polls until it is true, advancing the server's clock by ten seconds and making the checks that are due each time. */
  until(holds: () => boolean | Promise<boolean>): Promise<void>;
}

export async function startPaying({
  network = "base",
  settings = {},
  confirmations = 10,
  nodes = 1,
  hangs = false,
}: {
  network?: NetworkName;
  settings?: Record<string, string>;
  confirmations?: number;
  nodes?: number;
  /** Whether some never answer. */
  hangs?: boolean;
} = {}): Promise<Paying> {
  const anvil = await startAnvil({ network });
  const proxy = startRpcProxy(anvil.url);
  const proxies = [proxy, ...Array.from({ length: nodes - 1 }, () => startRpcProxy(anvil.url))];
  const clock = handClock();
  const server = await startTestServer(
    {
      ROOST_NETWORKS: network,
      ROOST_BASE_RPC_URL: NOBODY,
      ROOST_ETHEREUM_RPC_URL: NOBODY,
      ROOST_POLYGON_RPC_URL: NOBODY,
      [`ROOST_${network.toUpperCase()}_RPC_URL`]: proxies.map(({ url }) => url).join(","),
      [`ROOST_${network.toUpperCase()}_CONFIRMATIONS`]: String(confirmations),
      ROOST_PRICE_PER_HOUR: "0",
      ...settings,
    },
    { clock, hangs },
  );
  const { body } = await (await server.signUp(undefined, "0")).ask("POST", "/v1/billing/top-up");
  const recipient: Address = body.x402.recipient;
  return {
    anvil,
    proxies,
    proxy,
    server,
    clock,
    recipient,
    someone: (credit = "0") => server.signUp(undefined, credit),
    async pay(amount, depth = confirmations) {
      const hash = await anvil.transfer({ to: recipient, amount: micros(amount) });
      if (depth > 1) await anvil.mine(depth - 1);
      return hash;
    },
    async until(holds) {
      const endsAt = performance.now() + 120_000;
      while (!(await holds())) {
        if (performance.now() > endsAt) throw new Error("it did not come to hold within two minutes");
        clock.advance(10_000);
        // Nodes that hang hold up a check, and nobody here. Faster, and a payment would be final before a node is asked again.
        await Promise.all([Promise.race([server.app.payments.tick(), Bun.sleep(1_000)]), Bun.sleep(100)]);
      }
    },
    async [Symbol.asyncDispose]() {
      await server.stop();
      await Promise.all(proxies.map((one) => one.stop()));
      await anvil.stop();
    },
  };
}

export const micros = (amount: string): bigint => parseMoney(amount) ?? 0n;

const proofOf = (txHash: string, network: NetworkName): Record<string, string> => ({
  "X-PAYMENT": JSON.stringify({ txHash, network }),
});

/**
 * Asks up to ten times: where some nodes hang, the good ones too have only the product's deadline, which a busy machine may
 * exceed.
 */
export async function verified(ask: () => Promise<Answer>): Promise<Answer> {
  for (let more = 9; ; more--) {
    const answer = await ask();
    if (more === 0 || answer.body.error?.message.includes("be verified right now") !== true) return answer;
  }
}

/** Requests an instance, with a proof of payment if there is one. */
export const launch = (person: Person, txHash?: string, network: NetworkName = "base"): Promise<Answer> =>
  verified(() =>
    person.ask("POST", "/v1/instances", { name: "Paid" }, txHash === undefined ? {} : proofOf(txHash, network)),
  );

/** Requests a top-up, with a proof of payment if there is one. */
export const topUp = (
  person: Person,
  body: { amount?: string; network?: string } = {},
  txHash?: string,
  network: NetworkName = "base",
): Promise<Answer> =>
  verified(() => person.ask("POST", "/v1/billing/top-up", body, txHash === undefined ? {} : proofOf(txHash, network)));

/** The quote that a launch without balance gets. */
export async function quoteFor(person: Person): Promise<Answer["body"]> {
  const { status, body } = await launch(person);
  if (status !== 402) throw new Error(`expected a quote, got ${status}`);
  return body.x402;
}

export const balanceOf = async (person: Person): Promise<string> =>
  (await person.ask("GET", "/v1/auth/me")).body.balance;

/** Types and amounts of the account's ledger entries, oldest first. */
export async function entriesOf(person: Person): Promise<[string, string][]> {
  const { body } = await person.ask("GET", "/v1/billing/transactions");
  return body.data.map(({ type, amount }: { type: string; amount: string }) => [type, amount]).reverse();
}

/** An answer without what identifies the request, to compare two of them. */
export function seen({ status, headers, body }: Answer): unknown {
  const { requestId: _, ...error } = body.error;
  const named = new Set(["date", "x-request-id", "content-length"]);
  return { status, headers: [...headers].filter(([name]) => !named.has(name)), body: { ...body, error } };
}

/** The sums of the journal's postings: all of them, and the customer's; and what the account owes. */
export function booksOf({ server }: Paying, { accountId }: Person): { all: bigint; customer: bigint; owed: bigint } {
  const { store, clock } = server.foundation;
  const sum = (where: string) => {
    const query = `SELECT coalesce(sum(amount), 0) AS sum FROM postings ${where}`;
    return BigInt(store.sqlite.query<{ sum: number }, []>(query).get()?.sum ?? 0);
  };
  const { owed } = createLedger(store, clock).accountBalance(accountId);
  return { all: sum(""), customer: sum(`WHERE ledger_account = 'customer:${accountId}'`), owed };
}

/** Statuses of the rows of `payments` or `claims`, oldest first. */
export const statusesOf = ({ server }: Paying, table: "payments" | "claims"): string[] =>
  server.foundation.store.sqlite
    .query<{ status: string }, []>(`SELECT status FROM ${table} ORDER BY created_at`)
    .all()
    .map(({ status }) => status);
