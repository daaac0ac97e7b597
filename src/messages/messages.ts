import type { Agent } from "../agents/table.ts";
import type { Instance } from "../instances/table.ts";
import { AppError } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import { newId } from "../lib/id.ts";
import type { Turn } from "../runtime/protocol.ts";
import type { Removals } from "../storage/removals.ts";
import type { Store } from "../storage/store.ts";
import type { MessageQueries } from "./message-table.ts";
import type { Runs } from "./runs.ts";
import type { Message, Run } from "./table.ts";

/** Messages that may wait for an agent, besides the run in progress (api.md section 5, rule 1). */
const MOST_QUEUED = 32;
/** How far back a conversation is read for a prompt; the prompt itself is then cut to the model's context. */
const WINDOW_MESSAGES = 100;

export interface Sender {
  type: string;
  id: string;
  name: string;
}

export interface Messages {
  /**
   * Writes the message and its queued run. Throws `rate_limited` when the agent's queue is full, `instance_not_ready`
   * when its instance is not running. Call it in a transaction.
   */
  send(instance: Instance, agent: Agent, input: { text: string; sender: Sender }): Run;
  page(agent: Agent, order: "asc" | "desc", after: number | null, limit: number): Message[];
  /**
   * Cancels what runs, and forgets the conversation with its runs and what their events told: from here on nobody sees
   * them; they are cleared away later. That they were, and how they ended, stays in the log: who follows one of them
   * learns its end. Call it in a transaction.
   */
  clear(agent: Agent): void;
  /** The turns up to and including the run's own message, in the order they were answered. */
  conversation(run: Run): Turn[];
}

export function createMessages(
  store: Store,
  clock: Clock,
  queries: MessageQueries,
  runs: Runs,
  removals: Pick<Removals, "add">,
): Messages {
  return {
    send(instance, agent, { text, sender }) {
      return store.transaction(() => {
        if (queries.countUnfinished(agent.agentId) > MOST_QUEUED) {
          throw new AppError("rate_limited", `${MOST_QUEUED} messages wait for this agent already; try again later`, {
            retryAfterSeconds: 5,
          });
        }
        requireRunning(instance);
        const messageId = newId("msg");
        const run = runs.queue(agent.agentId, instance.instanceId, messageId);
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
    page: (agent, order, after, limit) => queries.page(agent.agentId, order, after, limit),
    clear(agent) {
      store.transaction(() => {
        runs.cancelAll(queries.unfinishedOf(agent.agentId));
        queries.clear(agent.agentId);
        removals.add("conversation", agent.agentId);
      });
    },
    conversation(run) {
      const rows = queries.recent(run.agentId, WINDOW_MESSAGES).reverse();
      const replies = new Map(rows.filter(({ role }) => role === "agent").map((row) => [row.inReplyTo, row]));
      const turns: Turn[] = [];
      for (const row of rows) {
        if (row.role === "agent") continue;
        turns.push({ role: "user", text: row.text });
        if (row.messageId === run.messageId) return turns;
        const reply = replies.get(row.messageId);
        if (reply && reply.text !== "") turns.push({ role: "assistant", text: reply.text });
      }
      // The run's message is older than the window only when hundreds were written behind it; it is answered alone.
      const own = queries.message(run.messageId);
      return own ? [{ role: "user", text: own.text }] : [];
    },
  };
}

/** Specification, section 3, rule 1. */
export function requireRunning(instance: Instance): void {
  if (instance.status === "running") return;
  const reason = instance.statusReason === null ? "" : ` (${instance.statusReason})`;
  throw new AppError("instance_not_ready", `the instance is ${instance.status}${reason}; start it first`, {
    retryAfterSeconds: 5,
  });
}
