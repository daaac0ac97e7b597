import type { ApprovalRules } from "../approvals/rules.ts";
import type { Instances } from "../instances/instances.ts";
import type { Log } from "../lib/log.ts";
import { type Authorization, createAuthorization } from "../mcp/authorization/authorization.ts";
import { withTokens } from "../mcp/authorization/authorized-fetch.ts";
import { type Credentials, createCredentials, type OwnedServer } from "../mcp/authorization/credentials.ts";
import { type Connections, createConnections } from "../mcp/connections.ts";
import type { ServerAddress } from "../mcp/schema.ts";
import { ServerError } from "../mcp/server-error.ts";
import { type Changed, createServers, failedLook, type Look, MAX_SERVERS, type Servers } from "../mcp/servers.ts";
import { createMcpTools } from "../mcp/tools.ts";
import { createVault } from "../secrets/vault.ts";
import type { MoreTools } from "../tools/toolboxes.ts";
import type { Foundation } from "./foundation.ts";
import type { Web } from "./web.ts";

export interface McpParts extends Pick<Foundation, "store" | "clock" | "audit"> {
  log: Log;
  web: Pick<Web, "egress" | "broker">;
  instances: Pick<Instances, "find" | "listen">;
  rules: Pick<ApprovalRules, "forget">;
  masterKey: Buffer;
  publicUrl(): string;
  tellAgents(instanceId: string, event: "mcp.changed", changed: Changed): void;
}

/** The MCP servers of instances: what is known of them, their clients, and their tools. */
export interface Mcp {
  servers: Servers;
  connections: Connections;
  tools: MoreTools;
  authorization: Authorization;
  credentials: Credentials;
}

const NOT_ASKED = "an MCP server could not be asked again for its tools";

export function createMcp(parts: McpParts): Mcp {
  const { store, clock, audit, log, web, instances, rules, masterKey, publicUrl, tellAgents } = parts;
  const { egress } = web;
  const sealing = createVault(store, clock, masterKey);
  const { redact } = web.broker;
  const accountOf = (instanceId: string) => instances.find(instanceId)?.accountId ?? instanceId;
  const credentials = createCredentials({
    ...{ store, clock, egress, sealing },
    onRevocationFailed({ instanceId, serverId }, err) {
      const whose = { instanceId, serverId };
      log.info({ ...whose, err }, "an authorization of an MCP server could not be revoked");
    },
  });
  const servers: Servers = createServers({
    ...{ store, clock, audit, redact },
    tellAgents: (instanceId, changed) => tellAgents(instanceId, "mcp.changed", changed),
    connections: () => connections,
    forgetApprovals: rules.forget,
    forgetCredentials: credentials.forget,
    hasCredentials: credentials.has,
  });
  const find = (serverId: string): OwnedServer | undefined => {
    const server = servers.find(serverId);
    const accountId = server && instances.find(server.instanceId)?.accountId;
    return server && accountId !== undefined ? { ...server, accountId } : undefined;
  };
  const authorization = createAuthorization({
    ...{ store, clock, audit, egress, sealing, credentials, publicUrl, find },
    onFailed: servers.authorizationEnded,
  });
  const note = (server: ServerAddress, look: Look) =>
    store.commitSoon(() => servers.note(server, look), "process", accountOf(server.instanceId));
  const connections = createConnections({
    ...{ clock, egress, broker: web.broker, accountOf },
    authorized: (fetch, server) => withTokens(fetch, credentials, server),
    onListed: async (server, seen) => void (await note(server, { seen })),
    async onFailure(server, thrown) {
      const whose = { instanceId: server.instanceId, serverId: server.serverId };
      if (!(thrown instanceof ServerError)) {
        log.info({ ...whose, err: thrown }, NOT_ASKED);
        return;
      }
      try {
        // What the server said may repeat a token: it is in no log before that was taken out.
        const look = await failedLook(server, thrown, redact);
        log.info({ ...whose, ...look }, NOT_ASKED);
        await note(server, look);
      } catch (err) {
        log.error({ ...whose, err }, "what an MCP server offers was not noted");
      }
    },
  });
  instances.listen({
    statusChanged: ({ instanceId, status }) => void (status !== "running" && connections.closeOf(instanceId)),
    runwayShort() {},
    removed({ instanceId, accountId }) {
      for (const server of servers.page(instanceId, null, MAX_SERVERS)) credentials.forget({ ...server, accountId });
      connections.closeOf(instanceId);
    },
  });
  const tools = createMcpTools({ servers, connections, note, redact });
  return {
    ...{ servers, connections, tools, credentials },
    authorization: {
      ...authorization,
      async complete(returned) {
        const ending = await authorization.complete(returned);
        if (ending.outcome !== "authorized") return ending;
        const server = servers.find(ending.server.serverId);
        if (!server) return ending;
        try {
          await note(server, await servers.reconnect(server, new AbortController().signal));
        } catch (err) {
          // The person's part is done; the owner can have the server asked again.
          const whose = { instanceId: server.instanceId, serverId: server.serverId };
          log.info({ ...whose, err }, NOT_ASKED);
        } finally {
          // Only now: until its tools are known, it still looks as if nobody had authorized it.
          servers.authorizationEnded(server.serverId, null);
        }
        return ending;
      },
    },
  };
}
