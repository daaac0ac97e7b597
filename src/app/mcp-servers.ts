import type { ApprovalRules } from "../approvals/rules.ts";
import type { Instances } from "../instances/instances.ts";
import type { Log } from "../lib/log.ts";
import { type Connections, createConnections } from "../mcp/connections.ts";
import type { ServerAddress } from "../mcp/schema.ts";
import { ServerError } from "../mcp/server-error.ts";
import { type Changed, createServers, failedLook, type Look, type Servers } from "../mcp/servers.ts";
import { createMcpTools } from "../mcp/tools.ts";
import type { MoreTools } from "../tools/toolboxes.ts";
import type { Foundation } from "./foundation.ts";
import type { Web } from "./web.ts";

export interface McpParts extends Pick<Foundation, "store" | "clock" | "audit"> {
  log: Log;
  web: Pick<Web, "egress" | "broker">;
  instances: Pick<Instances, "find" | "listen">;
  rules: Pick<ApprovalRules, "forget">;
  tellAgents(instanceId: string, event: "mcp.changed", changed: Changed): void;
}

/** The MCP servers of instances: what is known of them, their clients, and their tools. */
export interface Mcp {
  servers: Servers;
  connections: Connections;
  tools: MoreTools;
}

export function createMcp({ store, clock, audit, log, web, instances, rules, tellAgents }: McpParts): Mcp {
  const { redact } = web.broker;
  const servers: Servers = createServers({
    ...{ store, clock, audit, redact },
    tellAgents: (instanceId, changed) => tellAgents(instanceId, "mcp.changed", changed),
    connections: () => connections,
    forgetApprovals: rules.forget,
  });
  const note = (server: ServerAddress, look: Look) => store.commitSoon(() => servers.note(server, look), "process");
  const connections = createConnections({
    ...{ clock, egress: web.egress, broker: web.broker },
    accountOf: (instanceId) => instances.find(instanceId)?.accountId ?? instanceId,
    authorizationOf: () => null,
    onListed: async (server, seen) => void (await note(server, { seen })),
    async onFailure(server, thrown) {
      const whose = { instanceId: server.instanceId, serverId: server.serverId };
      log.info({ ...whose, err: thrown }, "an MCP server could not be asked again for its tools");
      if (!(thrown instanceof ServerError)) return;
      const look = await failedLook(server, thrown, redact);
      await note(server, look).catch((err) => log.error({ ...whose, err }, "what an MCP server offers was not noted"));
    },
  });
  instances.listen({
    statusChanged: ({ instanceId, status }) => void (status !== "running" && connections.closeOf(instanceId)),
    runwayShort() {},
    removed: ({ instanceId }) => connections.closeOf(instanceId),
  });
  return { servers, connections, tools: createMcpTools({ servers, connections, note, redact }) };
}
