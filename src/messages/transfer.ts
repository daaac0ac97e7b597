import type { Agent } from "../agents/schema.ts";
import { newId } from "../lib/id.ts";
import type { Quotas } from "../limits/quotas.ts";
import type { ConversationQueries } from "./conversation-queries.ts";
import { type HistoryPage, readPage } from "./history-page.ts";
import type { MessageQueries, NewMessageRow } from "./queries.ts";
import { type Conversation, defaultConversationOf } from "./schema.ts";

/** An agent's history as it was at one moment, which is read in many turns. */
export interface Moment {
  /** Latest activity first, the default one before all others. */
  conversations: Conversation[];
  /** The last message that belongs to it. */
  lastMessage: number;
  /** The first message of each conversation; null where there was none. */
  firstMessages: (string | null)[];
}

/** An agent's whole history, where it leaves this host or comes from another. */
export interface Transfer {
  begin(agent: Pick<Agent, "agentId">): Moment;
  /** Messages of one of its conversations, oldest first. */
  page(moment: Moment, conversation: Conversation, after: number): HistoryPage;
  /** Whether none of its conversations was cleared or deleted since, and no old message was removed. */
  isWhole(moment: Moment): boolean;
  /** For an agent that nobody sees yet. Returns its id. Call this, and `add`, in a transaction. */
  addConversation(
    agent: Pick<Agent, "agentId">,
    heading: Pick<Conversation, "title" | "isDefault" | "originType" | "createdAt">,
  ): string;
  /** Adds messages that were written elsewhere. Throws `conflict` if the account's history is full. */
  add(accountId: string, rows: readonly NewMessageRow[]): void;
}

export interface TransferParts {
  queries: MessageQueries;
  rows: ConversationQueries;
  quotas: Pick<Quotas, "requireHistoryRoom">;
}

/** Messages that are read in one turn, or written in one commit; fewer if they are long. */
const AT_ONCE = 100;

export function createTransfer({ queries, rows, quotas }: TransferParts): Transfer {
  const firstOf = ({ conversationId }: Conversation, lastMessage: number): string | null => {
    const first = queries.first(conversationId);
    return first !== undefined && first.messageSeq <= lastMessage ? first.messageId : null;
  };

  return {
    begin({ agentId }) {
      const [conversations, lastMessage] = [rows.allOf(agentId), queries.lastMessage()];
      return { conversations, lastMessage, firstMessages: conversations.map((one) => firstOf(one, lastMessage)) };
    },
    page({ lastMessage }, { conversationId }, after) {
      const page = readPage(queries, conversationId, "asc", after, AT_ONCE);
      const within = page.rows.filter(({ messageSeq }) => messageSeq <= lastMessage);
      return { rows: within, hasMore: page.hasMore && within.length === page.rows.length };
    },
    // Messages go oldest first, or all at once.
    isWhole: ({ conversations, lastMessage, firstMessages }) =>
      conversations.every(
        (one, index) =>
          rows.find(one.conversationId)?.state === "open" && firstOf(one, lastMessage) === firstMessages[index],
      ),
    addConversation({ agentId }, { title, isDefault, originType, createdAt }) {
      if (!isDefault) {
        const at = { createdAt, updatedAt: createdAt };
        return rows.insert({ conversationId: newId("conv"), agentId, title, originType, ...at }).conversationId;
      }
      // A trigger has created it with the agent.
      const conversationId = defaultConversationOf(agentId);
      if (title !== null) rows.setTitle(conversationId, title, createdAt);
      return conversationId;
    },
    add(accountId, messages) {
      const bytes = messages.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);
      quotas.requireHistoryRoom(accountId, bytes);
      for (const message of messages) queries.insertMessage(message);
    },
  };
}
