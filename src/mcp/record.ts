import { z } from "zod";
import { isoTime } from "../lib/clock.ts";
import { idForm } from "../lib/forms.ts";
import { record } from "../lib/record.ts";
import { stateOf, TOOL_STATES } from "./pinning.ts";
import { type McpServer, SERVER_STATUSES } from "./schema.ts";
import type { AuthorizationEnd } from "./servers.ts";

/** A server as the API shows it (docs/contract/api.md, MCP servers). */
export const McpServerRecord = record("McpServer", () =>
  z.object({
    serverId: idForm("mcp"),
    instanceId: idForm("inst"),
    name: z.string(),
    url: z.string(),
    headers: z.record(z.string(), z.string()).describe("Secrets as placeholders"),
    status: z.enum(SERVER_STATUSES),
    statusReason: z.string().nullable(),
    protocolVersion: z.string().nullable().describe("The revision that was agreed on last"),
    tools: z.array(
      z.object({
        name: z.string(),
        description: z.string(),
        inputSchema: z.record(z.string(), z.unknown()),
        state: z.enum(TOOL_STATES).describe("Agents have those that are approved"),
      }),
    ),
    lastAuthorization: z
      .object({
        endedAt: z.iso.datetime(),
        outcome: z.enum(["granted", "failed"]),
        reason: z.string().nullable().describe("Why it has failed; what was granted before still holds"),
      })
      .nullable()
      .describe("How the last one has ended since the host was started"),
    createdAt: z.iso.datetime(),
    updatedAt: z.iso.datetime(),
  }),
);
export type McpServerRecord = z.output<typeof McpServerRecord>;

export const showServer = (
  { revision: _, createdAt, updatedAt, tools, headers, ...row }: McpServer,
  authorization: AuthorizationEnd | null,
): McpServerRecord => ({
  ...row,
  headers: { ...headers },
  tools: tools.map((tool) => ({
    name: tool.name,
    description: tool.description,
    inputSchema: tool.inputSchema,
    state: stateOf(tool),
  })),
  lastAuthorization: authorization && {
    endedAt: isoTime(authorization.endedAt),
    outcome: authorization.failure === null ? "granted" : "failed",
    reason: authorization.failure,
  },
  createdAt: isoTime(createdAt),
  updatedAt: isoTime(updatedAt),
});
