import type { Config } from "../config.ts";
import { consolePages } from "../console/pages.ts";
import type { WebPage } from "../http/server.ts";
import { type StatusParts, statusPages } from "../http/status-pages.ts";
import { callbackPage, clientPage } from "../mcp/authorization/callback-routes.ts";
import { referencePages } from "../reference/pages.ts";
import type { Features } from "./features.ts";
import type { Foundation } from "./foundation.ts";

/** Every page beside the API. */
export function createPages(
  { smtpUrl }: Config,
  { accounts }: Foundation,
  { instances, mcp }: Features,
  keepOpen: (request: Request) => void,
  publicUrl: () => string,
  status: StatusParts,
): WebPage[] {
  return [
    ...consolePages({ mailed: smtpUrl !== null }),
    ...referencePages(),
    ...statusPages(status),
    clientPage(publicUrl),
    callbackPage({
      complete: mcp.authorization.complete,
      namesOf: ({ instanceId, accountId }) => ({
        instance: instances.find(instanceId)?.name ?? instanceId,
        email: accounts.get(accountId).email,
      }),
      keepOpen,
    }),
  ];
}
