import type { AuthorizationServerMetadata } from "@modelcontextprotocol/client";
import { EgressError } from "../../egress/refusal.ts";
import { AuthorizationError } from "./failure.ts";
import type { OAuthFetch } from "./oauth-fetch.ts";
import { loadSdk } from "./sdk.ts";

/** What was found out about who grants access to an MCP server: as much of it as is needed later. */
export interface Grantor {
  /** Its metadata, of an issuer that was verified. */
  metadata: Metadata;
  /** What tokens are asked for (RFC 8707). */
  resource: string;
  scope: string | undefined;
}

/** The members of an authorization server's metadata (RFC 8414) that are kept. */
export type Metadata = {
  issuer: string;
  authorization_endpoint: string;
  token_endpoint: string;
  registration_endpoint?: string;
  revocation_endpoint?: string;
  response_types_supported: string[];
  token_endpoint_auth_methods_supported?: string[];
  authorization_response_iss_parameter_supported?: boolean;
  client_id_metadata_document_supported?: boolean;
};

const MAX_URL = 2_048;
const MAX_SCOPE = 2_000;
const MAX_METHODS = 10;
const REFRESHING = "offline_access";
/** Changes nothing: a server that wants a token refuses it, and says where to get one. */
const PROBE = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" });

/**
 * Finds who grants access to an MCP server: its protected-resource metadata (RFC 9728), then the metadata of the first
 * authorization server that it names (RFC 8414, OpenID Connect Discovery). A server without the former, as those of the
 * revision 2025-03-26, is taken for its own authorization server. The scopes that are `wanted` are asked for too. Throws
 * `AuthorizationError` or `EgressError`.
 */
export async function discover(serverUrl: string, ask: OAuthFetch, wanted?: string): Promise<Grantor> {
  const sdk = await loadSdk();
  const { resourceMetadataUrl, scope: asked } = await challengeOf(serverUrl, ask);
  const resource = await resourceMetadata(serverUrl, resourceMetadataUrl, ask);
  const expected = resource?.authorization_servers?.[0] ?? String(new URL("/", serverUrl));
  const found = await metadataOf(expected, ask);
  if (found.code_challenge_methods_supported?.includes("S256") !== true) {
    throw new AuthorizationError("its authorization server does not say that it supports PKCE with S256");
  }
  if (!found.response_types_supported.includes("code")) {
    throw new AuthorizationError("its authorization server does not support authorization codes");
  }
  const supported = resource?.scopes_supported?.join(" ");
  const scope = withRefreshing(scopesOf(asked ?? supported, wanted) || undefined, found.scopes_supported);
  if ((scope?.length ?? 0) > MAX_SCOPE) throw new AuthorizationError("the scopes that it asks for are too long");
  return {
    metadata: needed(found),
    resource: resource?.resource ?? sdk.resourceUrlFromServerUrl(serverUrl).href,
    scope,
  };
}

/** All of these, each once. */
export const scopesOf = (...scopes: (string | undefined)[]): string =>
  [...new Set(scopes.flatMap((scope) => scope?.split(" ") ?? []))].join(" ");

/** What the server says to a request without a token. */
async function challengeOf(serverUrl: string, ask: OAuthFetch) {
  const sdk = await loadSdk();
  const headers = { "Content-Type": "application/json", Accept: "application/json, text/event-stream" };
  const answer = await ask(serverUrl, { method: "POST", headers, body: PROBE });
  return answer.status === 401 ? sdk.extractWWWAuthenticateParams(answer) : {};
}

/** Undefined if the server has none where it has to be by default. */
async function resourceMetadata(serverUrl: string, url: URL | undefined, ask: OAuthFetch) {
  const sdk = await loadSdk();
  const options = url === undefined ? {} : { resourceMetadataUrl: url };
  let found: Awaited<ReturnType<typeof sdk.discoverOAuthProtectedResourceMetadata>>;
  try {
    found = await sdk.discoverOAuthProtectedResourceMetadata(serverUrl, options, ask);
  } catch (error) {
    if (error instanceof EgressError) throw error;
    if (url === undefined) return undefined;
    throw new AuthorizationError("the metadata that it names cannot be read");
  }
  const requestedResource = sdk.resourceUrlFromServerUrl(serverUrl);
  if (!isUrl(found.resource) || !sdk.checkResourceAllowed({ requestedResource, configuredResource: found.resource })) {
    throw new AuthorizationError("its metadata is that of another resource");
  }
  return found;
}

async function metadataOf(issuer: string, ask: OAuthFetch): Promise<AuthorizationServerMetadata> {
  const sdk = await loadSdk();
  if (!isUrl(issuer)) throw new AuthorizationError("its metadata names no authorization server by a URL");
  let found: AuthorizationServerMetadata | undefined;
  try {
    found = await sdk.discoverAuthorizationServerMetadata(issuer, { fetchFn: ask });
  } catch (error) {
    if (error instanceof EgressError) throw error;
    const why = sdk.IssuerMismatchError.isInstance(error) ? "is that of another issuer" : "cannot be read";
    throw new AuthorizationError(`the metadata of its authorization server ${why}`);
  }
  if (found === undefined) throw new AuthorizationError("its authorization server publishes no metadata");
  return found;
}

/** Without this scope, many servers give no refresh token. */
function withRefreshing(scope: string | undefined, supported: string[] | undefined): string | undefined {
  if (scope === undefined || supported?.includes(REFRESHING) !== true) return scope;
  return scope.split(" ").includes(REFRESHING) ? scope : `${scope} ${REFRESHING}`;
}

function needed(found: AuthorizationServerMetadata): Metadata {
  const { issuer, authorization_endpoint, token_endpoint, registration_endpoint } = found;
  const revocation_endpoint = "revocation_endpoint" in found ? found.revocation_endpoint : undefined;
  const methods = found.token_endpoint_auth_methods_supported?.slice(0, MAX_METHODS);
  const optional = {
    ...(registration_endpoint !== undefined && { registration_endpoint }),
    ...(typeof revocation_endpoint === "string" && { revocation_endpoint }),
  };
  const urls = { issuer, authorization_endpoint, token_endpoint, ...optional };
  for (const [name, url] of Object.entries(urls)) {
    if (!isUrl(url)) throw new AuthorizationError(`the ${name} of its authorization server is no URL`);
  }
  return {
    ...urls,
    response_types_supported: ["code"],
    ...(methods && { token_endpoint_auth_methods_supported: methods }),
    authorization_response_iss_parameter_supported: found.authorization_response_iss_parameter_supported === true,
    client_id_metadata_document_supported: found.client_id_metadata_document_supported === true,
  };
}

/** Which a browser may open, too: it shows no password, and runs nothing. */
function isUrl(text: string): boolean {
  const url = text.length <= MAX_URL ? URL.parse(text) : null;
  return (url?.protocol === "https:" || url?.protocol === "http:") && url.username === "" && url.password === "";
}
