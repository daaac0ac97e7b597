import { z } from "zod";
import type { Agents } from "../agents/agents.ts";
import { STREAM_HEADERS } from "../http/answer.ts";
import { credentialEnded, type LastingAnswers } from "../http/lasting-answers.ts";
import { type Route, route } from "../http/route.ts";
import { AppError, notFound } from "../lib/app-error.ts";
import type { Runs } from "../messages/runs/runs.ts";
import { requireOwnOrigin } from "./origin.ts";
import { createRunViews } from "./run-view.ts";

export interface McpRouteParts {
  /** The API's other routes, which the tools are made of. */
  routes: readonly Route[];
  agents: Pick<Agents, "find">;
  runs: Pick<Runs, "get" | "waitFor" | "listen">;
  lasting: LastingAnswers;
  ownUrls(): string[];
  /** Turns off the idle timeout of a request's connection. */
  keepOpen(request: Request): void;
  /** How long a message waits for its answer. */
  waitMs?: number | undefined;
}

/** Less than the minute after which clients give up. */
const WAIT_MS = 55_000;
/** Clients of 2025-03-26 may send several messages at once. */
const MAX_BATCH = 16;
const UNKNOWN_INSTANCE = `inst_${"0".repeat(32)}`;

const MESSAGE = "a request or a notification of JSON-RPC 2.0, or 1 to 16 of them";

const Message = z.lazy(() =>
  z
    .looseObject({
      jsonrpc: z.literal("2.0", { error: MESSAGE }),
      id: z.union([z.string(), z.int()], { error: "a string or a whole number" }).optional(),
      method: z.string({ error: MESSAGE }).min(1, { error: MESSAGE }),
      params: z.record(z.string(), z.unknown(), { error: "an object" }).optional(),
    })
    .meta({ description: "A request or a notification of the Model Context Protocol" }),
);
const Answer = z.lazy(() =>
  z.looseObject({ jsonrpc: z.literal("2.0") }).meta({
    description: "The answer to it",
    examples: [{ jsonrpc: "2.0", id: 1, result: { tools: [] } }],
  }),
);

/** A route's error as a tool says it: its callers know agents by their ids alone, and continue lists by a `cursor`. */
function inToolsWords(error: unknown): unknown {
  if (!(error instanceof AppError)) return error;
  const { code, message } = error;
  if (message === notFound("instance").message) return new AppError(code, "agent not found; list_agents lists them");
  if (!message.startsWith("after: ")) return error;
  return new AppError(code, "cursor: expected the nextCursor of an earlier call", { param: "cursor" });
}

/** Roost as an MCP server (docs/contract/api.md, MCP). */
export function mcpRoutes(parts: McpRouteParts): Route[] {
  const { routes, agents, runs, lasting, ownUrls, keepOpen, waitMs = WAIT_MS } = parts;
  const byName = new Map(routes.map((one) => [one.name, one]));
  const views = createRunViews(runs);
  return [
    route({
      method: "POST",
      path: "/v1/mcp",
      name: "callMcp",
      tag: "mcp",
      summary: "The Model Context Protocol: agents as tools of another program",
      access: "read",
      bound: "run",
      idempotent: false,
      protocol: "json-rpc",
      body: z.union([Message, z.array(Message).min(1, { error: MESSAGE }).max(MAX_BATCH, { error: MESSAGE })], {
        error: MESSAGE,
      }),
      example: { jsonrpc: "2.0", id: 1, method: "tools/list" },
      answer: Answer,
      find: ({ request }) => requireOwnOrigin(request.headers, ownUrls()),
      async handle({ caller, body, request, requestId, ask: askRoute }) {
        const message = await body();
        const at = (agentId: string) => ({ instanceId: agents.find(agentId)?.instanceId ?? UNKNOWN_INSTANCE, agentId });
        const ask = async (name: string, asked: Parameters<typeof askRoute>[1]) => {
          const inner = byName.get(name);
          if (inner === undefined) throw new Error(`there is no route ${name}`);
          try {
            return (await askRoute(inner, asked)).value;
          } catch (error) {
            throw inToolsWords(error);
          }
        };
        async function run(agentId: string, runId: string) {
          // Whether the caller may see it is for the route to say.
          await ask("getAgentRun", { params: { ...at(agentId), runId } });
          return views.of(agentId, runId);
        }
        async function send(agentId: string, text: string, conversationId: string | undefined) {
          const place = lasting.open(caller, "run");
          const ended = new AbortController();
          place.endWith(() => ended.abort());
          try {
            keepOpen(request);
            const { runId } = (await ask("createAgentMessage", {
              params: at(agentId),
              body: { message: text, conversationId },
              headers: { Prefer: "respond-async" },
            })) as { runId: string };
            await views.settled(
              agentId,
              runId,
              AbortSignal.any([request.signal, ended.signal, AbortSignal.timeout(waitMs)]),
            );
            if (ended.signal.aborted) throw credentialEnded();
            // Its own run: at the rate's limit, too, the caller is told that the message was sent.
            return await views.of(agentId, runId);
          } finally {
            place.close();
          }
        }
        // Loaded when it is first needed.
        const { answerMcp } = await import("./server.ts");
        const answer = await answerMcp(request, message, { ask, at, run, send }, requestId);
        const isStream = answer.headers.get("content-type")?.startsWith("text/event-stream") ?? false;
        answer.headers.set("Cache-Control", isStream ? STREAM_HEADERS["Cache-Control"] : "no-store");
        return answer;
      },
    }),
  ];
}
