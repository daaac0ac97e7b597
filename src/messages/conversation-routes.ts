import { z } from "zod";
import type { Caller } from "../accounts/caller.ts";
import type { Agents } from "../agents/agents.ts";
import { needsOneOf, trimmedText } from "../http/fields.ts";
import { pageOf, pageQuery, toPage } from "../http/paging.ts";
import { type Route, route } from "../http/route.ts";
import { AppError } from "../lib/app-error.ts";
import { idForm } from "../lib/forms.ts";
import type { ActivityMark } from "./conversation-queries.ts";
import type { Conversations } from "./conversations.ts";
import type { Forks } from "./forks.ts";
import { ConversationRecord, showConversation } from "./record.ts";
import { type Conversation, ORIGINS } from "./schema.ts";

export interface ConversationRouteParts {
  agents: Agents;
  conversations: Conversations;
  forks: Forks;
  /** Lets a request be silent while a long conversation is copied. */
  keepOpen(request: Request): void;
}

const CONVERSATIONS = "/v1/instances/:instanceId/agents/:agentId/conversations";
const CONVERSATION = `${CONVERSATIONS}/:conversationId` as const;

const title = trimmedText(1, 200);
const MESSAGE_ID = "the id of a message of this conversation";

/** Conversations of an agent (api-agents.md section 9). */
export function conversationRoutes({ agents, conversations, forks, keepOpen }: ConversationRouteParts): Route[] {
  type Params = { instanceId: string; agentId: string; conversationId: string };
  function find(caller: Caller, { instanceId, agentId, conversationId }: Params) {
    const found = agents.get(caller, instanceId, agentId);
    return { ...found, conversation: conversations.get(found.agent, conversationId) };
  }

  return [
    route({
      method: "POST",
      path: CONVERSATIONS,
      summary: "Begin a conversation beside the agent's others",
      access: "chat",
      bound: "record",
      status: 201,
      body: z.object({ title: title.nullish() }),
      answer: ConversationRecord,
      errors: ["conflict"],
      async handle({ caller, params, body, once }) {
        agents.get(caller, params.instanceId, params.agentId);
        const input = await body();
        return once(() => {
          const { agent } = agents.get(caller, params.instanceId, params.agentId);
          return showConversation(conversations.create(agent, input.title ?? null));
        });
      },
    }),
    route({
      method: "GET",
      path: CONVERSATIONS,
      summary: "The agent's conversations, the latest activity first",
      access: "read",
      bound: "page",
      query: pageQuery.extend({ origin: z.enum(ORIGINS, { error: `one of ${ORIGINS.join(", ")}` }).optional() }),
      answer: pageOf(ConversationRecord),
      handle({ caller, params, query, startPage }) {
        const { agent } = agents.get(caller, params.instanceId, params.agentId);
        const { origin = null, ...page } = query();
        const start = startPage(`conversations ${agent.agentId} ${origin ?? ""}`, page);
        const behind = start.position === null ? null : markOf(start.position);
        const rows = conversations.page(agent, origin, behind, start.limit + 1);
        return toPage(start, rows, positionOf, showConversation);
      },
    }),
    route({
      method: "GET",
      path: CONVERSATION,
      summary: "One conversation",
      access: "read",
      bound: "record",
      answer: ConversationRecord,
      handle: ({ caller, params }) => showConversation(find(caller, params).conversation),
    }),
    route({
      method: "PATCH",
      path: CONVERSATION,
      summary: "Give a conversation a title; null takes it away",
      access: "chat",
      bound: "record",
      body: z.object({ title: title.nullable().optional() }).meta(needsOneOf("title")),
      answer: ConversationRecord,
      async handle({ caller, params, body, once }) {
        find(caller, params);
        const input = await body();
        const { title } = input;
        if (title === undefined) throw new AppError("invalid_request", "body: expected title, a text or null");
        return once(() => showConversation(conversations.rename(find(caller, params).conversation, title)));
      },
    }),
    route({
      method: "DELETE",
      path: CONVERSATION,
      summary: "Delete a conversation: its runs are cancelled, its messages removed",
      access: "chat",
      bound: "record",
      answer: z.object({ conversationId: idForm("conv"), deleted: z.literal(true) }),
      errors: ["conflict"],
      handle({ caller, params, once }) {
        return once(() => {
          const { conversation } = find(caller, params);
          conversations.remove(conversation);
          return { conversationId: conversation.conversationId, deleted: true };
        });
      },
    }),
    route({
      method: "POST",
      path: `${CONVERSATION}/fork`,
      summary: "Begin a conversation with a copy of this one, up to and including a message",
      access: "chat",
      bound: "record",
      status: 201,
      body: z.object({ messageId: idForm("msg").describe(MESSAGE_ID) }),
      answer: ConversationRecord,
      errors: ["conflict", "rate_limited"],
      async handle({ caller, params, body, once, request }) {
        find(caller, params);
        const { messageId } = await body();
        keepOpen(request);
        return forks.fork(
          () => find(caller, params),
          messageId,
          (end) => once(() => showConversation(end())),
        );
      },
    }),
  ];
}

const positionOf = ({ updatedAt, conversationId }: Conversation): string => `${updatedAt} ${conversationId}`;

function markOf(position: string): ActivityMark {
  const [updatedAt, conversationId = ""] = position.split(" ");
  return { updatedAt: Number(updatedAt), conversationId };
}
