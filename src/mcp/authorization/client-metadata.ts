/** Where the host says who it is as a client, for authorization servers that read it instead of registering clients. */
import { isLoopbackName } from "../../lib/loopback.ts";
export const CLIENT_PATH = "/v1/oauth/client";
/** Where authorization servers send browsers back to. */
export const CALLBACK_PATH = "/v1/oauth/callback";

/** The host as an OAuth client (RFC 7591, 2). `publicUrl` is how browsers reach it. */
export function clientMetadata(publicUrl: string, method: string) {
  const { origin, hostname } = new URL(publicUrl);
  return {
    client_name: `Roost at ${hostname}`,
    client_uri: origin,
    redirect_uris: [`${publicUrl}${CALLBACK_PATH}`],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: method,
    application_type: isLoopback(hostname) ? "native" : "web",
  };
}

/** The same at a URL that is the client's id (OAuth Client ID Metadata Document). */
export const clientDocument = (publicUrl: string) => ({
  client_id: `${publicUrl}${CLIENT_PATH}`,
  ...clientMetadata(publicUrl, "none"),
});

/** Whether authorization servers send browsers back there: by https, or to the person's own machine. */
export const isTrusted = (publicUrl: string): boolean =>
  publicUrl.startsWith("https:") || isLoopback(new URL(publicUrl).hostname);

const isLoopback = (hostname: string): boolean => isLoopbackName(hostname) || hostname.endsWith(".localhost");
