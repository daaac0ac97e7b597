import { AppError, notFound } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import { isId } from "../lib/id.ts";
import { refuseOverQuota } from "../limits/account-limits.ts";
import type { Audit } from "../storage/audit.ts";
import type { Store } from "../storage/store.ts";
import { type Connections, isSameAddress, type Seen } from "./connections.ts";
import { approve, approvedAsTheyStand, seeTools, stateOf, type ToolState } from "./pinning.ts";
import { mcpQueries } from "./queries.ts";
import type { McpServer, SeenTool, ServerAddress, ServerStatus } from "./schema.ts";
import { AUTHORIZE_AGAIN, ServerError, said } from "./server-error.ts";

/** Servers of one instance (docs/contract/api.md, MCP servers). */
export const MAX_SERVERS = 16;
const MAX_REASON = 500;

export interface ServerParts {
  store: Store;
  clock: Clock;
  audit: Audit;
  connections(): Pick<Connections, "use" | "close" | "retire">;
  redact(instanceId: string, text: string): Promise<string>;
  /** Tells all agents of the instance, in the open transaction. */
  tellAgents(instanceId: string, changed: Changed): void;
  /** Forgets what was approved for the tools whose names begin so, in the open transaction. */
  forgetApprovals(instanceId: string, prefix: string): void;
  /** Forgets what authorizes the host there, in the open transaction. */
  forgetCredentials(server: ServerAddress & { accountId: string }): void;
  /** Whether a person has authorized the host there. */
  hasCredentials(serverId: string): boolean;
}

/** What waits for the owner, as agents' events tell it. */
export interface Changed {
  serverId: string;
  name: string;
  tools: { name: string; state: Exclude<ToolState, "approved"> }[];
}

/** A server that was asked, and what came of it. */
export type Look = { seen: Seen } | { status: "unreachable" | "needs_authorization"; reason: string };

export interface AuthorizationEnd {
  endedAt: number;
  /** Null if it was granted. */
  failure: string | null;
}

/** The MCP servers of instances. The caller must have checked access to the instance. */
export interface Servers {
  /** Throws `conflict` where there is no room for one more, or one of this name. */
  requireRoom(instanceId: string, name: string): void;
  /**
   * Connects to the server anew, and asks it for its tools as they are now. So does its next use; who uses the connection that
   * there was goes on with it.
   */
  reconnect(server: ServerAddress, signal: AbortSignal): Promise<Look>;
  /** Its tools are approved as they stand. Throws as `requireRoom`. */
  create(accountId: string, server: ServerAddress, look: Look): McpServer;
  find(serverId: string): McpServer | undefined;
  /** Throws `not_found`. */
  get(instanceId: string, serverId: string): McpServer;
  /** Oldest first. */
  page(instanceId: string, after: string | null, limit: number): McpServer[];
  /** Changes with every change of the instance's servers; null where it has none. */
  versionOf(instanceId: string): string | null;
  /** An authorization of it has come to its end, with this reason if not well; it was noted either way. */
  authorizationEnded(serverId: string, failure: string | null): void;
  /** How the last authorization of it has ended since the host was started; null if none has. */
  lastAuthorization(serverId: string): AuthorizationEnd | null;
  /** What was seen of its tools waits for the owner where it is not what was approved. */
  note(server: ServerAddress, look: Look): McpServer | undefined;
  /** Accepts the definitions of these tools, or of all, as they are now. Throws `not_found` for an unknown one. */
  approve(accountId: string, server: McpServer, names: readonly string[] | null): McpServer;
  /** Another address is another server: nothing of its tools is approved, unless a person authorizes it there. */
  update(accountId: string, server: McpServer, address: Pick<ServerAddress, "url" | "headers">, look: Look): McpServer;
  remove(accountId: string, server: McpServer): void;
}

