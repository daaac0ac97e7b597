import { pruneSignInCodes } from "../accounts/code-limits.ts";
import { pruneKnownAddresses } from "../accounts/sign-in-addresses.ts";
import type { Log } from "../lib/log.ts";
import type { Store } from "../storage/store.ts";
import type { Features } from "./features.ts";
import type { Foundation } from "./foundation.ts";

const INTERVAL_MS = 60 * 60 * 1000;

/** Runs the tasks soon after the start and then hourly, one by one. A failure is logged and retried next time. */
export function startHousekeeping(tasks: Record<string, () => void | Promise<void>>, log: Log): { stop(): void } {
  const tidy = async () => {
    for (const [task, run] of Object.entries(tasks)) {
      try {
        await run();
      } catch (err) {
        log.error({ err, task }, "housekeeping failed");
      }
    }
  };
  const timer = setInterval(() => void tidy(), INTERVAL_MS);
  timer.unref();
  const first = setTimeout(() => void tidy(), 10_000);
  first.unref();
  return {
    stop() {
      clearTimeout(first);
      clearInterval(timer);
    },
  };
}

const SLICE = 200;

/** Prunes in commits of a few rows, with requests in between, until `prune` says that nothing is left. */
async function inSlices(store: Store, prune: (limit: number) => boolean): Promise<void> {
  while (await store.commitSoon(() => prune(SLICE), "process"));
}

/** Deletes rows that no rule reads any more. */
export const housekeepingTasks = (
  { store, outbox, links, clock }: Foundation,
  { idempotency, conversations, paymentGateway, keys, revokedTokens, checkpoints }: Features,
) => ({
  auditCheckpoints: checkpoints.sign,
  audit: checkpoints.prune,
  idempotency: idempotency.prune,
  payments: paymentGateway.prune,
  signInCodes: () => inSlices(store, (limit) => pruneSignInCodes(store, clock, limit)),
  signInLinks: () => inSlices(store, links.prune),
  signInAddresses: () => inSlices(store, (limit) => pruneKnownAddresses(store, clock, limit)),
  revokedTokens: () => inSlices(store, revokedTokens.prune),
  keys: () => inSlices(store, keys.prune),
  outbox: outbox.prune,
  async events() {
    for (let after: string | null = ""; after !== null; ) {
      const from: string = after;
      // One commit per hundred agents or 250 events, with requests in between.
      after = await store.commitSoon(() => conversations.events.prune(from, 100, 250), "process");
    }
  },
});
