import type { Json } from "./openapi-components.ts";

const RUN = '"runId":"run_0190f5e2c4a87b3d8e1f6a2b4c5d7e90","conversationId":"conv_0190f5e2c4a87b3d8e1f6a2b4c5d7e90"';
const frame = (id: number, type: string, more = ""): string =>
  `id: ${id}\nevent: ${type}\ndata: {"id":${id},"type":"${type}","agentId":"agt_0190f5e2c4a87b3d8e1f6a2b4c5d7e90",${RUN},"createdAt":"2026-11-22T10:00:00.000Z"${more}}\n\n`;

const STREAM = `retry: 2000\n\n${frame(41, "run.started")}${frame(42, "message.delta", ',"delta":"Hello"')}: ping\n\n`;

/**
 * OpenAPI 3.1 has no word for a stream's events: they are a text, whose schema names that of the events' data as JSON
 * Schema does for encoded contents.
 */
export const eventsOf = (data: Json) => ({
  schema: {
    type: "string",
    description:
      "Server-sent events. Each has an `id`, its type as `event`, and as `data` one JSON object on one line, described by " +
      "`contentSchema`. The stream begins with `retry: 2000`; `: ping` every 15 seconds shows that it is alive",
    contentMediaType: "text/event-stream",
    contentSchema: data,
  },
  example: STREAM,
});

/** The events of the OpenAI-compatible routes. */
export const openAiEvents = (example: string) => ({
  schema: {
    type: "string",
    description: "Server-sent events, as OpenAI's clients expect them",
    contentMediaType: "text/event-stream",
  },
  example,
});

/** The messages of MCP. */
export const RPC_EVENTS = {
  schema: {
    type: "string",
    description: "Server-sent events, each a message of JSON-RPC",
    contentMediaType: "text/event-stream",
  },
  example: 'event: message\ndata: {"jsonrpc":"2.0","id":1,"result":{}}\n\n',
};
