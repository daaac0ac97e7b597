import { z } from "zod";
import { hashOfJson } from "../lib/canonical-json.ts";
import { OUTGOING } from "../limits/outgoing.ts";
import type { Tool, ToolContext } from "../tools/tool.ts";
import type { MoreTools } from "../tools/toolboxes.ts";
import type { ToolAnswer } from "./client.ts";
import type { Connections } from "./connections.ts";
import { stateOf } from "./pinning.ts";
import type { McpServer, SeenTool, ServerAddress } from "./schema.ts";
import { MAX_TOLD, ServerError, type ServerFault, said } from "./server-error.ts";
import { failedLook, type Look, type ServerParts, type Servers } from "./servers.ts";
import { exposedName } from "./tool-name.ts";

const { deadlineMs, callMs } = OUTGOING.mcp;

export interface McpToolParts {
  servers: Pick<Servers, "page" | "find" | "versionOf">;
  note(server: ServerAddress, look: Look): Promise<unknown>;
  connections: Pick<Connections, "use" | "retire">;
  redact: ServerParts["redact"];
}

/** What the server itself checks besides: nothing of a stranger's schema is run here. */
const anInput = z.lazy(() => z.record(z.string(), z.unknown()));

/** The approved tools of instances' servers, as tools of their agents (docs/contract/runtime.md, MCP servers). */
export function createMcpTools(parts: McpToolParts): MoreTools {
  const { servers, connections, note, redact } = parts;

  /** As it is now. Throws where it is no longer what was approved. */
  function current(serverId: string, { name }: SeenTool): { server: McpServer; tool: SeenTool } {
    const server = servers.find(serverId);
    if (!server) throw new Error("its MCP server was removed");
    const tool = server.tools.find((one) => one.name === name);
    if (tool && stateOf(tool) === "approved") return { server, tool };
    throw new Error(
      `the MCP server ${server.name} has changed its tool ${name}, or no longer offers it: its owner has to approve that first`,
    );
  }

  /** Changes with everything that a person approves a call for, besides its input. */
  const basisOf = ({ server, tool }: ReturnType<typeof current>): string =>
    hashOfJson([server.serverId, server.url, tool.hash]);

  /** Throws where what a person has approved, or the model was told of, is not what would be called. */
  function requireSame(serverId: string, listed: SeenTool, basis: ToolContext["basis"]) {
    const found = current(serverId, listed);
    if (found.tool.hash === listed.hash && (basis == null || basis === basisOf(found))) return found;
    throw new Error(`the tool ${listed.name} of the MCP server ${found.server.name} has changed: look at it again`);
  }

  /** One that was refused without a session, which the server may have forgotten, is made again in a new one. */
  async function call(
    serverId: string,
    listed: SeenTool,
    input: Record<string, unknown>,
    context: ToolContext,
    isAgain = false,
  ): Promise<ToolAnswer> {
    const { signal, basis } = context;
    const { server } = requireSame(serverId, listed, basis);
    let isSent = false;
    try {
      return await connections.use(server, signal, async (client) => {
        // It was listed again meanwhile, if it had to be.
        const { tool } = requireSame(serverId, listed, basis);
        isSent = true;
        return await client.callTool(tool, input, signal);
      });
    } catch (thrown) {
      if (!(thrown instanceof ServerError) || signal.aborted) throw thrown;
      if (thrown.fault !== "refused" && thrown.fault !== "busy") connections.retire(serverId);
      if (thrown.fault === "session" && isSent && !isAgain) {
        return await call(serverId, listed, input, context, true);
      }
      const isNews = thrown.fault === "authorization" || (!isSent && thrown.fault !== "busy");
      if (isNews) await note(server, await failedLook(server, thrown, redact));
      const message = said(await redact(server.instanceId, thrown.message), MAX_TOLD);
      throw new Error(wordsOf(server.name, thrown.fault, message, isSent), { cause: thrown });
    }
  }

  function toolOf(server: McpServer, tool: SeenTool): Tool<typeof anInput> {
    const { serverId, name } = server;
    return {
      name: exposedName(name, tool.name),
      description: tool.description,
      input: anInput,
      inputSchema: tool.inputSchema,
      source: `mcp:${name}`,
      // The server's own deadlines come first, and say more.
      deadlineMs: 2 * deadlineMs + callMs,
      changes: "outside",
      defaultPolicy: "ask",
      untrustedOutput: true,
      basisOf: () => basisOf(current(serverId, tool)),
      async run(input, context) {
        const { text, isError } = await call(serverId, tool, input, context);
        if (isError) throw new Error(text);
        return text;
      },
    };
  }

  return {
    versionOf: servers.versionOf,
    toolsOf: (instanceId) =>
      servers
        .page(instanceId, null, 100)
        .flatMap((server) =>
          server.tools.filter((tool) => stateOf(tool) === "approved").map((tool) => toolOf(server, tool) as Tool),
        ),
  };
}

function wordsOf(name: string, fault: ServerFault, message: string, isSent: boolean): string {
  if (fault === "authorization") return `the MCP server ${name} has to be authorized by this agent's owner: ${message}`;
  if (!isSent || fault === "unreachable") return `the MCP server ${name} could not be reached: ${message}`;
  if (fault === "unknown") {
    return `it is not known whether the MCP server ${name} has done this: ${message}. Do not repeat it without finding out`;
  }
  return `the MCP server ${name} has not done this: ${message}`;
}