export function createServers(parts: ServerParts): Servers {
  const { store, clock, audit, connections, redact, tellAgents, forgetApprovals, forgetCredentials, hasCredentials } =
    parts;
  const queries = mcpQueries(store.db);
  /** By servers' ids: for who waits for the end. */
  const authorizations = new Map<string, AuthorizationEnd>();

  function requireRoom(instanceId: string, name: string): void {
    if (queries.isNamed(instanceId, name)) throw new AppError("conflict", `there is an MCP server ${name} already`);
    refuseOverQuota("MCP servers", "an instance", queries.countOf(instanceId) + 1, MAX_SERVERS);
  }

  /** Writes what has changed, and tells the agents if it is about their tools. */
  function write(server: McpServer, change: Partial<McpServer>): McpServer {
    const next = { ...server, ...change };
    if (JSON.stringify(next) === JSON.stringify(server)) return server;
    next.updatedAt = clock.now();
    next.revision = server.revision + 1;
    queries.update(server.serverId, { ...change, updatedAt: next.updatedAt });
    const waiting = waitingOf(next.tools);
    if (JSON.stringify(waiting) !== JSON.stringify(waitingOf(server.tools))) {
      tellAgents(server.instanceId, { serverId: server.serverId, name: server.name, tools: waiting });
    }
    return next;
  }

  /**
   * A server that could not be asked when it was added was never looked at by its owner. One that a person had to authorize
   * first, there or at another URL, has its tools approved as they stand, as if it had been added only then.
   */
  const toolsOf = ({ serverId, tools, status, protocolVersion }: McpServer, seen: Seen): SeenTool[] =>
    status === "needs_authorization" && protocolVersion === null && hasCredentials(serverId)
      ? approvedAsTheyStand(seen.tools)
      : seeTools(tools, seen.tools);

  const audited = (accountId: string, action: string, { instanceId, serverId, name }: ServerAddress, more = {}) =>
    audit.append({ actor: accountId, action, subject: instanceId, detail: { serverId, name, ...more } });

  return {
    requireRoom,
    async reconnect(server, signal) {
      try {
        connections().retire(server.serverId);
        return { seen: await connections().use(server, signal, async (_, seen) => seen) };
      } catch (thrown) {
        if (!(thrown instanceof ServerError)) throw thrown;
        if (thrown.fault === "busy") throw new AppError("rate_limited", thrown.message, { retryAfterSeconds: 5 });
        return await failedLook(server, thrown, redact);
      }
    },
    create(accountId, { serverId, instanceId, name, url, headers }, look) {
      return store.transaction(() => {
        requireRoom(instanceId, name);
        const now = clock.now();
        const tools = "seen" in look ? approvedAsTheyStand(look.seen.tools) : [];
        const row: McpServer = {
          ...{ serverId, instanceId, name, url, headers, tools, protocolVersion: null },
          ...changeOf(look, tools),
          ...{ revision: 1, createdAt: now, updatedAt: now },
        };
        queries.insert(row);
        audited(accountId, "mcp.create", row, { url });
        return row;
      });
    },
    find: queries.find,
    get(instanceId, serverId) {
      const server = isId("mcp", serverId) ? queries.find(serverId) : undefined;
      if (server?.instanceId !== instanceId) throw notFound("MCP server");
      return server;
    },
    page: queries.page,
    versionOf: store.oncePerSnapshot(queries.version),
    authorizationEnded(serverId, failure) {
      store.transaction(() => {
        const server = queries.find(serverId);
        if (!server) return;
        const works = server.status === "ready" || server.status === "changed";
        const statusReason = `${failure}: ${AUTHORIZE_AGAIN}`;
        const change = failure === null || works ? {} : { status: "needs_authorization" as const, statusReason };
        // Whoever waits for the end sees that it has come.
        const endedAt = clock.now();
        queries.update(serverId, { ...change, updatedAt: endedAt });
        authorizations.set(serverId, { endedAt, failure });
      });
    },
    lastAuthorization: (serverId) => authorizations.get(serverId) ?? null,
    note(address, look) {
      return store.transaction(() => {
        const server = queries.find(address.serverId);
        // It was removed or changed while it was asked.
        if (!server || !isSameAddress(server, address)) return server;
        const tools = "seen" in look ? toolsOf(server, look.seen) : server.tools;
        return write(server, { tools, ...changeOf(look, tools) });
      });
    },
    approve(accountId, server, names) {
      const unknown = names?.find((name) => !server.tools.some((tool) => tool.name === name));
      if (unknown !== undefined) throw notFound(`tool "${unknown.slice(0, 128)}" of the MCP server`);
      return store.transaction(() => {
        const tools = approve(server.tools, names === null ? null : new Set(names));
        const isLeft = waitingOf(tools).length > 0;
        const status = server.status === "changed" && !isLeft ? "ready" : server.status;
        const next = write(server, { tools, status });
        audited(accountId, "mcp.approve", server, { tools: names?.join(" ") ?? "all" });
        return next;
      });
    },
    update(accountId, server, { url, headers }, look) {
      return store.transaction(() => {
        const isElsewhere = url !== server.url;
        if (isElsewhere) {
          forgetApprovals(server.instanceId, `${server.name}__`);
          forgetCredentials({ ...server, accountId });
        }
        // Nothing was seen, or agreed on, there.
        const known = isElsewhere ? { ...server, tools: [], protocolVersion: null } : server;
        const tools = "seen" in look ? toolsOf(known, look.seen) : known.tools;
        const { protocolVersion } = known;
        const next = write(server, { url, headers, tools, protocolVersion, ...changeOf(look, tools) });
        audited(accountId, "mcp.update", server, { url });
        return next;
      });
    },
    remove(accountId, server) {
      store.transaction(() => {
        forgetCredentials({ ...server, accountId });
        queries.remove(server.serverId);
        forgetApprovals(server.instanceId, `${server.name}__`);
        audited(accountId, "mcp.delete", server);
        store.afterCommit(() => {
          authorizations.delete(server.serverId);
          connections().close(server.serverId);
        });
      });
    },
  };
}

/** What was seen, as columns. */
function changeOf(
  look: Look,
  tools: readonly SeenTool[],
): { status: ServerStatus; statusReason: string | null; protocolVersion?: string | null } {
  if (!("seen" in look)) return { status: look.status, statusReason: look.reason };
  const { notes, protocolVersion } = look.seen;
  const status = waitingOf(tools).length > 0 ? "changed" : "ready";
  return { status, statusReason: notes === null ? null : shorten(notes), protocolVersion };
}

const waitingOf = (tools: readonly SeenTool[]): Changed["tools"] =>
  tools.flatMap((tool) => {
    const state = stateOf(tool);
    return state === "approved" ? [] : [{ name: tool.name, state }];
  });

/** Why a server could not be asked, for its owner. */
export async function failedLook(
  { instanceId }: ServerAddress,
  { fault, message }: ServerError,
  redact: ServerParts["redact"],
): Promise<Look> {
  const reason = shorten(said(await redact(instanceId, message), MAX_REASON));
  return { status: fault === "authorization" ? "needs_authorization" : "unreachable", reason };
}

const shorten = (text: string): string =>
  text.length <= MAX_REASON ? text : `${text.slice(0, MAX_REASON - 1).toWellFormed()}…`;
