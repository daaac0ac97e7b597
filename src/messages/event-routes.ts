import { z } from "zod";
import type { Agent } from "../agents/schema.ts";
import { STREAM_HEADERS, streamHead } from "../http/answer.ts";
import type { LastingAnswer, LastingAnswers } from "../http/lasting-answers.ts";
import { queryOf } from "../http/request.ts";
import { type Asked, type Route, route } from "../http/route.ts";
import { AppError, notFound } from "../lib/app-error.ts";
import { idForm } from "../lib/forms.ts";
import type { EventLog } from "./events/event-log.ts";
import { EventRecord } from "./events/event-record.ts";
import type { EventStream, Hub, Subscription } from "./events/hub.ts";
import type { Runs } from "./runs/runs.ts";
import { type Conversation, isUnfinished } from "./schema.ts";

export interface EventStreamParts {
  hub: Hub;
  lasting: LastingAnswers;
  /** Keeps a connection open while nothing is sent on it. */
  keepOpen(request: Request): void;
}

/** Event streams as HTTP responses. */
export interface EventStreams {
  /** Opens a stream that occupies this place until it ends. */
  follow(place: LastingAnswer, open: Hub["open"], subscription: Omit<Subscription, "owner">): EventStream;
  /** Waits until the stream has begun; throws if it cannot. */
  toResponse(request: Request, stream: EventStream): Promise<Response>;
}

export const createEventStreams = ({ keepOpen }: EventStreamParts): EventStreams => ({
  follow(place, open, subscription) {
    const stream = open({ ...subscription, owner: place.accountId }, place.close, place.charge);
    place.endWith(stream.end);
    return stream;
  },
  async toResponse(request, { body, begun, end }) {
    keepOpen(request);
    await begun;
    // Nobody would end the stream of a client that has left meanwhile.
    if (request.signal.aborted) end();
    // HEAD uses the same route, and would wait for the length of a body that never ends.
    if (request.method !== "HEAD") return new Response(body, { headers: STREAM_HEADERS });
    end();
    return streamHead(STREAM_HEADERS);
  },
});

export interface EventRouteParts extends EventStreamParts {
  runs: Runs;
  events: EventLog;
  streams: EventStreams;
  /** The agent, and the conversation that the query names. */
  named(asked: Asked<{ instanceId: string; agentId: string }>): { agent: Agent; named: Conversation | null };
}

const AFTER = "The id of an event: the stream continues after it; 0 is the beginning of what is kept";
const CURSOR = "the id of an event, in decimal digits";

export function eventRoute({ runs, events, hub, lasting, streams, named }: EventRouteParts): Route {
  return route({
    method: "GET",
    path: "/v1/instances/:instanceId/agents/:agentId/events",
    name: "streamAgentEvents",
    tag: "events",
    summary: "Everything that happens to the agent, as server-sent events",
    description:
      "The stream stays open until the client leaves, or with `runId` until the run ends. To continue after a broken connection, send the last `id` as `Last-Event-ID` or `after`: no event is lost, none comes twice. A browser's `EventSource` cannot send the credential; read the body of a `fetch` instead.",
    access: "read",
    bound: "stream",
    query: z.object({
      after: z
        .string()
        .meta({ description: AFTER, pattern: "^[0-9]+$", examples: ["0"] })
        .optional(),
      conversationId: idForm("conv").optional().describe("Only what happens in this conversation"),
      runId: idForm("run")
        .optional()
        .describe("Only this run's events: from its first, unless a cursor is given, to its last"),
    }),
    answer: "text/event-stream",
    events: EventRecord,
    errors: ["not_found"],
    find(asked) {
      const { agent, named: conversation } = named(asked);
      const { runId } = queryOf(asked.request);
      const run = runId === undefined ? null : runs.get(agent.agentId, runId);
      const conversationId = (conversation ?? run)?.conversationId ?? null;
      if (run && run.conversationId !== conversationId) throw notFound("run");
      return { agentId: agent.agentId, run, conversationId };
    },
    async handle({ caller, found: { agentId, run, conversationId }, query, request }) {
      const cursor = cursorOf(request.headers.get("last-event-id"), query().after);
      const after = cursor === null && run ? events.startOf(run) : events.startAt(agentId, cursor);
      const runId = run?.runId ?? null;
      const isOver = run !== null && !isUnfinished(run);
      const place = lasting.open(caller, "events");
      const response = await streams.toResponse(
        request,
        streams.follow(place, hub.open, { agentId, after, conversationId, runId, isOver }),
      );
      // A stream that breaks before its first event is continued from here.
      response.headers.set("Last-Event-ID", String(after));
      return response;
    },
  });
}

/** The header takes precedence over the query (docs/contract/api.md, Resuming a stream). Null: from now on. */
function cursorOf(header: string | null, query: string | undefined): number | null {
  const [name, text] = header === null ? ["after", query] : ["Last-Event-ID", header];
  if (text === undefined) return null;
  if (!/^\d+$/.test(text)) throw new AppError("invalid_request", `${name}: expected ${CURSOR}`);
  return Number(text);
}
