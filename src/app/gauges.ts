import { statfsSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Approvals } from "../approvals/approvals.ts";
import type { BackupFigures } from "../backup/schedule.ts";
import type { RpcHealth } from "../chain/chain.ts";
import type { Egress } from "../egress/egress.ts";
import type { Figure, Sample } from "../http/metrics.ts";
import { createRevenue, sumBalances } from "../ledger/totals.ts";
import type { Micros } from "../lib/money.ts";
import type { Meter } from "../meter/meter.ts";
import type { PaymentGateway } from "../payments/gateway.ts";
import type { Host } from "../runtime/host.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { Life, Retention } from "../storage/retention.ts";
import type { Db } from "../storage/store.ts";
import type { Traces } from "../traces/traces.ts";
import type { Reservations } from "../usage/reservations.ts";
import type { RunningBackups } from "./backups.ts";
import type { Mcp } from "./mcp-servers.ts";
import type { Tools } from "./tools.ts";

export interface GaugeParts {
  db: Db;
  instances: { countRunning(): number };
  host: Pick<Host, "awake" | "figures">;
  /** Null without a collector. */
  traces: Pick<Traces, "figures"> | null;
  dataDir: string;
  hub: { openStreams(): number };
  meter: Pick<Meter, "accountIds">;
  sandbox: Pick<Sandbox, "level" | "figures">;
  mcp: { connections: Pick<Mcp["connections"], "open"> };
  paymentGateway: Pick<PaymentGateway, "invoices" | "payments" | "countSigned" | "health">;
  approvals: Pick<Approvals, "countOpen">;
  toolCalls: Tools["counts"];
  modelCalls: { reservations: Pick<Reservations, "figures"> };
  web: { egress: Pick<Egress, "outcomes" | "connections"> };
  retention: Pick<Retention, "removed">;
  lives: readonly Pick<Life, "kind" | "oldest">[];
  /** Null if none is scheduled. */
  backups: Pick<RunningBackups, "figures"> | null;
}

const usdc = (micros: Micros): number => Number(micros) / 1e6;

const byStatus = (counts: Record<string, number>): Sample[] =>
  Object.entries(counts).map(([status, value]) => ({ labels: { status }, value }));

const RPC = ["network", "node"] as const;

/** No value if the folder is gone. */
function freeBytes(dataDir: string): Sample[] {
  try {
    const { bavail, bsize } = statfsSync(dataDir);
    return [{ labels: {}, value: bavail * bsize }];
  } catch {
    return [];
  }
}

const databaseBytes = (dataDir: string): number =>
  ["roost.db", "roost.db-wal"].reduce(
    (sum, name) => sum + (statSync(join(dataDir, name), { throwIfNoEntry: false })?.size ?? 0),
    0,
  );

function freeInDatabase({ $client: sqlite }: Db): number {
  const sql = "SELECT freelist_count * page_size AS bytes FROM pragma_freelist_count, pragma_page_size";
  return sqlite.query<{ bytes: number }, []>(sql).get()?.bytes ?? 0;
}

function oldestOf({ $client: sqlite }: Db, kind: string, sql: string | undefined): Sample[] {
  const oldest = sql === undefined ? null : sqlite.query<{ at: number }, []>(sql).get();
  return oldest ? [{ labels: { kind }, value: oldest.at / 1000 }] : [];
}

