import { afterAll, beforeAll, expect, test } from "bun:test";
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createKeys } from "../../src/accounts/keys.ts";
import { createRevokedTokens } from "../../src/accounts/revoked-tokens.ts";
import { type Foundation, openFoundation } from "../../src/app/foundation.ts";
import { livesOf } from "../../src/app/lives.ts";
import { loadConfig } from "../../src/config.ts";
import { createIdempotency } from "../../src/http/idempotency.ts";
import { createLog } from "../../src/lib/log.ts";
import { authorizationQueries } from "../../src/mcp/authorization/queries.ts";
import { createAging } from "../../src/messages/aging.ts";
import { createEventLog } from "../../src/messages/events/event-log.ts";
import { createClaims } from "../../src/payments/claims.ts";
import { createAuthorizations } from "../../src/payments/facilitator/authorizations.ts";
import { invoiceQueries } from "../../src/payments/invoice-queries.ts";
import { createAuditCheckpoints } from "../../src/storage/audit-checkpoints.ts";
import type { Life } from "../../src/storage/retention.ts";
import { plansOf } from "../support/query-plans.ts";

const dataDir = mkdtempSync(join(tmpdir(), "roost-lives-"));
const log = await createLog("silent", "json");
let foundation: Foundation;
beforeAll(() => {
  foundation = openFoundation({ dataDir });
});
afterAll(() => {
  foundation.store.close();
  rmSync(dataDir, { recursive: true, force: true });
});

/** The host's own list, of its own parts. */
function lives(environment: Record<string, string> = {}): Life[] {
  const { store, clock, audit } = foundation;
  const invoices = invoiceQueries(store.db);
  const claims = createClaims(store, clock);
  const authorizations = createAuthorizations(store);
  const { config } = loadConfig(environment);
  return livesOf(foundation, config, {
    idempotency: createIdempotency(store, clock, randomBytes(32)),
    conversations: {
      aging: createAging(
        store,
        () => {},
        () => {},
      ),
      events: createEventLog(store, clock, () => {}),
    },
    paymentGateway: {
      prune: (most: number) =>
        [invoices.prune(clock.now(), most) === most, claims.prune(most), authorizations.prune(clock.now(), most)].some(
          Boolean,
        ),
    },
    keys: createKeys(store, clock, audit, config.keepKeys),
    revokedTokens: createRevokedTokens(store, clock),
    mcp: {
      authorization: { prune: (most) => authorizationQueries(store.db).removeExpired(clock.now(), most) === most },
    },
    checkpoints: createAuditCheckpoints({ store, clock, log, dataDir, key: generateKeyPairSync("ed25519").privateKey }),
  });
}

test("what has come to the end of its life is found by an index, whatever else a host holds", () => {
  const { store } = foundation;
  for (const { kind, slice } of lives()) {
    const plans = plansOf(store, () => store.transaction(() => slice(Date.now(), null, 100)));
    expect([kind, plans.filter((plan) => plan.startsWith("SCAN") && !SHORT.includes(plan))]).toEqual([kind, []]);
    expect([kind, plans.filter((plan) => plan.includes("TEMP B-TREE"))]).toEqual([kind, []]);
  }
});

/** Mail and revoked tokens of the last day, and the newest checkpoint. */
const SHORT = [
  "SCAN outbox",
  "SCAN audit_checkpoints",
  "SCAN signed_out_tokens USING COVERING INDEX signed_out_tokens_by_end",
];

const DAY = 86_400_000;
const keptOf = (environment: Record<string, string>) =>
  Object.fromEntries(lives(environment).map(({ kind, keptMs }) => [kind, keptMs]));

test("each kind lives as long as its setting says, and nothing with a message's text longer than messages", () => {
  expect(keptOf({})).toMatchObject({
    messages: null,
    runs: 365 * DAY,
    approvals: 365 * DAY,
    events: 7 * DAY,
    usage: 730 * DAY,
    keys: 30 * DAY,
  });
  expect(keptOf({ ROOST_KEEP_MESSAGES: "3d", ROOST_KEEP_EVENTS: "forever", ROOST_KEEP_RUNS: "forever" })).toMatchObject(
    {
      messages: 3 * DAY,
      runs: null,
      approvals: 3 * DAY,
      events: 3 * DAY,
    },
  );
});

test("a table that grows by itself is in the list, or is bounded in another way", () => {
  const all = foundation.store.sqlite
    .query<{ name: string }, []>(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name",
    )
    .all()
    .map(({ name }) => name);
  expect(all).toEqual([...PRUNED, ...BOUNDED].toSorted());
});

/** By `livesOf`. */
const PRUNED = [
  "messages",
  "responses",
  "runs",
  "approvals",
  "events",
  "usage_days",
  "model_calls",
  "model_usage",
  "budget_warnings",
  "api_keys",
  "audit",
  "audit_checkpoints",
  "idempotent_requests",
  "invoices",
  "claims",
  "authorizations",
  "sign_in_codes",
  "sign_in_links",
  "sign_in_addresses",
  "signed_out_tokens",
  "mcp_authorizations",
  "outbox",
];
/** As docs/contract/operations.md, What is kept, says; the rest is work that is done soon. */
const BOUNDED = [
  ...["journal_entries", "postings", "payments", "prices", "balances", "meters", "usage_before"],
  ...["accounts", "account_limits", "account_usage", "invites", "instances", "agents", "conversations"],
  ...["workspace_files", "installed_skills", "secrets", "data_keys", "schedules", "schedule_slots", "approval_rules"],
  ...["message_steps", "summaries", "delegations", "memories", "memory_notes", "memory_files", "memory_forgotten"],
  ...["memory_queue", "memory_vectors_due", "model_reservations", "model_usage_mark"],
  ...[
    "mcp_servers",
    "mcp_credentials",
    "tainted_runs",
    "workspace_changes",
    "instance_aftermath",
    "removals",
    "audit_cut",
    "removed_messages",
  ],
];
