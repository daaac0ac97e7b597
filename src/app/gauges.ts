import type { RpcHealth } from "../chain/chain.ts";
import type { Figure, Sample } from "../http/metrics.ts";
import { createRevenue, sumBalances } from "../ledger/totals.ts";
import type { Micros } from "../lib/money.ts";
import type { Meter } from "../meter/meter.ts";
import type { PaymentGateway } from "../payments/gateway.ts";
import type { Db } from "../storage/store.ts";

export interface GaugeParts {
  db: Db;
  instances: { countRunning(): number };
  host: { awake(): number };
  hub: { openStreams(): number };
  meter: Pick<Meter, "accountIds">;
  paymentGateway: Pick<PaymentGateway, "invoices" | "payments" | "health">;
}

const usdc = (micros: Micros): number => Number(micros) / 1e6;

const byStatus = (counts: Record<string, number>): Sample[] =>
  Object.entries(counts).map(([status, value]) => ({ labels: { status }, value }));

const RPC = ["network", "node"] as const;

/** What `/metrics` tells of the appliance, beside its requests and its process. Each is cheap, whatever the data's size. */
export function gaugesOf(parts: GaugeParts): Figure[] {
  const { db, instances, host, hub, meter, paymentGateway } = parts;
  const { invoices, payments, health } = paymentGateway;
  const revenue = createRevenue(db);
  const gauge = (name: string, help: string, read: Figure["read"], labels: readonly string[] = []): Figure => ({
    kind: "gauge",
    name,
    help,
    labels,
    read,
  });
  const counter = (...words: Parameters<typeof gauge>): Figure => ({ ...gauge(...words), kind: "counter" });
  const ofNodes = (figure: (node: RpcHealth) => number | null) => (): Sample[] =>
    health().flatMap((one) => {
      const value = figure(one);
      return value === null ? [] : [{ labels: { network: one.network, node: one.node }, value }];
    });
  return [
    gauge("roost_instances_running", "Instances that are running", instances.countRunning),
    gauge("roost_workers_awake", "Instances whose worker is awake", host.awake),
    gauge("roost_event_streams", "Event streams that are open", hub.openStreams),
    gauge("roost_metered_accounts", "Accounts whose meters count", () => meter.accountIds().length),
    gauge("roost_balances_usdc", "What all accounts have together", () => usdc(sumBalances(db))),
    counter("roost_revenue_usdc_total", "Usage in the ledger, ever", () => usdc(revenue())),
    gauge("roost_invoices_open", "Invoices that wait to be paid", invoices.countOpen),
    gauge("roost_claims", "Transactions presented as payments", () => byStatus(payments.countClaims()), ["status"]),
    gauge("roost_payments", "Transfers that were credited", () => byStatus(payments.countPayments()), ["status"]),
    gauge(
      "roost_rpc_up",
      "Whether a node gave a good answer when it was last asked",
      ofNodes(({ ok }) => (ok === null ? null : Number(ok))),
      RPC,
    ),
    counter(
      "roost_rpc_calls_total",
      "Times a node was asked",
      ofNodes(({ calls }) => calls),
      RPC,
    ),
    counter(
      "roost_rpc_failures_total",
      "Times a node gave no good answer",
      ofNodes(({ failures }) => failures),
      RPC,
    ),
  ];
}