/** What `/metrics` reports besides requests and the process. Each is cheap to read, however much data there is. */
export function gaugesOf(parts: GaugeParts): Figure[] {
  const {
    db,
    dataDir,
    traces,
    instances,
    host,
    hub,
    meter,
    paymentGateway,
    approvals,
    toolCalls,
    modelCalls,
    web,
    sandbox,
    mcp,
    backups,
    retention,
    lives,
  } = parts;
  const { invoices, payments, countSigned, health } = paymentGateway;
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
  const ofBackups = (samples: (figures: BackupFigures) => Sample[]): Sample[] =>
    backups === null ? [] : samples(backups.figures());
  return [
    gauge("roost_instances_running", "Running instances", instances.countRunning),
    gauge("roost_workers_awake", "Instances whose worker is awake", host.awake),
    gauge("roost_runs_in_progress", "Runs that have a worker now", () => host.figures().running),
    counter(
      "roost_runs_total",
      "Runs that a worker has ended, by how",
      () => [...host.figures().ended].map(([outcome, value]) => ({ labels: { outcome }, value })),
      ["outcome"],
    ),
    counter(
      "roost_spans_total",
      "Spans for the collector, by what came of them",
      () => Object.entries(traces?.figures() ?? {}).map(([outcome, value]) => ({ labels: { outcome }, value })),
      ["outcome"],
    ),
    gauge("roost_disk_free_bytes", "What the data folder's disk has left", () => freeBytes(dataDir)),
    gauge("roost_database_bytes", "Size of the database's files", () => databaseBytes(dataDir)),
    gauge("roost_database_free_bytes", "What of it the next rows use first", () => freeInDatabase(db)),
    gauge(
      "roost_oldest_timestamp_seconds",
      "When the life of the oldest row began, by kind",
      () => lives.flatMap(({ kind, oldest }) => oldestOf(db, kind, oldest)),
      ["kind"],
    ),
    counter(
      "roost_rows_removed_total",
      "Rows that have come to the end of their life, by kind",
      () => lives.map(({ kind }) => ({ labels: { kind }, value: retention.removed().get(kind) ?? 0 })),
      ["kind"],
    ),
    gauge("roost_event_streams", "Open event streams", hub.openStreams),
    gauge("roost_approvals_open", "Approvals that wait for a person", approvals.countOpen),
    counter(
      "roost_tool_calls_total",
      "Calls of agents' tools, by what came of them",
      () => toolCalls().map(({ tool, outcome, count }) => ({ labels: { tool, outcome }, value: count })),
      ["tool", "outcome"],
    ),
    gauge(
      "roost_model_reservations",
      "Model calls that have reserved what they may take",
      () => modelCalls.reservations.figures().held,
    ),
    gauge(
      "roost_model_calls_waiting",
      "Model calls that wait for others to give back what they have reserved",
      () => modelCalls.reservations.figures().waiting,
    ),
    counter(
      "roost_budget_refusals_total",
      "Messages and model calls refused because of a limit",
      () => modelCalls.reservations.figures().refused,
    ),
    gauge(
      "roost_sandbox",
      "1 for what locks scripts in, once it is known",
      () => {
        const level = sandbox.level();
        return level === null ? [] : [{ labels: { level }, value: 1 }];
      },
      ["level"],
    ),
    gauge("roost_scripts_running", "Scripts that run", () => sandbox.figures().running),
    gauge("roost_scripts_waiting", "Scripts that wait for a place", () => sandbox.figures().waiting),
    counter(
      "roost_scripts_total",
      "Scripts that have ended, by how",
      () => [...sandbox.figures().ended].map(([ending, value]) => ({ labels: { ending }, value })),
      ["ending"],
    ),
    gauge("roost_metered_accounts", "Accounts being metered", () => meter.accountIds().length),
    gauge("roost_balances_usdc", "Total balance of all accounts", () => usdc(sumBalances(db))),
    counter("roost_revenue_usdc_total", "Total usage in the ledger", () => usdc(revenue())),
    gauge("roost_invoices_open", "Open invoices", invoices.countOpen),
    gauge("roost_claims", "Transactions presented as payments", () => byStatus(payments.countClaims()), ["status"]),
    gauge("roost_payments", "Credited transfers", () => byStatus(payments.countPayments()), ["status"]),
    gauge("roost_signed_payments", "Signed payments passed to a facilitator", () => byStatus(countSigned()), [
      "status",
    ]),
    gauge(
      "roost_rpc_up",
      "Whether the last call to a node succeeded",
      ofNodes(({ ok }) => (ok === null ? null : Number(ok))),
      RPC,
    ),
    counter(
      "roost_egress_requests_total",
      "Requests of agents",
      () => [...web.egress.outcomes()].map(([outcome, value]) => ({ labels: { outcome }, value })),
      ["outcome"],
    ),
    gauge("roost_mcp_clients", "Open clients of MCP servers", mcp.connections.open),
    gauge("roost_egress_connections", "Connections of agents' requests", web.egress.connections),
    gauge("roost_backup_newest_timestamp_seconds", "When the newest scheduled backup was begun", () =>
      ofBackups(({ newestMs }) => (newestMs === null ? [] : [{ labels: {}, value: newestMs / 1000 }])),
    ),
    gauge("roost_backup_overdue", "1 if no scheduled backup was made for too long", () =>
      ofBackups(({ isOverdue }) => [{ labels: {}, value: Number(isOverdue) }]),
    ),
    counter(
      "roost_backups_total",
      "Scheduled backups, and their trial restores, by outcome",
      () =>
        ofBackups(({ made, failed, checked, bad }) =>
          Object.entries({ made, failed, checked, bad }).map(([outcome, value]) => ({ labels: { outcome }, value })),
        ),
      ["outcome"],
    ),
    counter(
      "roost_rpc_calls_total",
      "Calls to a node",
      ofNodes(({ calls }) => calls),
      RPC,
    ),
    counter(
      "roost_rpc_failures_total",
      "Failed calls to a node",
      ofNodes(({ failures }) => failures),
      RPC,
    ),
  ];
}
