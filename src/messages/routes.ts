import { z } from "zod";
import type { Agents } from "../agents/agents.ts";
import { Reply } from "../http/answer.ts";
import { flag, spokenText, trimmedText } from "../http/fields.ts";
import { pageOf, pageQuery, toPage } from "../http/paging.ts";
import { type Route, route } from "../http/route.ts";
import { AppError } from "../lib/app-error.ts";
import type { EventLog } from "./event-log.ts";
import type { Hub } from "./hub.ts";
import type { Messages } from "./messages.ts";
import { MessageRecord, RunRecord, showMessage, showRun } from "./record.ts";
import type { Runs } from "./runs.ts";
import type { Run } from "./table.ts";

export interface MessageRouteParts {
  agents: Agents;
  messages: Messages;
  runs: Runs;
  events: EventLog;
  hub: Hub;
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
});

const ORDER = "asc or desc";
const CURSOR = "the id of an event, in decimal digits";

export function messageRoutes({ agents, messages, runs, events, hub, keepOpen }: MessageRouteParts): Route[] {
  function eventStream(request: Request, agentId: string, after: number, runId: string | null): Response {
    keepOpen(request);
    // HEAD comes through the same route, and would wait for the length of a body that does not end.
    const body = request.method === "HEAD" ? null : hub.open({ agentId, after, runId });
    return new Response(body, {
      headers: {
        "Content-Type": "text/event-stream; charset=utf-8",
        "Cache-Control": "no-store",
        "X-Accel-Buffering": "no",
      },
    });
  }

  /** The answer to a message, in the form that its request asked for. */
  async function answer(request: Request, run: Run, stream: boolean): Promise<unknown> {
    if (stream) return eventStream(request, run.agentId, run.firstEventId - 1, run.runId);
    if (/(^|[\s,;])respond-async([\s,;]|$)/i.test(request.headers.get("prefer") ?? "")) {
      return new Reply(
        202,
        { runId: run.runId, messageId: run.messageId, status: run.status },
        { "Preference-Applied": "respond-async" },
      );
    }
    keepOpen(request);
    const { run: ended, reply } = await runs.whenEnded(run.runId);
    if (reply && ended.status !== "failed") return reply;
    const code = ended.errorCode === "model_error" ? "model_error" : "internal_error";
    throw new AppError(code, ended.errorMessage ?? "the run failed");
  }

  return [
    route({
      method: "POST",
      path: `${AGENT}/messages`,
      summary: "Send a message; the answer is the agent's message, or its events as they come",
      access: "chat",
      body: MessageInput,
      answer: MessageRecord,
      errors: ["rate_limited", "model_error", "instance_not_ready"],
      async handle({ caller, params, body, once, request }) {
        agents.get(caller, params.instanceId, params.agentId);
        const input = await body();
        const run = await once(
          () => {
            const { instance, agent } = agents.get(caller, params.instanceId, params.agentId);
            const { type = "human", id = caller.accountId, name = caller.name } = input.sender ?? {};
            const sender = { type, id, name };
            return messages.send(instance, agent, { text: input.message, sender });
          },
          ({ runId }) => runId,
        );
        return answer(request, run, input.stream ?? false);
      },
      async replay({ caller, params, body, request }, runId) {
        const { agent } = agents.get(caller, params.instanceId, params.agentId);
        const { stream } = await body();
        return answer(request, runs.get(agent.agentId, runId), stream ?? false);
      },
    }),
    route({
      method: "GET",
      path: `${AGENT}/messages`,
      summary: "The conversation",
      access: "read",
      query: pageQuery.extend({ order: z.enum(["asc", "desc"], { error: ORDER }).default("asc") }),
      answer: pageOf(MessageRecord),
      handle({ caller, params, query, startPage }) {
        const { agent } = agents.get(caller, params.instanceId, params.agentId);
        const { order, ...page } = query();
        const start = startPage(`messages ${agent.agentId} ${order}`, page);
        const after = start.position === null ? null : Number(start.position);
        const rows = messages.page(agent, order, after, start.limit + 1);
        return toPage(start, rows, (row) => String(row.messageSeq), showMessage);
      },
    }),
    route({
      method: "DELETE",
      path: `${AGENT}/messages`,
      summary: "Start a fresh conversation; the old one is gone",
      access: "write",
      answer: z.object({ agentId: z.string(), deleted: z.literal(true) }),
      handle({ caller, params }) {
        const { agent } = agents.get(caller, params.instanceId, params.agentId);
        messages.clear(agent);
        return { agentId: agent.agentId, deleted: true };
      },
    }),
    route({
      method: "GET",
      path: `${AGENT}/runs/:runId`,
      summary: "One run",
      access: "read",
      answer: RunRecord,
      handle({ caller, params }) {
        const { agent } = agents.get(caller, params.instanceId, params.agentId);
        return showRun(runs.get(agent.agentId, params.runId));
      },
    }),
    route({
      method: "POST",
      path: `${AGENT}/runs/:runId/cancel`,
      summary: "Cancel a run; what it said so far is kept",
      access: "chat",
      answer: RunRecord,
      async handle({ caller, params, body, once }) {
        const { agent } = agents.get(caller, params.instanceId, params.agentId);
        runs.get(agent.agentId, params.runId);
        await body();
        return once(() => showRun(runs.cancel(runs.get(agent.agentId, params.runId))));
      },
    }),
    route({
      method: "GET",
      path: `${AGENT}/events`,
      summary: "Everything that happens to the agent, as server-sent events",
      access: "read",
      query: z.object({ after: z.string().optional() }),
      answer: "text/event-stream",
      handle({ caller, params, query, request }) {
        const { agent } = agents.get(caller, params.instanceId, params.agentId);
        const after = cursorOf(request.headers.get("last-event-id"), query().after);
        if (after !== null) events.checkCursor(agent.agentId, after);
        return eventStream(request, agent.agentId, after ?? events.lastEventId(agent.agentId), null);
      },
    }),
  ];
}

/** The header wins over the query (api.md section 5, rule 4). Null: from now on. */
function cursorOf(header: string | null, query: string | undefined): number | null {
  const [name, text] = header === null ? ["after", query] : ["Last-Event-ID", header];
  if (text === undefined) return null;
  if (!/^\d+$/.test(text)) throw new AppError("invalid_request", `${name}: expected ${CURSOR}`);
  return Number(text);
}
