import type { Agent } from "../agents/schema.ts";
import type { Instance } from "../instances/schema.ts";
import { AppError } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import { newId } from "../lib/id.ts";
import type { Quotas } from "../limits/quotas.ts";
import type { Removals } from "../storage/removals.ts";
import type { Store } from "../storage/store.ts";
import type { MessageQueries, Order } from "./queries.ts";
import type { Runs } from "./runs/runs.ts";
import type { Message, Run } from "./schema.ts";

/** Messages that may wait for an agent, besides the run in progress (api.md section 5, rule 1). */
const MOST_QUEUED = 32;
/** Text of a page of history, in UTF-8: what is beyond it is on the next page. */
const PAGE_BYTES = 256 * 1024;

export interface Sender {
  type: string;
  id: string;
  name: string;
}

export interface Messages {
  /**
   * Writes the message and its queued run. Throws `conflict` when the account's history is full, `rate_limited` when the
   * agent's queue is, `instance_not_ready` when its instance is not running. Call it in a transaction.
   */
  send(instance: Instance, agent: Agent, input: { text: string; sender: Sender }): Run;
  /** At most `limit` messages, and fewer where they are so long that the page is large without the others. */
  page(agent: Agent, order: Order, after: number | null, limit: number): { rows: Message[]; hasMore: boolean };
  /**
   * Cancels what runs, and forgets the conversation with its runs and what their events told: from here on nobody sees
   * them; they are cleared away later. That they were, and how they ended, stays in the log: who follows one of them
   * learns its end. Call it in a transaction.
   */
  clear(agent: Agent): void;
}

export function createMessages(
  store: Store,
  clock: Clock,
  queries: MessageQueries,
  runs: Runs,
  removals: Pick<Removals, "add">,
  quotas: Pick<Quotas, "requireHistoryRoom">,
): Messages {
  return {
    send(instance, agent, { text, sender }) {
      return store.transaction(() => {
        // The answer to a message that was accepted is kept in any case.
        quotas.requireHistoryRoom(instance.accountId, Buffer.byteLength(text));
        if (queries.countUnfinished(agent.agentId) > MOST_QUEUED) {
          throw new AppError("rate_limited", `${MOST_QUEUED} messages wait for this agent already; try again later`, {
            retryAfterSeconds: 5,
          });
        }
        requireRunning(instance);
        const messageId = newId("msg");
        const run = runs.queue(agent.agentId, instance, messageId);
        queries.insertMessage({
          messageId,
          agentId: agent.agentId,
          runId: run.runId,
          role: "user",
          text,
          senderType: sender.type,
          senderId: sender.id,
          senderName: sender.name,
          inReplyTo: null,
          finishReason: null,
          promptTokens: null,
          completionTokens: null,
          createdAt: clock.now(),
        });
        return run;
      });
    },
    page({ agentId }, order, after, limit) {
      const sizes = queries.sizes(agentId, order, after, limit + 1);
      let left = PAGE_BYTES;
      const end = sizes.findIndex((bytes) => {
        left -= bytes;
        return left < 0;
      });
      // One at least, however long it is.
      const count = Math.min(limit, end < 0 ? sizes.length : Math.max(1, end));
      return { rows: queries.page(agentId, order, after, count), hasMore: sizes.length > count };
    },
    clear(agent) {
      store.transaction(() => {
        runs.cancelAll(queries.unfinishedOf(agent.agentId));
        queries.clear(agent.agentId);
        removals.add("conversation", agent.agentId);
      });
    },
  };
}

/** Specification, section 3, rule 1. */
function requireRunning(instance: Instance): void {
  if (instance.status === "running") return;
  throw new AppError("instance_not_ready", `the instance is ${instance.status}${startingOf(instance)}`, {
    retryAfterSeconds: 5,
  });
}

/** Why it does not run, and what lets it run again. */
function startingOf({ statusReason }: Instance): string {
  switch (statusReason) {
    case "insufficient_balance":
      return ", for the balance is used up: top up (POST /v1/billing/top-up, or in the console) or ask who runs this host for credit, then start it";
    case "monthly_limit":
      return ", for the month's usage has reached the account's limit: raise it (PATCH /v1/auth/me), then start it";
    case null:
      return "; start it first";
    default:
      return ` (${statusReason}); start it first`;
  }
}
