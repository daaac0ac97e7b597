import type { Agent } from "../agents/schema.ts";
import type { Instance } from "../instances/schema.ts";
import { AppError, notFound } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import { newId } from "../lib/id.ts";
import { createFairLimiter } from "../limits/fair-limiter.ts";
import type { Quotas } from "../limits/quotas.ts";
import { pauseAfter } from "../storage/background-work.ts";
import type { Removals } from "../storage/removals.ts";
import type { Store } from "../storage/store.ts";
import type { ConversationQueries } from "./conversation-queries.ts";
import type { Conversations } from "./conversations.ts";
import { readPage } from "./history-page.ts";
import type { MessageQueries } from "./queries.ts";
import type { StepQueries } from "./runs/past-steps.ts";
import type { Conversation, Message } from "./schema.ts";
import type { Summaries } from "./summaries.ts";

/** Finds what is to be forked, in its current state. Throws `not_found`. */
export type FindConversation = () => { instance: Instance; agent: Agent; conversation: Conversation };

export interface Forks {
  /**
   * Creates a conversation with a copy of the messages up to and including this one. It is copied a page at a time, and
   * becomes visible when it is complete. `commit` runs the final operation in a transaction. Throws `not_found` for a
   * message that the conversation does not have, `conflict` beyond a quota, `rate_limited` if too many of the account's
   * forks wait.
   */
  fork<T>(find: FindConversation, messageId: string, commit: (end: () => Conversation) => Promise<T>): Promise<T>;
  /** After a start: deletes the copies that an earlier process left unfinished. Call it in a transaction. */
  recover(): void;
}

export interface ForkParts {
  store: Store;
  clock: Clock;
  queries: MessageQueries;
  steps: Pick<StepQueries, "copy">;
  summaries: Pick<Summaries, "copy">;
  rows: ConversationQueries;
  conversations: Pick<Conversations, "requireRoom">;
  removals: Pick<Removals, "add">;
  quotas: Pick<Quotas, "requireHistoryRoom">;
}

/** Messages copied in one commit; fewer if they are long. */
const AT_ONCE = 100;
/** How many new ids of messages are remembered for their replies; at most the agent's queue lies between the two. */
const MAX_UNANSWERED = 1_000;
/** Two forks run at once, and one per account. */
const FORKS = { concurrency: 2, maxPerOwner: 1, maxWaiting: 16 };

export function createForks(parts: ForkParts): Forks {
  const { store, clock, queries, steps, summaries, rows, conversations, removals, quotas } = parts;
  const limiter = createFairLimiter(FORKS);

  /** Finds a message that is visible in the conversation. */
  function messageIn(conversation: Conversation, messageId: string): Message {
    const message = queries.message(messageId);
    const { conversationId, clearedMessageSeq } = conversation;
    if (message?.conversationId !== conversationId || message.messageSeq <= clearedMessageSeq)
      throw notFound("message");
    return message;
  }

  async function copy<T>(
    find: FindConversation,
    messageId: string,
    commit: (end: () => Conversation) => Promise<T>,
  ): Promise<T> {
    /** The ids of copied messages, by the ids of their originals. */
    const newIds = new Map<string, string>();
    const { accountId } = find().instance;
    const { conversationId: copyId } = await store.commitSoon(
      () => {
        const { agent, conversation } = find();
        conversations.requireRoom(agent);
        const now = clock.now();
        const { agentId } = agent;
        const { title } = conversation;
        const at = { createdAt: now, updatedAt: now };
        return rows.insert({ conversationId: newId("conv"), agentId, state: "copying", title, ...at });
      },
      "process",
      accountId,
    );

    /** Copies the next page; returns where to continue, null at the end. */
    function slice(after: number): number | null {
      const { instance, conversation } = find();
      const last = messageIn(conversation, messageId).messageSeq;
      const page = readPage(queries, conversation.conversationId, "asc", after, AT_ONCE);
      const messages = page.rows.filter(({ messageSeq }) => messageSeq <= last);
      const bytes = messages.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);
      quotas.requireHistoryRoom(instance.accountId, bytes);
      for (const { messageSeq: _, ...message } of messages) {
        const id = newId("msg");
        if (message.role === "user") newIds.set(message.messageId, id);
        const inReplyTo = message.inReplyTo === null ? null : (newIds.get(message.inReplyTo) ?? null);
        queries.insertMessage({ ...message, messageId: id, conversationId: copyId, inReplyTo });
        if (message.role === "agent") steps.copy(message.messageId, { messageId: id, conversationId: copyId });
        const [oldest] = newIds.keys();
        if (oldest !== undefined && newIds.size > MAX_UNANSWERED) newIds.delete(oldest);
      }
      const end = messages.at(-1)?.messageSeq ?? last;
      return end < last ? end : null;
    }

    try {
      for (let after: number | null = 0; after !== null; ) {
        const from: number = after;
        const startedMs = performance.now();
        after = await store.commitSoon(() => slice(from), "process", accountId);
        if (after !== null) await pauseAfter(performance.now() - startedMs);
      }
      return await commit(() => {
        const { agent, conversation } = find();
        const { messageSeq } = messageIn(conversation, messageId);
        conversations.requireRoom(agent);
        summaries.copy(conversation.conversationId, messageSeq, copyId);
        rows.setState(copyId, "open");
        const copied = rows.find(copyId);
        if (!copied) throw notFound("conversation");
        return copied;
      });
    } catch (error) {
      await store.commitSoon(() => discard(copyId), "process", accountId);
      throw error;
    }
  }

  /** Its agent may have been deleted meanwhile, and the copy with it. */
  function discard(conversationId: string): void {
    if (rows.find(conversationId)?.state !== "copying") return;
    rows.setState(conversationId, "removed");
    removals.add("conversation", conversationId);
  }

  return {
    fork(find, messageId, commit) {
      const { instance, agent, conversation } = find();
      messageIn(conversation, messageId);
      conversations.requireRoom(agent);
      return new Promise((resolve, reject) => {
        const work = () => copy(find, messageId, commit).then(resolve, reject);
        if (limiter.submit(instance.accountId, work)) return;
        reject(
          new AppError("rate_limited", `${FORKS.maxWaiting} forks are waiting already; try again later`, {
            retryAfterSeconds: 5,
          }),
        );
      });
    },
    recover() {
      for (const conversationId of rows.copying()) discard(conversationId);
    },
  };
}
