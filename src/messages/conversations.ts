import type { Agent } from "../agents/schema.ts";
import { AppError, notFound } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import { isId, newId } from "../lib/id.ts";
import type { Removals } from "../storage/removals.ts";
import type { Store } from "../storage/store.ts";
import { type ActivityMark, type ConversationQueries, NEWEST } from "./conversation-queries.ts";
import type { MessageQueries } from "./queries.ts";
import type { Runs } from "./runs/runs.ts";
import { type Conversation, ORIGINS, type OriginType } from "./schema.ts";

/** Of an agent, besides its default one (docs/contract/api.md, Conversations). */
const MOST = 1_000;

export interface Conversations {
  /** One of the agent's that is to be seen; its default one where none is named. Throws `not_found`. */
  get(agent: Agent, conversationId?: string | null): Conversation;
  /** Throws `conflict` beyond 1,000. Call it in a transaction, as whatever changes something here. */
  create(agent: Agent, title: string | null): Conversation;
  /** Throws `conflict` where the agent has as many as it may. */
  requireRoom(agent: Agent): void;
  /** The latest activity first, of every origin where none is named. */
  page(agent: Agent, origin: OriginType | null, behind: ActivityMark | null, limit: number): Conversation[];
  rename(conversation: Conversation, title: string | null): Conversation;
  /** Cancels its runs; nobody sees it from here on, and it is cleared away later. Throws `conflict` for the default one. */
  remove(conversation: Conversation): void;
}

/** There from the agent's creation: a trigger makes it, with the agent's number. */
export const defaultConversationOf = (agentId: string): string => agentId.replace("agt_", "conv_");

export interface ConversationParts {
  store: Store;
  clock: Clock;
  queries: MessageQueries;
  rows: ConversationQueries;
  runs: Pick<Runs, "cancelAll">;
  removals: Pick<Removals, "add">;
  /** Ends the streams of those who follow it. */
  endStreams(conversation: Conversation): void;
}

export function createConversations(parts: ConversationParts): Conversations {
  const { store, clock, queries, rows, runs, removals, endStreams } = parts;

  function find(agentId: string, conversationId: string): Conversation {
    const found = isId("conv", conversationId) ? rows.find(conversationId) : undefined;
    if (found?.agentId !== agentId || found.state !== "open") throw notFound("conversation");
    return found;
  }

  function requireRoom({ agentId }: Agent): void {
    // The default one is counted too.
    if (rows.count(agentId) <= MOST) return;
    throw new AppError(
      "conflict",
      `the agent has ${MOST} conversations besides its default one, and may have no more: delete one first`,
    );
  }

  return {
    get: ({ agentId }, conversationId) => find(agentId, conversationId ?? defaultConversationOf(agentId)),
    requireRoom,
    create(agent, title) {
      requireRoom(agent);
      const now = clock.now();
      return rows.insert({
        conversationId: newId("conv"),
        agentId: agent.agentId,
        title,
        createdAt: now,
        updatedAt: now,
      });
    },
    page({ agentId }, origin, behind, limit) {
      const of = (one: OriginType) => rows.page(agentId, one, behind ?? NEWEST, limit);
      return (origin === null ? ORIGINS.flatMap(of) : of(origin)).sort(byActivity).slice(0, limit);
    },
    rename({ agentId, conversationId }, title) {
      rows.setTitle(conversationId, title, clock.now());
      return find(agentId, conversationId);
    },
    remove(conversation) {
      const { conversationId, isDefault } = conversation;
      if (isDefault) {
        throw new AppError(
          "conflict",
          "an agent's default conversation cannot be deleted; DELETE …/messages clears it",
        );
      }
      runs.cancelAll(queries.unfinishedIn(conversationId));
      rows.clear(conversationId, clock.now());
      rows.setState(conversationId, "removed");
      removals.add("conversation", conversationId);
      store.afterCommit(() => endStreams(conversation));
    },
  };
}

/** The latest first; ids set apart those of the same millisecond. */
const byActivity = (one: Conversation, other: Conversation): number =>
  other.updatedAt - one.updatedAt || (other.conversationId > one.conversationId ? 1 : -1);
