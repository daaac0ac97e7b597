import type { Agent } from "../agents/schema.ts";
import type { Instance } from "../instances/schema.ts";
import { AppError } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import { newId } from "../lib/id.ts";
import type { Quotas } from "../limits/quotas.ts";
import type { OutputForm } from "../models/engine.ts";
import type { Removals } from "../storage/removals.ts";
import type { Store } from "../storage/store.ts";
import { createAnnouncing } from "./announce.ts";
import type { ConversationQueries } from "./conversation-queries.ts";
import type { EventLog } from "./events/event-log.ts";
import { createKeeping, type Exchange, questionOf, type Sender } from "./exchange.ts";
import { type HistoryPage, readPage } from "./history-page.ts";
import type { MessageQueries, Order } from "./queries.ts";
import { MAX_RUNS_AT_ONCE } from "./runs/active-runs.ts";
import type { Caused } from "./runs/new-runs.ts";
import type { Runs } from "./runs/runs.ts";
import type { Asked, UnkeptListener } from "./runs/unkept-runs.ts";
import type { Run } from "./schema.ts";

/** Messages that may wait for an agent, besides the runs in progress (docs/contract/api.md, Conversations). */
const MAX_QUEUED = 32;

/** What happens to a message while its conversation has an unfinished run. */
export const WHILE_RUNNING = ["queue", "interrupt", "reject"] as const;

export interface NewMessage {
  conversationId: string;
  text: string;
  sender: Sender;
  /** `interrupt` cancels the run whose turn it is; `reject` refuses the message. */
  whileRunning: (typeof WHILE_RUNNING)[number];
  /** The form of the answer, if it is to be JSON. */
  output: OutputForm | null;
  /** Who or what sends it, if that is no person. */
  origin?: Pick<Run, "originType" | "originId">;
  /** Whether a stranger may have written a part of it: its run is then tainted. */
  isTainted?: boolean;
}

export interface Messages {
  /**
   * Writes the message and its queued run. Throws `conflict` if the account's history is full, or the message would
   * have to wait and must not; `budget_exceeded` or `forbidden` because of a limit of its models; `rate_limited` if the
   * agent's queue is full; `instance_not_ready` if its instance is not running. Call it in a transaction.
   */
  send(instance: Instance, agent: Agent, message: NewMessage): Run;
  /**
   * Asks the agent for somebody who keeps the conversation; nothing is written. Throws as `send` does. Returns how to
   * cancel it.
   */
  ask(instance: Instance, agent: Agent, asked: Asked, listener: UnkeptListener): () => void;
  /**
   * Writes what was asked and answered elsewhere, as a run that has completed. Returns the id of the agent's message; null
   * if the agent was deleted meanwhile. Call it in a transaction.
   */
  keep(instance: Instance, agent: Agent, exchange: Exchange): string | null;
  /** Puts what a run elsewhere ended with into the agent's default conversation. Call it in a transaction. */
  announce(run: Run): void;
  page(conversationId: string, order: Order, after: number | null, limit: number): HistoryPage;
  /**
   * Cancels the conversation's runs and hides its messages, its runs and the text of their events; the rows are deleted
   * later. The events that say that a run existed and how it ended stay in the log, so that streams that follow it
   * report its end. Call it in a transaction.
   */
  clear(conversationId: string): void;
}

export interface MessageParts {
  store: Store;
  clock: Clock;
  queries: MessageQueries;
  events: Pick<EventLog, "append">;
  rows: Pick<ConversationQueries, "clear">;
  runs: Runs;
  removals: Pick<Removals, "add">;
  quotas: Pick<Quotas, "requireHistoryRoom">;
  modelOf: (agent: Agent, caused?: Caused) => string;
  /** Throws `budget_exceeded` if a limit of the agent's models is used up, `forbidden` if nobody knows what they cost. */
  requireBudget: (agent: Agent, instance: Instance, model: string) => void;
}

