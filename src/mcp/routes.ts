import { z } from "zod";
import type { EgressPolicy } from "../egress/policy.ts";
import { changeOf, time } from "../http/fields.ts";
import { pageOf, pageQuery, toPage } from "../http/paging.ts";
import { type Asked, type Route, route } from "../http/route.ts";
import type { Instances } from "../instances/instances.ts";
import { AppError } from "../lib/app-error.ts";
import { idForm } from "../lib/forms.ts";
import { newId } from "../lib/id.ts";
import { isSameAddress } from "./connections.ts";
import { requireServerHeaders, requireServerUrl, serverHeaders, serverName, serverUrl } from "./input.ts";
import { MAX_TOOLS } from "./listing.ts";
import { McpServerRecord, showServer } from "./record.ts";
import type { McpServer, ServerAddress } from "./schema.ts";
import type { Servers } from "./servers.ts";

export interface McpServerRouteParts {
  instances: Pick<Instances, "get">;
  servers: Servers;
  policy: Pick<EgressPolicy, "names">;
}

const SERVERS = "/v1/instances/:instanceId/mcp-servers";
const SERVER = `${SERVERS}/:serverId` as const;

const NewServer = z.lazy(() => z.object({ name: serverName, url: serverUrl, headers: serverHeaders.default({}) }));
const ServerChange = z.lazy(() => changeOf({ url: serverUrl.optional(), headers: serverHeaders.optional() }));
const TOOLS = `1 to ${MAX_TOOLS} names of tools`;
const Approved = z.lazy(() =>
  z.object({
    tools: z
      .array(z.string({ error: TOOLS }), { error: TOOLS })
      .min(1, { error: TOOLS })
      .max(MAX_TOOLS, { error: TOOLS })
      .optional()
      .describe("As the server calls them; all if absent"),
    updatedAt: time.optional().describe("Only if the server is still as it was shown with this"),
  }),
);

/** Servers whose tools an instance's agents have (docs/contract/api.md, MCP servers). */
export function mcpServerRoutes({ instances, servers, policy }: McpServerRouteParts): Route[] {
  const instance = ({ caller, params }: Asked<{ instanceId: string }>) => instances.get(caller, params.instanceId);
  const show = (server: McpServer) => showServer(server, servers.lastAuthorization(server.serverId));
  const one = (asked: Asked<{ instanceId: string; serverId: string }>) => {
    const found = instance(asked);
    return { instance: found, server: servers.get(found.instanceId, asked.params.serverId) };
  };

  const oneServer = route({
    method: "GET",
    path: SERVER,
    name: "getMcpServer",
    tag: "mcp-servers",
    summary: "One MCP server with its tools",
    access: "read",
    bound: "texts",
    answer: McpServerRecord,
    find: one,
    handle: ({ found }) => show(found.server),
  });
  const reread = { by: oneServer, id: "serverId" };

  return [
    route({
      method: "POST",
      path: SERVERS,
      name: "createMcpServer",
      tag: "mcp-servers",
      summary: "Have agents use the tools of an MCP server",
      description:
        "Its tools are listed and approved as they stand. A server that does not answer, or that has to be authorized " +
        "first, is added too: its `status` says so.",
      access: "write",
      bound: "listing",
      status: 201,
      body: NewServer,
      example: {
        name: "docs",
        url: "https://mcp.example.com/mcp",
        headers: { Authorization: "Bearer {{secret:DOCS_TOKEN}}" },
      },
      answer: McpServerRecord,
      errors: ["conflict"],
      reread,
      find: instance,
      commit: "shared",
      async handle({ found, body, request, commit }) {
        const { name, url, headers } = await body();
        requireServerUrl(url, policy);
        requireServerHeaders(headers);
        servers.requireRoom(found.instanceId, name);
        const server = { serverId: newId("mcp"), instanceId: found.instanceId, name, url, headers };
        const look = await servers.reconnect(server, request.signal);
        return commit(({ accountId }) => show(servers.create(accountId, server, look)));
      },
    }),
    route({
      method: "GET",
      path: SERVERS,
      name: "listMcpServers",
      tag: "mcp-servers",
      summary: "The instance's MCP servers, oldest first",
      access: "read",
      bound: "page",
      query: pageQuery,
      answer: pageOf(McpServerRecord),
      find: instance,
      handle({ found: { instanceId }, query, startPage }) {
        const start = startPage(`mcp ${instanceId}`, query());
        const rows = servers.page(instanceId, start.position, start.limit + 1);
        return toPage(start, rows, ({ serverId }) => serverId, show);
      },
    }),
    oneServer,
    route({
      method: "PATCH",
      path: SERVER,
      name: "updateMcpServer",
      tag: "mcp-servers",
      summary: "Change an MCP server's address or headers",
      description: "It is asked for its tools again. At another address, none of them is approved.",
      access: "write",
      bound: "listing",
      body: ServerChange,
      example: { headers: { Authorization: "Bearer {{secret:DOCS_TOKEN}}" } },
      answer: McpServerRecord,
      errors: ["conflict"],
      find: one,
      commit: "shared",
      async handle({ found: { server }, body, request, commit }) {
        const { url, headers } = await body();
        const changed = (from: ServerAddress): ServerAddress => ({
          ...from,
          url: url ?? from.url,
          headers: headers ?? from.headers,
        });
        const asked = changed(server);
        requireServerUrl(asked.url, policy);
        requireServerHeaders(asked.headers);
        const look = await servers.reconnect(asked, request.signal);
        return commit(({ instance: { accountId }, server: current }) => {
          if (!isSameAddress(changed(current), asked)) {
            throw new AppError("conflict", "the server was changed while it was asked: look at it again");
          }
          return show(servers.update(accountId, current, asked, look));
        });
      },
    }),
    route({
      method: "DELETE",
      path: SERVER,
      name: "deleteMcpServer",
      tag: "mcp-servers",
      summary: "Remove an MCP server; its tools are gone from every agent",
      access: "write",
      bound: "record",
      answer: z.object({ serverId: idForm("mcp"), deleted: z.literal(true) }),
      find: one,
      commit: "shared",
      write({ found: { instance: owning, server } }) {
        servers.remove(owning.accountId, server);
        return { serverId: server.serverId, deleted: true };
      },
    }),
    route({
      method: "POST",
      path: `${SERVER}/refresh`,
      name: "refreshMcpServer",
      tag: "mcp-servers",
      summary: "Ask an MCP server for its tools as they are now",
      access: "write",
      bound: "listing",
      answer: McpServerRecord,
      reread,
      find: one,
      commit: "shared",
      async handle({ found: { server }, body, request, commit }) {
        await body();
        const look = await servers.reconnect(server, request.signal);
        return commit((found) => show(servers.note(server, look) ?? found.server));
      },
    }),
    route({
      method: "POST",
      path: `${SERVER}/approve`,
      name: "approveMcpServer",
      tag: "mcp-servers",
      summary: "Accept new and changed definitions of an MCP server's tools",
      description: "What the server no longer offers is forgotten.",
      access: "write",
      bound: "texts",
      body: Approved,
      example: { tools: ["search"] },
      answer: McpServerRecord,
      errors: ["conflict"],
      reread,
      find: one,
      commit: "shared",
      write({ found: { instance: owning, server }, body }) {
        if (body.updatedAt !== undefined && Date.parse(body.updatedAt) !== server.updatedAt) {
          throw new AppError("conflict", "the server's tools have changed since they were shown: look at them again");
        }
        return show(servers.approve(owning.accountId, server, body.tools ?? null));
      },
    }),
  ];
}
