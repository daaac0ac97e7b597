import { z } from "zod";
import { type Asked, type Route, route } from "../../http/route.ts";
import type { Instances } from "../../instances/instances.ts";
import { AppError } from "../../lib/app-error.ts";
import { isoTime } from "../../lib/clock.ts";
import type { Servers } from "../servers.ts";
import type { Authorization } from "./authorization.ts";
import { AuthorizationError } from "./failure.ts";

export interface AuthorizationRouteParts {
  instances: Pick<Instances, "get">;
  servers: Pick<Servers, "get">;
  authorization: Pick<Authorization, "begin">;
  /** Turns off the idle timeout of a request's connection: other hosts are asked meanwhile. */
  keepOpen(request: Request): void;
}

const OWN_HEADER = "this MCP server has a header Authorization, which is sent to it: remove that to authorize it";

/** OAuth for MCP servers (docs/contract/api.md, MCP servers). */
export function authorizationRoutes({ instances, servers, authorization, keepOpen }: AuthorizationRouteParts): Route[] {
  return [
    route({
      method: "POST",
      path: "/v1/instances/:instanceId/mcp-servers/:serverId/authorize",
      name: "authorizeMcpServer",
      tag: "mcp-servers",
      summary: "Begin to authorize an instance at an MCP server, by OAuth 2.1",
      description:
        "Open `authorizationUrl` in a browser. Once somebody has consented there, the server's `status` changes. The URL " +
        "counts once, until `expiresAt`; beginning again ends an earlier one.",
      access: "write",
      bound: "outside",
      answer: z.object({ authorizationUrl: z.string(), expiresAt: z.iso.datetime() }),
      errors: ["conflict"],
      // Each beginning is another one; and the state in its URL is kept nowhere.
      idempotent: false,
      find({ caller, params }: Asked<{ instanceId: string; serverId: string }>) {
        const { accountId, instanceId } = instances.get(caller, params.instanceId);
        return { ...servers.get(instanceId, params.serverId), accountId };
      },
      async handle({ found, body, request }) {
        await body();
        if (Object.keys(found.headers).some((name) => name.toLowerCase() === "authorization")) {
          throw new AppError("conflict", OWN_HEADER);
        }
        keepOpen(request);
        const { serverId, instanceId, accountId, name, url } = found;
        try {
          const begun = await authorization.begin({ serverId, instanceId, accountId, name, url });
          return { authorizationUrl: begun.authorizationUrl, expiresAt: isoTime(begun.expiresAt) };
        } catch (error) {
          if (!(error instanceof AuthorizationError)) throw error;
          throw new AppError("conflict", `this MCP server cannot be authorized: ${error.message}`);
        }
      },
    }),
  ];
}
