import type { Agent } from "../agents/schema.ts";
import { AppError, notFound } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import { isId, newId } from "../lib/id.ts";
import type { Removals } from "../storage/removals.ts";
import type { Store } from "../storage/store.ts";
import { type ActivityMark, type ConversationQueries, NEWEST } from "./conversation-queries.ts";
import type { MessageQueries } from "./queries.ts";
import type { Runs } from "./runs/runs.ts";
import { type Conversation, defaultConversationOf, ORIGINS, type OriginType } from "./schema.ts";

/** Of one agent, besides its default one (docs/contract/api.md, Conversations). */
const MAX_CONVERSATIONS = 1_000;
/** So that programs leave room for people. */
const MAX_FOR_RESPONSES = 500;
const MAX_FOR_AGENTS = 300;

export interface Conversations {
  /** A visible conversation of the agent, by default its default one. Throws `not_found`. */
  get(agent: Agent, conversationId?: string | null): Conversation;
  /** Throws `conflict` beyond 1,000. Call it in a transaction, like everything here that changes something. */
  create(agent: Agent, title: string | null): Conversation;
  /**
   * One that began on the OpenAI-compatible surface. An agent keeps 500 of them: the one that was used the longest ago
   * makes room. Throws `conflict` beyond 1,000 of all kinds.
   */
  createForResponses(agent: Agent): Conversation;
  /** One for what is not a person's doing. Throws `conflict` beyond 1,000. */
  createFor(agent: Agent, origin: Pick<Conversation, "originType" | "originId">, title: string): Conversation;
  /**
   * The one in which the agent works for a conversation of another agent, or of its own: `again` for the one that it had
   * for that before, if any. An agent keeps 300 of them: of those in which nothing runs, the one that was used the longest
   * ago makes room. Throws `conflict` beyond 1,000 of all kinds.
   */
  forAgents(agent: Agent, askingConversationId: string, title: string, how: "again" | "new"): Conversation;
  /** Throws `conflict` if the agent has as many as it may. */
  requireRoom(agent: Agent): void;
  /** Latest activity first; of every origin if none is named. */
  page(agent: Agent, origin: OriginType | null, after: ActivityMark | null, limit: number): Conversation[];
  rename(conversation: Conversation, title: string | null): Conversation;
  /** Cancels its runs and hides it; its rows are deleted later. Throws `conflict` for the default one. */
  remove(conversation: Conversation): void;
}

export interface ConversationParts {
  store: Store;
  clock: Clock;
  queries: MessageQueries;
  rows: ConversationQueries;
  runs: Pick<Runs, "cancelAll">;
  removals: Pick<Removals, "add">;
  /** Ends the event streams that follow it. */
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
    if (rows.count(agentId) < MAX_CONVERSATIONS) return;
    throw new AppError(
      "conflict",
      `the agent has ${MAX_CONVERSATIONS} conversations besides its default one, and may have no more: delete one first`,
    );
  }

  function insert(
    { agentId }: Agent,
    title: string | null,
    { originType, originId }: Pick<Conversation, "originType" | "originId">,
  ): Conversation {
    const now = clock.now();
    const at = { createdAt: now, updatedAt: now };
    return rows.insert({ conversationId: newId("conv"), agentId, title, originType, originId, ...at });
  }

  function remove(conversation: Conversation): void {
    const { conversationId, isDefault } = conversation;
    if (isDefault) {
      throw new AppError("conflict", "an agent's default conversation cannot be deleted; DELETE …/messages clears it");
    }
    runs.cancelAll(queries.unfinishedIn(conversationId));
    rows.clear(conversationId, clock.now());
    rows.setState(conversationId, "removed");
    removals.add("conversation", conversationId);
    store.afterCommit(() => endStreams(conversation));
  }

  return {
    get: ({ agentId }, conversationId) => find(agentId, conversationId ?? defaultConversationOf(agentId)),
    requireRoom,
    create(agent, title) {
      requireRoom(agent);
      return insert(agent, title, { originType: "user", originId: null });
    },
    createForResponses(agent) {
      const { agentId } = agent;
      if (rows.countOf(agentId, "openai") >= MAX_FOR_RESPONSES) {
        const oldest = rows.oldest(agentId, "openai");
        if (oldest) remove(oldest);
      }
      requireRoom(agent);
      return insert(agent, null, { originType: "openai", originId: null });
    },
    createFor(agent, origin, title) {
      requireRoom(agent);
      return insert(agent, title, origin);
    },
    forAgents(agent, askingConversationId, title, how) {
      const { agentId } = agent;
      const known = how === "again" ? rows.answering(agentId, askingConversationId) : undefined;
      if (known) return known;
      if (rows.countOf(agentId, "agent") >= MAX_FOR_AGENTS) {
        const oldest = rows.oldestAtRest(agentId, "agent");
        if (oldest) remove(oldest);
      }
      requireRoom(agent);
      return insert(agent, title, { originType: "agent", originId: askingConversationId });
    },
    page({ agentId }, origin, after, limit) {
      const of = (one: OriginType) => rows.page(agentId, one, after ?? NEWEST, limit);
      const found = origin === null ? ORIGINS.flatMap(of) : of(origin);
      const own = find(agentId, defaultConversationOf(agentId));
      const isAsked = (origin ?? own.originType) === own.originType && (after === null || byActivity(own, after) > 0);
      return (isAsked ? [own, ...found] : found).sort(byActivity).slice(0, limit);
    },
    rename({ agentId, conversationId }, title) {
      rows.setTitle(conversationId, title, clock.now());
      return find(agentId, conversationId);
    },
    remove,
  };
}

/** Latest first; ids break ties within a millisecond. */
const byActivity = (one: ActivityMark, other: ActivityMark): number =>
  other.updatedAt - one.updatedAt || (other.conversationId > one.conversationId ? 1 : -1);
