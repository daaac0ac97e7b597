import { privateKeyToAccount } from "viem/accounts";
import { NETWORKS, type NetworkName } from "../../src/chain/networks.ts";
import type { Clock } from "../../src/lib/clock.ts";
import { verified } from "../payments/paying.ts";
import { type Anvil, type AnvilAccount, startAnvil } from "../support/anvil.ts";
import { startFacilitator, type TestFacilitator } from "../support/facilitator.ts";
import { type RpcProxy, startRpcProxy } from "../support/rpc-proxy.ts";
import { type Answer, type Person, startTestServer, type TestServer } from "../support/test-server.ts";
import { AUTHORIZATION } from "../support/usdc/authorization.ts";

/** A server with chains and a facilitator of its own. Instances cost nothing, so that balances are exact. */
export interface Settling extends AsyncDisposable {
  server: TestServer;
  facilitator: TestFacilitator;
  chains: Record<string, Anvil>;
  /** In front of each chain's node; the server asks these. */
  proxies: Record<string, RpcProxy>;
  /** Signs up a new person without credit. */
  someone(): Promise<Person>;
  /** An account of the chain that has paid nothing yet. */
  payer(network: NetworkName): AnvilAccount;
}

/** Nobody listens there: a network that must not be called. */
const NOBODY = "http://127.0.0.1:9";

export async function startSettling({
  networks = ["base"],
  settles = networks,
  settings = {},
  clock,
  hangs,
}: {
  networks?: readonly NetworkName[];
  /** What the facilitator settles. */
  settles?: readonly NetworkName[];
  settings?: Record<string, string>;
  clock?: Clock;
  /** Whether the facilitator never answers. */
  hangs?: boolean;
} = {}): Promise<Settling> {
  const started = await Promise.all(networks.map((network) => startAnvil({ network })));
  const chains = Object.fromEntries(started.map((anvil) => [anvil.network, anvil]));
  const proxies = Object.fromEntries(started.map(({ network, url }) => [network, startRpcProxy(url)]));
  const facilitator = startFacilitator(started.filter(({ network }) => settles.includes(network)));
  const rpcUrl = (network: NetworkName) => ({
    [`ROOST_${network.toUpperCase()}_RPC_URL`]: proxies[network]?.url ?? NOBODY,
  });
  const server = await startTestServer(
    {
      ROOST_NETWORKS: networks.join(","),
      ...rpcUrl("base"),
      ...rpcUrl("ethereum"),
      ...rpcUrl("polygon"),
      ROOST_FACILITATOR_URL: facilitator.url,
      ROOST_PRICE_PER_HOUR: "0",
      ...settings,
    },
    { ...(clock && { clock }), ...(hangs && { hangs }) },
  );
  let payers = 0;
  return {
    server,
    facilitator,
    chains,
    proxies,
    someone: () => server.signUp(undefined, "0"),
    payer(network) {
      const account = chains[network]?.accounts[payers++ % 8];
      if (!account) throw new Error(`no chain ${network}`);
      return account;
    },
    async [Symbol.asyncDispose]() {
      await server.stop();
      await facilitator.stop();
      await Promise.all(Object.values(proxies).map((proxy) => proxy.stop()));
      await Promise.all(started.map((anvil) => anvil.stop()));
    },
  };
}

/** Requests an instance with these headers. */
export const launch = (person: Person, headers: Record<string, string> = {}): Promise<Answer> =>
  verified(() => person.ask("POST", "/v1/instances", { name: "Paid" }, headers));

export const balanceOf = async (person: Person): Promise<string> =>
  (await person.ask("GET", "/v1/auth/me")).body.balance;

export interface Changes {
  version?: 1 | 2;
  network?: NetworkName;
  to?: string;
  value?: string;
  validAfter?: number;
  validBefore?: number;
  scheme?: string;
  asset?: string;
  nonce?: string;
}

export const newNonce = (): string => `0x${Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("hex")}`;

/** The header that a payer signs for a 402, as the protocol's clients do, or changed. */
export async function signPayment(
  payer: AnvilAccount,
  recipient: string,
  changes: Changes = {},
): Promise<Record<string, string>> {
  const { version = 1, network = "base", to = recipient, value = "1000000", scheme = "exact" } = changes;
  const { chainId, asset } = NETWORKS[network];
  const now = Math.floor(Date.now() / 1000);
  const { validAfter = 0, validBefore = now + 300, nonce = newNonce() } = changes;
  const signature = await privateKeyToAccount(payer.privateKey).signTypedData({
    domain: { name: "USD Coin", version: "2", chainId, verifyingContract: asset },
    ...AUTHORIZATION,
    message: {
      from: payer.address,
      to: to as `0x${string}`,
      value: BigInt(value),
      validAfter: BigInt(validAfter),
      validBefore: BigInt(validBefore),
      nonce: nonce as `0x${string}`,
    },
  });
  const authorization = {
    from: payer.address,
    to,
    value,
    validAfter: String(validAfter),
    validBefore: String(validBefore),
    nonce,
  };
  const payload = { signature, authorization };
  if (version === 1) return { "X-PAYMENT": encode({ x402Version: 1, scheme, network, payload }) };
  const accepted = {
    scheme,
    network: `eip155:${chainId}`,
    amount: value,
    asset: changes.asset ?? asset,
    payTo: to,
    maxTimeoutSeconds: 300,
    extra: { name: "USD Coin", version: "2" },
  };
  return { "PAYMENT-SIGNATURE": encode({ x402Version: 2, accepted, payload }) };
}

export const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64");
export const decode = (header: string | null): Record<string, unknown> =>
  JSON.parse(Buffer.from(header ?? "", "base64").toString());

export async function recipientOf(person: Person): Promise<string> {
  return (await launch(person)).body.x402.recipient;
}
