import { z } from "zod";
import type { Caller } from "../accounts/caller.ts";
import type { Agents, FoundAgent } from "../agents/agents.ts";
import { Reply } from "../http/answer.ts";
import { flag, spokenText, trimmedText } from "../http/fields.ts";
import type { LastingAnswer, LastingAnswers } from "../http/lasting-answers.ts";
import { pageOf, pageQuery, toPage } from "../http/paging.ts";
import { queryOf } from "../http/request.ts";
import { type Asked, type Route, route } from "../http/route.ts";
import { AppError, notFound } from "../lib/app-error.ts";
import { idForm } from "../lib/forms.ts";
import type { Conversations } from "./conversations.ts";
import type { EventLog } from "./events/event-log.ts";
import type { Hub, Subscription } from "./events/hub.ts";
import { type Messages, WHILE_RUNNING } from "./messages.ts";
import { MessageRecord, RunRecord, showMessage, showRun } from "./record.ts";
import type { EndedRun } from "./runs/ending.ts";
import type { Runs } from "./runs/runs.ts";
import { RUN_STATUSES, type Run } from "./schema.ts";

export interface MessageRouteParts {
  agents: Agents;
  messages: Messages;
  conversations: Conversations;
  runs: Runs;
  events: EventLog;
  hub: Hub;
  lasting: LastingAnswers;
  /** Keeps a stream's connection open while nothing is said on it. */
  keepOpen(request: Request): void;
}

const AGENT = "/v1/instances/:instanceId/agents/:agentId";

const senderPart = (expected: string) => trimmedText(1, 200, expected).optional();
const MessageInput = z.object({
  message: spokenText(32_000),
  sender: z
    .object(
      {
        type: senderPart("1 to 200 characters"),
        id: senderPart("1 to 200 characters"),
        name: senderPart("1 to 200 characters"),
      },
      { error: "an object with type, id and name" },
    )
    .nullish(),
  stream: flag.nullish(),
  conversationId: idForm("conv").nullish().describe("The agent's default conversation where none is named"),
  whileRunning: z
    .enum(WHILE_RUNNING, { error: "queue, interrupt or reject" })
    .nullish()
    .describe("What becomes of it while its conversation has a run that is not over; queue where nothing is said"),
});

const ofConversation = idForm("conv").optional().describe("Of this conversation");

const ORDER = "asc or desc";
const AFTER = "The id of an event: goes on behind it; 0 is the beginning of what is kept";
const CURSOR = "the id of an event, in decimal digits";

