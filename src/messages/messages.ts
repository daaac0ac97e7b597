import type { Agent } from "../agents/schema.ts";
import type { Instance } from "../instances/schema.ts";
import { AppError } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import { newId } from "../lib/id.ts";
import type { Quotas } from "../limits/quotas.ts";
import type { Removals } from "../storage/removals.ts";
import type { Store } from "../storage/store.ts";
import type { ConversationQueries } from "./conversation-queries.ts";
import { type HistoryPage, readPage } from "./history-page.ts";
import type { MessageQueries, Order } from "./queries.ts";
import { MAX_AT_ONCE } from "./runs/active-runs.ts";
import type { Runs } from "./runs/runs.ts";
import type { Run } from "./schema.ts";

/** Messages that may wait for an agent, besides the runs in progress (docs/contract/api.md, Conversations). */
const MAX_QUEUED = 32;

/** What becomes of a message while its conversation has a run that is not over. */
export const WHILE_RUNNING = ["queue", "interrupt", "reject"] as const;

export interface Sender {
  type: string;
  id: string;
  name: string;
}

export interface NewMessage {
  conversationId: string;
  text: string;
  sender: Sender;
  /** `interrupt` cancels the run whose turn it is; `reject` refuses the message. */
  whileRunning: (typeof WHILE_RUNNING)[number];
}

export interface Messages {
  /**
   * Writes the message and its queued run. Throws `conflict` when the account's history is full, or the message is not to
   * wait and would, `rate_limited` when the agent's queue is full, `instance_not_ready` when its instance is not running.
   * Call it in a transaction.
   */
  send(instance: Instance, agent: Agent, message: NewMessage): Run;
  page(conversationId: string, order: Order, after: number | null, limit: number): HistoryPage;
  /**
   * Cancels what runs, and forgets what the conversation holds, with its runs and what their events told: from here on
   * nobody sees them; they are cleared away later. That they were, and how they ended, stays in the log: who follows one
   * of them learns its end. Call it in a transaction.
   */
  clear(conversationId: string): void;
}

export function createMessages(
  store: Store,
  clock: Clock,
  queries: MessageQueries,
  conversations: Pick<ConversationQueries, "clear">,
  runs: Runs,
  removals: Pick<Removals, "add">,
  quotas: Pick<Quotas, "requireHistoryRoom">,
): Messages {
  return {
    send(instance, { agentId }, { conversationId, text, sender, whileRunning }) {
      return store.transaction(() => {
        // The answer to a message that was accepted is kept in any case.
        quotas.requireHistoryRoom(instance.accountId, Buffer.byteLength(text));
        const unfinished = queries.inTurn(agentId);
        const current = unfinished.find((run) => run.conversationId === conversationId);
        if (current && whileRunning === "reject") {
          throw new AppError(
            "conflict",
            `the conversation has a run in progress (${current.runId}): wait for its end, cancel it, or send with whileRunning "queue" or "interrupt"`,
          );
        }
        const interrupted = whileRunning === "interrupt" ? current : undefined;
        requireRoomInQueue(
          unfinished.filter((run) => run !== interrupted),
          conversationId,
        );
        requireRunning(instance);
        if (interrupted) runs.cancel(interrupted);
        const messageId = newId("msg");
        const caused = { agentId, conversationId, originType: "user", originId: null } as const;
        const run = runs.queue(caused, instance, messageId);
        queries.insertMessage({
          messageId,
          agentId,
          conversationId,
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
          tainted: false,
        });
        return run;
      });
    },
    page: (conversationId, order, after, limit) => readPage(queries, conversationId, order, after, limit),
    clear(conversationId) {
      store.transaction(() => {
        runs.cancelAll(queries.unfinishedIn(conversationId));
        conversations.clear(conversationId, clock.now());
        removals.add("history", conversationId);
      });
    },
  };
}

/** Throws `rate_limited` if too many would be queued besides the runs of this agent that may be in progress. */
function requireRoomInQueue(unfinished: Run[], conversationId: string): void {
  // A run that waits is not queued, and nothing else in its conversation may be in progress.
  const others = unfinished.filter(({ status }) => status !== "waiting");
  const mayRun = new Set([...others.map((run) => run.conversationId), conversationId]);
  for (const run of unfinished) if (run.status === "waiting") mayRun.delete(run.conversationId);
  const queued = others.length + 1 - Math.min(MAX_AT_ONCE, mayRun.size);
  if (queued <= MAX_QUEUED) return;
  throw new AppError("rate_limited", `${MAX_QUEUED} messages wait for this agent already; try again later`, {
    retryAfterSeconds: 5,
  });
}

/** A message needs its instance to run (docs/contract/api.md, Instances). */
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
