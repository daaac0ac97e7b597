import { z } from "zod";
import type { Agents } from "../agents/agents.ts";
import { trimmedText } from "../http/fields.ts";
import { pageOf, pageQuery, toPage } from "../http/paging.ts";
import { queryOf } from "../http/request.ts";
import { type Asked, type Route, route } from "../http/route.ts";
import { AppError } from "../lib/app-error.ts";
import { idForm } from "../lib/forms.ts";
import { ContextRecord, type ReadContext, type Redact, withoutSecrets } from "./context.ts";
import type { ActivityMark } from "./conversation-queries.ts";
import type { Conversations } from "./conversations.ts";
import type { Forks } from "./forks.ts";
import { ConversationRecord, showConversation } from "./record.ts";
import { type Conversation, ORIGINS } from "./schema.ts";

export interface ConversationRouteParts {
  agents: Agents;
  conversations: Conversations;
  forks: Forks;
  context: ReadContext;
  redact: Redact;
  /** Keeps the connection open while a long conversation is copied. */
  keepOpen(request: Request): void;
}

const CONVERSATIONS = "/v1/instances/:instanceId/agents/:agentId/conversations";
const CONVERSATION = `${CONVERSATIONS}/:conversationId` as const;

const title = trimmedText(1, 200);
const MESSAGE_ID = "the id of a message of this conversation";

/** Conversations of an agent (docs/contract/api.md, Conversations). */
export function conversationRoutes(parts: ConversationRouteParts): Route[] {
  const { agents, conversations, forks, context, redact, keepOpen } = parts;
  const ownAgent = ({ caller, params }: Asked<{ instanceId: string; agentId: string }>) =>
    agents.get(caller, params.instanceId, params.agentId);
  const own = (asked: Asked<{ instanceId: string; agentId: string; conversationId: string }>) => {
    const found = ownAgent(asked);
    return { ...found, conversation: conversations.get(found.agent, asked.params.conversationId) };
  };

  return [
    route({
      method: "POST",
      path: CONVERSATIONS,
      name: "createAgentConversation",
      tag: "conversations",
      summary: "Create a conversation of the agent",
      access: "chat",
      bound: "record",
      example: { title: "Holiday plans" },
      status: 201,
      body: z.object({ title: title.nullish() }),
      answer: ConversationRecord,
      errors: ["conflict"],
      find: ownAgent,
      commit: "shared",
      write: ({ found: { agent }, body }) => showConversation(conversations.create(agent, body.title ?? null)),
    }),
    route({
      method: "GET",
      path: CONVERSATIONS,
      name: "listAgentConversations",
      tag: "conversations",
      summary: "The agent's conversations, the latest activity first",
      access: "read",
      bound: "page",
      query: pageQuery.extend({ origin: z.enum(ORIGINS, { error: `one of ${ORIGINS.join(", ")}` }).optional() }),
      answer: pageOf(ConversationRecord),
      find: ownAgent,
      handle({ found: { agent }, query, startPage }) {
        const { origin = null, ...page } = query();
        const start = startPage(`conversations ${agent.agentId} ${origin ?? ""}`, page);
        const after = start.position === null ? null : markOf(start.position);
        const rows = conversations.page(agent, origin, after, start.limit + 1);
        return toPage(start, rows, positionOf, showConversation);
      },
    }),
    route({
      method: "GET",
      path: CONVERSATION,
      name: "getAgentConversation",
      tag: "conversations",
      summary: "One conversation",
      access: "read",
      bound: "record",
      answer: ConversationRecord,
      find: own,
      handle: ({ found }) => showConversation(found.conversation),
    }),
    route({
      method: "PATCH",
      path: CONVERSATION,
      name: "updateAgentConversation",
      tag: "conversations",
      summary: "Set a conversation's title; null removes it",
      access: "chat",
      bound: "record",
      body: z.object({ title: title.nullable().optional() }).meta({ required: ["title"] }),
      example: { title: "Holiday plans" },
      answer: ConversationRecord,
      find: own,
      commit: "shared",
      write({ found: { conversation }, body: { title } }) {
        if (title === undefined) throw new AppError("invalid_request", "body: expected title, a text or null");
        return showConversation(conversations.rename(conversation, title));
      },
    }),
    route({
      method: "DELETE",
      path: CONVERSATION,
      name: "deleteAgentConversation",
      tag: "conversations",
      summary: "Delete a conversation: its runs are cancelled, its messages removed",
      access: "chat",
      bound: "record",
      answer: z.object({ conversationId: idForm("conv"), deleted: z.literal(true) }),
      errors: ["conflict"],
      find: own,
      commit: "shared",
      write({ found: { conversation } }) {
        conversations.remove(conversation);
        return { conversationId: conversation.conversationId, deleted: true };
      },
    }),
    route({
      method: "POST",
      path: `${CONVERSATION}/fork`,
      name: "forkConversation",
      tag: "conversations",
      summary: "Create a conversation with a copy of this one, up to and including a message",
      description: "Its messages up to this one are copied into a new conversation; the agent's files are shared.",
      access: "chat",
      bound: "record",
      example: { messageId: "msg_0190f5e2c4a87b3d8e1f6a2b4c5d7e90" },
      status: 201,
      body: z.object({ messageId: idForm("msg").describe(MESSAGE_ID) }),
      answer: ConversationRecord,
      errors: ["conflict", "rate_limited"],
      find: own,
      commit: "shared",
      async handle({ find, body, commit, request }) {
        const { messageId } = await body();
        keepOpen(request);
        return forks.fork(find, messageId, (end) => commit(() => showConversation(end())));
      },
    }),
    route({
      method: "GET",
      path: "/v1/instances/:instanceId/agents/:agentId/context",
      name: "getAgentContext",
      tag: "conversations",
      summary: "What the agent's next prompt would hold, piece by piece",
      description: "Of its default conversation, or of the one that is named. Values of secrets are hidden.",
      access: "read",
      bound: "texts",
      query: z.object({ conversationId: idForm("conv").optional() }),
      answer: ContextRecord,
      find(asked) {
        const found = ownAgent(asked);
        const { conversationId } = queryOf(asked.request);
        return { ...found, conversation: conversations.get(found.agent, conversationId) };
      },
      async handle({ found: { agent, conversation }, query }) {
        query();
        return withoutSecrets(context(agent, conversation), (text) => redact(agent.instanceId, text));
      },
    }),
  ];
}

const positionOf = ({ updatedAt, conversationId }: Conversation): string => `${updatedAt} ${conversationId}`;

function markOf(position: string): ActivityMark {
  const [updatedAt, conversationId = ""] = position.split(" ");
  return { updatedAt: Number(updatedAt), conversationId };
}
