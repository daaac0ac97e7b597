import { z } from "zod";
import type { Agents, FoundAgent } from "../agents/agents.ts";
import { Reply } from "../http/answer.ts";
import { flag, spokenText, trimmedText } from "../http/fields.ts";
import { type LastingAnswer, onLeaving } from "../http/lasting-answers.ts";
import { pageOf, pageQuery, toPage } from "../http/paging.ts";
import { queryOf } from "../http/request.ts";
import { type Asked, type Route, route } from "../http/route.ts";
import { AppError } from "../lib/app-error.ts";
import { type Clock, secondsUntil } from "../lib/clock.ts";
import { idForm } from "../lib/forms.ts";
import { requireSchema } from "../lib/json-schema.ts";
import type { Caller } from "../limits/caller.ts";
import { MAX_MESSAGE } from "../limits/message-length.ts";
import type { Conversations } from "./conversations.ts";
import { createEventStreams, type EventStreamParts, eventRoute } from "./event-routes.ts";
import type { EventLog } from "./events/event-log.ts";
import { EventRecord } from "./events/event-record.ts";
import type { EventStream, Hub } from "./events/hub.ts";
import { type Messages, WHILE_RUNNING } from "./messages.ts";
import { MessageRecord, RunRecord, showMessage, showRun } from "./record.ts";
import type { EndedRun } from "./runs/ending.ts";
import type { RunWait } from "./runs/run-waits.ts";
import type { Runs } from "./runs/runs.ts";
import { RUN_STATUSES, type Run } from "./schema.ts";

export interface MessageRouteParts extends EventStreamParts {
  clock: Clock;
  agents: Agents;
  messages: Messages;
  conversations: Conversations;
  runs: Runs;
  events: EventLog;
}

/** What a run fails with, for whoever waits for its answer. */
export const RUN_ERRORS = [
  "budget_exceeded",
  "forbidden",
  "model_error",
  "output_invalid",
  "loop_detected",
  "instance_not_ready",
] as const;

const AGENT = "/v1/instances/:instanceId/agents/:agentId";

const SCHEMA = "a JSON Schema, as an object";
const senderPart = trimmedText(1, 200).optional();
const MessageInput = z.lazy(() =>
  z.object({
    message: spokenText(MAX_MESSAGE),
    sender: z
      .object({ type: senderPart, id: senderPart, name: senderPart }, { error: "an object with type, id and name" })
      .nullish(),
    stream: flag.nullish(),
    output: z
      .object({ schema: z.record(z.string(), z.unknown(), { error: SCHEMA }) }, { error: "an object with a schema" })
      .nullish()
      .describe("The form of the answer: its text is then JSON that fits this JSON Schema"),
    conversationId: idForm("conv").nullish().describe("By default the agent's default conversation"),
    whileRunning: z
      .enum(WHILE_RUNNING, { error: "queue, interrupt or reject" })
      .nullish()
      .describe("What happens to the message while its conversation has an unfinished run; by default queue"),
  }),
);

const ofConversation = idForm("conv").optional().describe("Only of this conversation");

const ORDER = "asc or desc";
const ASYNC = /(^|[\s,;])respond-async([\s,;]|$)/i;

