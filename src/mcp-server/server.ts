import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { takesType } from "../lib/accept.ts";
import { AppError } from "../lib/app-error.ts";
import { type McpApi, TOOLS } from "./tools.ts";

const INSTRUCTIONS =
  "Roost hosts AI agents. Find one with list_agents, talk with it by send_message, and read what it has written with " +
  "list_files and read_file. What waits for a person's decision is in list_approvals.";

/** Those with `initialize` (docs/contract/api.md, MCP); the package's own list goes further back. */
const REVISIONS = ["2025-11-25", "2025-06-18", "2025-03-26"];

/**
 * Answers one request of an MCP client, of either era: with `initialize` (`REVISIONS`), or without (2026-07-28).
 * Nothing is kept between requests. Who asks is known already.
 */
export async function answerMcp(request: Request, message: unknown, api: McpApi, requestId: string): Promise<Response> {
  const handler = createMcpHandler(() => createServer(api, requestId), {
    // There is nothing to subscribe to: an open stream would only take a connection.
    maxSubscriptions: 0,
  });
  return handler.fetch(withNamedTypes(request), { parsedBody: message });
}

const ANSWER_TYPES = ["application/json", "text/event-stream"];

/** Names the types of answers in `Accept` for the package, which knows no ranges: most clients send those. */
function withNamedTypes(request: Request): Request {
  const accept = request.headers.get("accept");
  if (!ANSWER_TYPES.every((type) => takesType(accept, type))) return request;
  const headers = new Headers(request.headers);
  headers.set("Accept", ANSWER_TYPES.join(", "));
  return new Request(request.url, { method: request.method, headers, signal: request.signal });
}

function createServer(api: McpApi, requestId: string): McpServer {
  const server = new McpServer(
    { name: "roost", title: "Roost", version: "1" },
    {
      instructions: INSTRUCTIONS,
      capabilities: { tools: { listChanged: false } },
      supportedProtocolVersions: REVISIONS,
    },
  );
  for (const { name, title, description, input, output, annotations, run } of TOOLS) {
    server.registerTool(
      name,
      { title, description, inputSchema: input, outputSchema: output, annotations },
      async (asked) => {
        try {
          const { data, text = JSON.stringify(data) } = await run(api, asked);
          return { content: [{ type: "text", text }], structuredContent: data };
        } catch (thrown) {
          return failure(thrown, requestId);
        }
      },
    );
  }
  return server;
}

/**
 * For the model, which may correct its call: the API's own error, with what to do next. It is no `structuredContent`: clients
 * hold that against the tool's schema, also in an error, and would throw the error away.
 */
function failure(thrown: unknown, requestId: string) {
  if (!(thrown instanceof AppError)) throw thrown;
  const { code, message, status } = thrown;
  const error = { code, message, status, requestId };
  return {
    isError: true,
    content: [{ type: "text" as const, text: `${code}: ${message}` }],
    _meta: { error },
  };
}
