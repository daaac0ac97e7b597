import { pruneSignInCodes } from "../accounts/code-limits.ts";
import { pruneKnownAddresses } from "../accounts/sign-in-addresses.ts";
import { shorter } from "../config/kept-settings.ts";
import type { Config } from "../config.ts";
import { DAY_MS } from "../lib/calendar.ts";
import { pruneUsage } from "../meter/old-usage.ts";
import { type Life, oldRows, untilNone } from "../storage/retention.ts";
import { createUsageAging } from "../usage/aging.ts";
import type { Features } from "./features.ts";
import type { Foundation } from "./foundation.ts";

const MODEL_CALLS_MS = 7 * DAY_MS;
/** Longer than the longest month, in which nobody is warned twice. */
const BUDGET_WARNINGS_MS = 62 * DAY_MS;

interface LivingParts extends Pick<Features, "idempotency" | "keys" | "revokedTokens" | "checkpoints"> {
  conversations: Pick<Features["conversations"], "aging" | "events">;
  paymentGateway: Pick<Features["paymentGateway"], "prune">;
  mcp: { authorization: Pick<Features["mcp"]["authorization"], "prune"> };
}

/** Every kind of rows that comes to the end of its life by itself (docs/contract/operations.md, What is kept). */
export function livesOf(
  { store, outbox, links, clock }: Foundation,
  { keepMessages, keepRuns, keepEvents, keepUsage, keepKeys, keepAudit }: Config,
  { idempotency, conversations, paymentGateway, keys, revokedTokens, checkpoints, mcp }: LivingParts,
): Life[] {
  const { aging, events } = conversations;
  const usage = createUsageAging(store.sqlite);
  const own = (kind: string, prune: (most: number) => boolean): Life => ({
    kind,
    keptMs: 0,
    slice: untilNone(store.sqlite, prune),
  });
  return [
    {
      kind: "messages",
      keptMs: keepMessages,
      slice: aging.messages,
      oldest: "SELECT created_at AS at FROM messages ORDER BY message_seq LIMIT 1",
    },
    {
      kind: "runs",
      keptMs: keepRuns,
      slice: aging.runs,
      oldest: "SELECT coalesce(finished_at, created_at) AS at FROM runs ORDER BY run_id LIMIT 1",
    },
    {
      kind: "approvals",
      keptMs: shorter(keepRuns, keepMessages),
      slice: oldRows(store.sqlite, {
        table: "approvals",
        key: "approval_id",
        start: "",
        age: "coalesce(decided_at, created_at)",
        only: "status <> 'open'",
      }),
      oldest: "SELECT coalesce(decided_at, created_at) AS at FROM approvals ORDER BY approval_id LIMIT 1",
    },
    // Those beyond what an agent may have go even if none is ever too old.
    {
      kind: "events",
      keptMs: shorter(keepEvents, keepMessages) ?? Number.MAX_SAFE_INTEGER,
      slice: events.prune,
      oldest: "SELECT created_at AS at FROM events ORDER BY rowid LIMIT 1",
    },
    { kind: "usage", keptMs: keepUsage, slice: pruneUsage(store.db) },
    { kind: "model_calls", keptMs: MODEL_CALLS_MS, slice: usage.calls },
    { kind: "model_usage", keptMs: keepUsage, slice: usage.totals },
    { kind: "budget_warnings", keptMs: BUDGET_WARNINGS_MS, slice: usage.warnings },
    { ...own("keys", keys.prune), keptMs: keepKeys },
    {
      kind: "audit",
      keptMs: keepAudit ?? 0,
      slice: checkpoints.prune,
      oldest: "SELECT created_at AS at FROM audit ORDER BY audit_id LIMIT 1",
    },
    own("idempotent_answers", idempotency.prune),
    own("payments", paymentGateway.prune),
    own("sign_in_codes", (most) => pruneSignInCodes(store, clock, most)),
    own("sign_in_links", links.prune),
    own("sign_in_addresses", (most) => pruneKnownAddresses(store, clock, most)),
    own("revoked_tokens", revokedTokens.prune),
    own("mcp_authorizations", mcp.authorization.prune),
    own("outbox", outbox.prune),
  ];
}