export function messageRoutes(parts: MessageRouteParts): Route[] {
  const { agents, messages, conversations, runs, events, hub, lasting, keepOpen } = parts;

  const own = ({ caller, params }: Asked<{ instanceId: string; agentId: string }>) =>
    agents.get(caller, params.instanceId, params.agentId);
  const ownRun = (asked: Asked<{ instanceId: string; agentId: string; runId: string }>) =>
    runs.get(own(asked).agent.agentId, asked.params.runId);

  /** The agent, and the conversation that the query names, if any: looked for before the rest of the query is checked. */
  const named = (asked: Asked<{ instanceId: string; agentId: string }>) => {
    const { agent } = own(asked);
    const { conversationId } = queryOf(asked.request);
    return { agent, named: conversationId === undefined ? null : conversations.get(agent, conversationId) };
  };

  function eventStream(request: Request, place: LastingAnswer, subscription: Subscription): Response {
    keepOpen(request);
    const { body, end } = hub.open(subscription, place.close);
    place.endWith(end);
    // HEAD comes through the same route, and would wait for the length of a body that does not end.
    if (request.method === "HEAD") end();
    return new Response(request.method === "HEAD" ? null : body, {
      headers: {
        "Content-Type": "text/event-stream; charset=utf-8",
        "Cache-Control": "no-store",
        "X-Accel-Buffering": "no",
      },
    });
  }

  /**
   * The answer to a message, in the form that its request asks for. What lasts has its place before the message is
   * written: nobody is told to come again later about a message that is on its way.
   */
  async function answer(request: Request, caller: Caller, stream: boolean, send: () => Promise<Run>): Promise<unknown> {
    if (!stream && /(^|[\s,;])respond-async([\s,;]|$)/i.test(request.headers.get("prefer") ?? "")) {
      const { runId, messageId, status } = await send();
      return new Reply(202, { runId, messageId, status }, { "Preference-Applied": "respond-async" });
    }
    const place = lasting.open(caller, "run");
    try {
      const { runId, agentId, conversationId, firstEventId } = await send();
      if (stream) return eventStream(request, place, { agentId, after: firstEventId - 1, conversationId, runId });
      keepOpen(request);
      const ended = await runs.whenEnded(runId);
      place.close();
      return replyOf(ended);
    } catch (error) {
      place.close();
      throw error;
    }
  }

  return [
    route({
      method: "POST",
      path: `${AGENT}/messages`,
      name: "createAgentMessage",
      tag: "messages",
      summary: "Send a message; the answer is the agent's message, or its events as they come",
      access: "chat",
      bound: "run",
      body: MessageInput,
      answer: MessageRecord,
      errors: ["conflict", "rate_limited", "model_error", "loop_detected", "instance_not_ready"],
      find: own,
      commit: "shared",
      async handle({ caller, body, commit, request }) {
        const input = await body();
        const send = ({ instance, agent }: FoundAgent) => {
          const { conversationId } = conversations.get(agent, input.conversationId);
          const { type = "human", id = caller.accountId, name = caller.name } = input.sender ?? {};
          const whileRunning = input.whileRunning ?? "queue";
          return messages.send(instance, agent, {
            conversationId,
            text: input.message,
            sender: { type, id, name },
            whileRunning,
          });
        };
        return answer(request, caller, input.stream ?? false, () => commit(send, ({ runId }) => runId));
      },
      async replay({ caller, found: { agent }, body, request }, runId) {
        const { stream } = await body();
        return answer(request, caller, stream ?? false, async () => runs.get(agent.agentId, runId));
      },
    }),
    route({
      method: "GET",
      path: `${AGENT}/messages`,
      name: "listAgentMessages",
      tag: "messages",
      summary: "The conversation",
      access: "read",
      bound: "page",
      query: pageQuery.extend({
        order: z.enum(["asc", "desc"], { error: ORDER }).default("asc"),
        conversationId: ofConversation,
      }),
      answer: pageOf(MessageRecord),
      find: named,
      handle({ found: { agent, named }, query, startPage }) {
        const { order, ...page } = query();
        const { conversationId } = named ?? conversations.get(agent);
        const start = startPage(`messages ${conversationId} ${order}`, page);
        const after = start.position === null ? null : Number(start.position);
        const { rows, hasMore } = messages.page(conversationId, order, after, start.limit);
        return toPage(start, rows, (row) => String(row.messageSeq), showMessage, hasMore);
      },
    }),
    route({
      method: "DELETE",
      path: `${AGENT}/messages`,
      name: "deleteAgentMessages",
      tag: "messages",
      summary: "Start a fresh conversation; the old one is gone",
      access: "write",
      bound: "record",
      query: z.object({ conversationId: ofConversation }),
      answer: z.object({ agentId: idForm("agt"), deleted: z.literal(true) }),
      find: named,
      commit: "alone",
      write({ found: { agent, named } }) {
        messages.clear((named ?? conversations.get(agent)).conversationId);
        return { agentId: agent.agentId, deleted: true };
      },
    }),
    route({
      method: "GET",
      path: `${AGENT}/runs`,
      name: "listAgentRuns",
      tag: "runs",
      summary: "The agent's runs, newest first",
      access: "read",
      bound: "page",
      query: pageQuery.extend({
        status: z.enum(RUN_STATUSES, { error: `one of ${RUN_STATUSES.join(", ")}` }).optional(),
        conversationId: ofConversation,
      }),
      answer: pageOf(RunRecord),
      find: named,
      handle({ found: { agent, named }, query, startPage }) {
        const { status = null, ...page } = query();
        const whose = { agentId: agent.agentId, conversationId: named?.conversationId ?? null };
        const start = startPage(`runs ${whose.agentId} ${whose.conversationId ?? ""} ${status ?? ""}`, page);
        const before = start.position === null ? null : Number(start.position);
        return toPage(
          start,
          runs.page(whose, status, before, start.limit + 1),
          (run) => String(run.firstEventId),
          showRun,
        );
      },
    }),
    route({
      method: "GET",
      path: `${AGENT}/runs/:runId`,
      name: "getAgentRun",
      tag: "runs",
      summary: "One run",
      access: "read",
      bound: "record",
      answer: RunRecord,
      find: ownRun,
      handle: ({ found }) => showRun(found),
    }),
    route({
      method: "POST",
      path: `${AGENT}/runs/:runId/cancel`,
      name: "cancelRun",
      tag: "runs",
      summary: "Cancel a run; what it said so far is kept",
      access: "chat",
      bound: "record",
      answer: RunRecord,
      find: ownRun,
      commit: "shared",
      write: ({ found }) => showRun(runs.cancel(found)),
    }),
    route({
      method: "GET",
      path: `${AGENT}/events`,
      name: "streamAgentEvents",
      tag: "events",
      summary: "Everything that happens to the agent, as server-sent events",
      access: "read",
      bound: "stream",
      query: z.object({
        after: z
          .string()
          .meta({ description: AFTER, pattern: "^[0-9]+$", examples: ["0"] })
          .optional(),
        conversationId: idForm("conv").optional().describe("What happens in that conversation alone"),
        runId: idForm("run")
          .optional()
          .describe("That run's events alone: from its first where no cursor says otherwise, up to its last"),
      }),
      answer: "text/event-stream",
      errors: ["not_found"],
      find(asked) {
        const { agent, named: conversation } = named(asked);
        const { runId } = queryOf(asked.request);
        const run = runId === undefined ? null : runs.get(agent.agentId, runId);
        const conversationId = (conversation ?? run)?.conversationId ?? null;
        if (run && run.conversationId !== conversationId) throw notFound("run");
        return { agentId: agent.agentId, run, conversationId };
      },
      handle({ caller, found: { agentId, run, conversationId }, query, request }) {
        const cursor = cursorOf(request.headers.get("last-event-id"), query().after);
        const after = events.startAt(agentId, cursor ?? (run && run.firstEventId - 1));
        const runId = run?.runId ?? null;
        return eventStream(request, lasting.open(caller, "events"), { agentId, after, conversationId, runId });
      },
    }),
  ];
}

function replyOf({ run, reply }: EndedRun): MessageRecord {
  if (reply && run.status !== "failed") return reply;
  throw new AppError(run.errorCode ?? "internal_error", run.errorMessage ?? "the run failed");
}

/** The header wins over the query (docs/contract/api.md, Resuming a stream). Null: from now on. */
function cursorOf(header: string | null, query: string | undefined): number | null {
  const [name, text] = header === null ? ["after", query] : ["Last-Event-ID", header];
  if (text === undefined) return null;
  if (!/^\d+$/.test(text)) throw new AppError("invalid_request", `${name}: expected ${CURSOR}`);
  return Number(text);
}