export function createMessages(parts: MessageParts): Messages {
  const { store, clock, queries, events, rows, runs, removals, quotas, modelOf, requireBudget } = parts;
  return {
    send(
      instance,
      agent,
      { conversationId, text, sender, whileRunning, output, origin = BY_A_PERSON, isTainted = false },
    ) {
      const { agentId } = agent;
      return store.transaction(() => {
        // Checked here only: the answer to an accepted message is always stored.
        quotas.requireHistoryRoom(instance.accountId, Buffer.byteLength(text));
        const unfinished = runs.inTurn(agentId);
        const current = unfinished.find((run) => run.conversationId === conversationId);
        if (current && whileRunning === "reject") {
          throw new AppError(
            "conflict",
            `the conversation has a run in progress (${current.runId}): wait for its end, cancel it, or send with whileRunning "queue" or "interrupt"`,
          );
        }
        const caused = { agentId, conversationId, ...origin };
        const model = modelOf(agent, caused);
        requireBudget(agent, instance, model);
        const interrupted = whileRunning === "interrupt" ? current : undefined;
        requireRoomInQueue(
          unfinished.filter((run) => run !== interrupted),
          conversationId,
        );
        requireRunning(instance);
        if (interrupted) runs.cancel(interrupted);
        const messageId = newId("msg");
        const run = runs.queue(caused, instance, messageId, unfinished.length === 0 ? model : undefined);
        if (output) queries.setOutput(run.runId, output);
        queries.insertMessage({ ...questionOf(run, text, sender), tainted: isTainted });
        return run;
      });
    },
    ask(instance, agent, asked, listener) {
      requireBudget(agent, instance, modelOf(agent));
      requireRoomInQueue(runs.inTurn(agent.agentId), "");
      requireRunning(instance);
      return runs.unkept.queue(instance, agent, asked, listener);
    },
    keep: createKeeping(clock, queries, events),
    announce: createAnnouncing(clock, queries, events),
    page: (conversationId, order, after, limit) => readPage(queries, conversationId, order, after, limit),
    clear(conversationId) {
      store.transaction(() => {
        runs.cancelAll(queries.unfinishedIn(conversationId));
        rows.clear(conversationId, clock.now());
        removals.add("history", conversationId);
      });
    },
  };
}

const BY_A_PERSON = { originType: "user", originId: null } as const;

/** docs/contract/api.md, Queue. */
const MIN_RETRY_SECONDS = 5;
const MAX_RETRY_SECONDS = 15;

/** Throws `rate_limited` if too many messages would wait besides the runs of this agent that may be in progress. */
function requireRoomInQueue(unfinished: Run[], conversationId: string): void {
  // A waiting run is not queued, and no other run of its conversation may be in progress.
  const others = unfinished.filter(({ status }) => status !== "waiting");
  const mayRun = new Set([...others.map((run) => run.conversationId), conversationId]);
  for (const run of unfinished) if (run.status === "waiting") mayRun.delete(run.conversationId);
  const queued = others.length + 1 - Math.min(MAX_RUNS_AT_ONCE, mayRun.size);
  if (queued <= MAX_QUEUED) return;
  throw new AppError("rate_limited", `${MAX_QUEUED} messages wait for this agent already; try again later`, {
    // Not the same for all: those refused together would come again together.
    retryAfterSeconds: Math.ceil(MIN_RETRY_SECONDS + Math.random() * (MAX_RETRY_SECONDS - MIN_RETRY_SECONDS)),
  });
}

/** Messages are only accepted while the instance is running (docs/contract/api.md, Instances). */
function requireRunning(instance: Instance): void {
  if (instance.status === "running") return;
  throw new AppError("instance_not_ready", `the instance is ${instance.status}${startingOf(instance)}`, {
    retryAfterSeconds: 5,
  });
}

/** Why the instance is not running, and how to start it again. */
function startingOf({ statusReason }: Instance): string {
  switch (statusReason) {
    case "insufficient_balance":
      return ", because the balance is used up: top up (POST /v1/billing/top-up, or in the console) or ask who runs this host for credit, then start it";
    case "monthly_limit":
      return ", because the month's usage has reached the account's limit: raise it (PATCH /v1/auth/me), then start it";
    case null:
      return "; start it first";
    default:
      return ` (${statusReason}); start it first`;
  }
}
