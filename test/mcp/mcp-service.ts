import {
  type CallToolResult,
  createMcpHandler,
  Server,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { z } from "zod";

/** A tool of a test's server. */
export interface ServiceTool {
  name: string;
  description?: string;
  input?: z.ZodObject;
  annotations?: Record<string, boolean>;
  run?: (input: Record<string, unknown>) => Promise<CallToolResult> | CallToolResult;
}

/** An MCP server on loopback, made of the protocol's own package. */
export interface McpService {
  url: string;
  /** For ROOST_EGRESS. */
  host: string;
  /** What it offers from now on, to whoever lists it; those who listen are told. */
  offer(...tools: ServiceTool[]): Promise<void>;
  /** Calls of tools that have arrived: names and inputs. */
  calls: { name: string; input: Record<string, unknown> }[];
  /** The headers of each request. */
  requests: Headers[];
  /** Instead of the protocol's answer to the next requests of this method of JSON-RPC, until it returns undefined. */
  intercept: (method: string, request: Request) => Promise<Response | undefined> | Response | undefined;
  stop(): Promise<void>;
}

export const text = (said: string): CallToolResult => ({ content: [{ type: "text", text: said }] });

/** `2026`: stateless, with `server/discover`. `2025`: `initialize` and a session; it refuses what it does not know. */
export type Era = "2025" | "2026";

export function startMcpService(era: Era, ...tools: ServiceTool[]): McpService {
  let offered = tools;
  const calls: McpService["calls"] = [];
  const requests: Headers[] = [];

  function create(): Server {
    const server = new Server({ name: "test", version: "1" }, { capabilities: { tools: { listChanged: true } } });
    server.setRequestHandler("tools/list", () => ({
      tools: offered.map(({ name, description = `Does ${name}.`, input = z.object({}), annotations = {} }) => ({
        name,
        description,
        annotations,
        inputSchema: z.toJSONSchema(input) as { type: "object" },
      })),
    }));
    server.setRequestHandler("tools/call", async ({ params }) => {
      const tool = offered.find(({ name }) => name === params.name);
      const input = params.arguments ?? {};
      calls.push({ name: params.name, input });
      return (await tool?.run?.(input)) ?? text("done");
    });
    return server;
  }

  const handler = createMcpHandler(create, { legacy: "reject" });
  const sessions = new Map<string, { server: Server; transport: WebStandardStreamableHTTPServerTransport }>();

  async function answer2025(request: Request, message: { method?: string } | undefined): Promise<Response> {
    const id = request.headers.get("mcp-session-id");
    const known = id === null ? undefined : sessions.get(id);
    if (known) return known.transport.handleRequest(request, message === undefined ? {} : { parsedBody: message });
    if (id !== null) return new Response("no such session", { status: 404 });
    if (message?.method !== "initialize") return new Response("initialize first", { status: 400 });
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      onsessioninitialized: (session) => void sessions.set(session, { server, transport }),
    });
    const server = create();
    await server.connect(transport);
    return transport.handleRequest(request, { parsedBody: message });
  }

  const listener = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      requests.push(request.headers);
      const message = request.method === "POST" ? await request.clone().json() : undefined;
      const instead = await service.intercept(message?.method ?? request.method, request);
      if (instead) return instead;
      if (era === "2025") return answer2025(request, message);
      return handler.fetch(request, message === undefined ? {} : { parsedBody: message });
    },
  });

  const service: McpService = {
    url: `http://127.0.0.1:${listener.port}/mcp`,
    host: `127.0.0.1:${listener.port}`,
    async offer(...next) {
      offered = next;
      handler.notify.toolsChanged();
      for (const { server } of sessions.values()) await server.sendToolListChanged().catch(() => {});
    },
    calls,
    requests,
    intercept: () => undefined,
    async stop() {
      for (const { transport } of sessions.values()) await transport.close();
      await handler.close();
      await listener.stop(true);
    },
  };
  return service;
}