export function messageRoutes(parts: MessageRouteParts): Route[] {
  const { clock, agents, messages, conversations, runs, hub, lasting, keepOpen } = parts;
  const streams = createEventStreams(parts);

  const own = ({ caller, params }: Asked<{ instanceId: string; agentId: string }>) =>
    agents.get(caller, params.instanceId, params.agentId);
  const ownRun = (asked: Asked<{ instanceId: string; agentId: string; runId: string }>) =>
    runs.get(own(asked).agent.agentId, asked.params.runId);

  /**
   * The agent, and the conversation that the query names, if any: looked up before the rest of the query is checked.
   */
  const named = (asked: Asked<{ instanceId: string; agentId: string }>) => {
    const { agent } = own(asked);
    const { conversationId } = queryOf(asked.request);
    return { agent, named: conversationId === undefined ? null : conversations.get(agent, conversationId) };
  };

  const followRun = (place: LastingAnswer, open: Hub["open"], run: Run): EventStream => {
    const { agentId, firstEventId, conversationId, runId } = run;
    return streams.follow(place, open, { agentId, after: firstEventId - 1, conversationId, runId });
  };

  /**
   * Responds to a message in the form that the request asks for: with the agent's message, with its events as they
   * come, or immediately. If `send` writes a message, it calls `whenQueued` in the same transaction. A lasting response
   * takes its place before the message is written, so that no client is told to retry a message that has been accepted.
   */
  async function answer(
    request: Request,
    caller: Caller,
    stream: boolean,
    send: (whenQueued: (run: Run) => void) => Promise<Run>,
  ): Promise<unknown> {
    if (!stream && ASYNC.test(request.headers.get("prefer") ?? "")) {
      const { runId, messageId, status } = await send(() => {});
      return new Reply(202, { runId, messageId, status }, { "Preference-Applied": "respond-async" });
    }
    const place = lasting.open(caller, "run");
    let opened: EventStream | undefined;
    let wait: RunWait | undefined;
    try {
      const run = await send((queued) => {
        if (stream) opened = followRun(place, hub.openAhead, queued);
        // Later, the run may have ended already, and its answer been cleared.
        else wait = runs.waitFor(queued.runId);
      });
      if (stream) return await streams.toResponse(request, opened ?? followRun(place, hub.open, run));
      keepOpen(request);
      wait ??= runs.waitFor(run.runId);
      onLeaving(place, request, wait.leave);
      const answered = await wait.ended;
      place.close();
      return replyOf(answered, clock);
    } catch (error) {
      opened?.end();
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
      description:
        "The answer takes as long as the model does. With `stream: true` it comes as events while it is written, with `Prefer: respond-async` as 202 at once. Messages of one conversation are answered one after the other.",
      access: "chat",
      bound: "run",
      body: MessageInput,
      example: { message: "What should I read on a train?" },
      answer: MessageRecord,
      events: EventRecord,
      errors: ["conflict", "rate_limited", ...RUN_ERRORS],
      find: own,
      commit: "shared",
      async handle({ caller, body, commit, request }) {
        const input = await body();
        const output = input.output && requireSchema(input.output.schema, "output.schema");
        const send = ({ instance, agent }: FoundAgent) => {
          const { conversationId } = conversations.get(agent, input.conversationId);
          const { type = "human", id = caller.accountId, name = caller.name } = input.sender ?? {};
          const whileRunning = input.whileRunning ?? "queue";
          return messages.send(instance, agent, {
            conversationId,
            text: input.message,
            sender: { type, id, name },
            whileRunning,
            output: output ? { name: "answer", schema: output } : null,
          });
        };
        return answer(request, caller, input.stream ?? false, (whenQueued) =>
          commit(
            (found) => {
              const run = send(found);
              whenQueued(run);
              return run;
            },
            ({ runId }) => runId,
          ),
        );
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
      summary: "The messages of a conversation, oldest first by default",
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
      summary: "Clear the conversation: its messages are removed, its runs cancelled",
      access: "write",
      bound: "record",
      query: z.object({ conversationId: ofConversation }),
      answer: z.object({ agentId: idForm("agt"), deleted: z.literal(true) }),
      find: named,
      commit: "shared",
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
      summary: "Cancel a run; its text so far is kept",
      access: "chat",
      bound: "record",
      answer: RunRecord,
      find: ownRun,
      commit: "shared",
      write: ({ found }) => showRun(runs.cancel(found)),
    }),
    eventRoute({ ...parts, streams, named }),
  ];
}

function replyOf({ run, reply }: EndedRun, clock: Clock): MessageRecord {
  if (reply && run.status !== "failed") return reply;
  const { errorCode, errorMessage, retryAt } = run;
  throw new AppError(errorCode ?? "internal_error", errorMessage ?? "the run failed", {
    retryAfterSeconds: secondsUntil(clock, retryAt),
    isOfRun: true,
  });
}
