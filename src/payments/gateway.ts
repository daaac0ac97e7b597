import type { RpcHealth } from "../chain/chain.ts";
import { createChain } from "../chain/create-chain.ts";
import { type Address, NETWORK_NAMES, type NetworkName } from "../chain/networks.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import type { Micros } from "../lib/money.ts";
import type { Meter } from "../meter/meter.ts";
import type { Audit } from "../storage/audit.ts";
import type { Store } from "../storage/store.ts";
import type { FacilitatedPayments } from "./facilitator/facilitated-payments.ts";
import { createX402Support } from "./facilitator/x402-support.ts";
import { createHeads } from "./heads.ts";
import { createInvoices, type Invoices } from "./invoices.ts";
import type { Payment } from "./payment.ts";
import { createPayments, type Payments } from "./payments.ts";

export interface PaymentGatewayParts {
  store: Store;
  clock: Clock;
  log: Log;
  audit: Audit;
  ledger: Ledger;
  meter: Pick<Meter, "balanceOf" | "owedBy" | "settle">;
  /** Who receives the money. */
  recipient: Address;
  settings: {
    networks: readonly NetworkName[];
    rpcUrls: Record<NetworkName, string[]>;
    confirmations: Record<NetworkName, number>;
    minimumTopUp: Micros;
    facilitatorUrl: string | null;
  };
  publicUrl(): string;
  /** For whatever a chain's node or the facilitator is asked, in place of the usual ones. */
  deadlineMs?: number | undefined;
}

/** How money comes in: quotes, transfers already made, and transfers that a facilitator makes. */
export interface PaymentGateway {
  invoices: Invoices;
  payments: Payments;
  /**
   * Takes a request's payment; null if it has none. Throws `invalid_request` for a malformed header. A signed payment
   * (signed-payment.ts) may take 50 s.
   */
  takePayment(accountId: string, headers: Headers, requestId: string): Promise<Payment | null>;
  countSigned: FacilitatedPayments["countByStatus"];
  /** Removes what was decided long ago, at most `limit` of each kind. Returns whether there may be more. */
  prune(limit: number): boolean;
  /** The health of the nodes of all networks that are accepted. */
  health(): RpcHealth[];
  run(): void;
  stop(): Promise<void>;
}

export function createPaymentGateway({ settings, publicUrl, ...parts }: PaymentGatewayParts): PaymentGateway {
  const { store, clock, log, meter, recipient, deadlineMs } = parts;
  const { networks, rpcUrls, confirmations, minimumTopUp, facilitatorUrl } = settings;
  const openChain = (network: NetworkName) => createChain({ network, urls: rpcUrls[network], clock, deadlineMs });
  // All: what is on its way on a network that is no longer accepted is still credited.
  const chains = new Map(NETWORK_NAMES.map((network) => [network, openChain(network)]));
  const accepted = new Map([...chains].filter(([network]) => networks.includes(network)));
  // The payment is always for the balance, whichever request found it too low.
  const offer = () => ({ recipient, resource: `${publicUrl()}/v1/billing/top-up` });
  const heads = createHeads(accepted, { timeoutMs: deadlineMs });
  const x402 = createX402Support({
    url: facilitatorUrl,
    deadlineMs,
    store,
    clock,
    log,
    networks,
    chains,
    heads,
    offer,
  });
  const { advertise } = x402;
  const { balanceOf, owedBy } = meter;
  const health = () => [...accepted.values()].flatMap((chain) => chain.health());
  const isCutOff = () => health().every(({ ok }) => ok === false);
  const asked = { recipient, networks, minimumTopUp, topUpAt: publicUrl, isCutOff };
  const invoices = createInvoices({ store, clock, balanceOf, owedBy, heads, advertise, ...asked });
  const payments = createPayments({ ...parts, invoices, networks, chains, confirmations });
  const facilitated = x402.collect(payments.creditSettled);

  return {
    invoices,
    payments,
    takePayment: async (accountId, headers, requestId) =>
      (await facilitated.take(accountId, headers, requestId)) ?? payments.present(accountId, headers.get("x-payment")),
    countSigned: facilitated.countByStatus,
    prune(limit) {
      const isMore = [invoices, payments, facilitated].map(({ prune }) => prune(limit));
      return isMore.includes(true);
    },
    health,
    run() {
      payments.run();
      facilitated.run();
    },
    async stop() {
      await Promise.all([facilitated.stop(), payments.stop()]);
    },
  };
}
