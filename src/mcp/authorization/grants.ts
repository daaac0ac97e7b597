import type { OAuthClientInformationMixed, OAuthTokens } from "@modelcontextprotocol/client";
import { EgressError } from "../../egress/refusal.ts";
import { clientDocument, clientMetadata, isTrusted } from "./client-metadata.ts";
import type { Grantor } from "./discovery.ts";
import { AuthorizationError } from "./failure.ts";
import type { OAuthFetch } from "./oauth-fetch.ts";
import { loadSdk } from "./sdk.ts";

/** The client that the host is for one authorization server. */
export type Client = Pick<OAuthClientInformationMixed, "client_id" | "client_secret"> & {
  token_endpoint_auth_method?: string;
};

export interface Tokens {
  access: string;
  refresh: string | null;
  /** In milliseconds since 1970; null if the server does not say. */
  expiresAt: number | null;
}

/** The authorization server has said no: asking it again would not help. */
export class GrantRefused extends AuthorizationError {}

const MAX_TOKEN = 8_192;
/** Of a token (RFC 6750, 2.1) or of a client's id or secret: whatever a header can carry. */
const VISIBLE = /^[\x21-\x7e]+$/;
const MAX_LIFE_SECONDS = 10 * 365 * 24 * 3_600;
const TOO_MANY_REQUESTS = 429;
/** Errors that stay (RFC 6749, 5.2; RFC 8707). */
const LASTING_ERRORS: ReadonlySet<string> = new Set([
  ...["invalid_request", "invalid_client", "invalid_grant", "unauthorized_client"],
  ...["unsupported_grant_type", "invalid_scope", "invalid_target", "access_denied"],
]);
const PASSING_ERRORS: ReadonlySet<string> = new Set(["server_error", "temporarily_unavailable"]);
/** With these, an error that only its server knows is one too: some write so that a refresh token is no longer good. */
const STATUSES_OF_OWN_ERRORS: ReadonlySet<number> = new Set([200, 400]);

/**
 * Registers the host as a client, for this authorization only (RFC 7591); where that cannot be done, it is known by the URL
 * of its own metadata. Throws `AuthorizationError` or `EgressError`.
 */
export async function register({ metadata, scope }: Grantor, publicUrl: string, ask: OAuthFetch): Promise<Client> {
  const sdk = await loadSdk();
  const { registration_endpoint, token_endpoint_auth_methods_supported: methods } = metadata;
  if (registration_endpoint === undefined) {
    const isKnown = metadata.client_id_metadata_document_supported === true && publicUrl.startsWith("https:");
    if (isKnown) return { client_id: clientDocument(publicUrl).client_id, token_endpoint_auth_method: "none" };
    throw new AuthorizationError(
      "its authorization server registers no clients by itself: put a token of that service into a header instead",
    );
  }
  const options = {
    metadata,
    clientMetadata: clientMetadata(publicUrl, methodOf(methods)),
    ...(scope === undefined ? {} : { scope }),
  };
  const refused = isTrusted(publicUrl) ? "" : ", which browsers reach without https (ROOST_PUBLIC_URL)";
  const given = await answered(`did not register this host${refused}`, ask, (fetchFn) =>
    sdk.registerClient(metadata.issuer, { ...options, fetchFn }),
  );
  const { client_id, client_secret, token_endpoint_auth_method } = given;
  if (!isToken(client_id) || !(client_secret === undefined || isToken(client_secret))) {
    throw new AuthorizationError("its authorization server registered this host under an id that cannot be used");
  }
  return {
    client_id,
    ...(client_secret === undefined ? {} : { client_secret }),
    ...(token_endpoint_auth_method === undefined ? {} : { token_endpoint_auth_method }),
  };
}

/** None is needed: PKCE and the verified callback are what a code is bound to. */
function methodOf(supported: string[] | undefined): string {
  if (supported === undefined) return "client_secret_basic"; // its default (RFC 8414)
  return ["none", "client_secret_basic", "client_secret_post"].find((one) => supported.includes(one)) ?? "none";
}

/** Where to send the browser, and the secret that belongs to it (PKCE). */
export async function authorizationRequest(
  { metadata, resource, scope }: Grantor,
  client: Client,
  { state, callback }: { state: string; callback: string },
): Promise<{ url: URL; verifier: string }> {
  const sdk = await loadSdk();
  const { authorizationUrl: url, codeVerifier: verifier } = await sdk.startAuthorization(metadata.issuer, {
    metadata,
    clientInformation: client,
    redirectUrl: callback,
    state,
    resource,
    ...(scope === undefined ? {} : { scope }),
  });
  return { url, verifier };
}

/** A code for tokens. Throws `GrantRefused`, another `AuthorizationError`, or `EgressError`. */
export async function exchange(
  { metadata, resource }: Grantor,
  client: Client,
  { code, iss, verifier, callback }: { code: string; iss: string | undefined; verifier: string; callback: string },
  ask: OAuthFetch,
  now: number,
): Promise<Tokens> {
  const sdk = await loadSdk();
  const asked = { metadata, clientInformation: client, authorizationCode: code, codeVerifier: verifier };
  const given = await answered("refused the code", ask, (fetchFn) =>
    sdk.exchangeAuthorization(metadata.issuer, {
      ...asked,
      ...(iss === undefined ? {} : { iss }),
      redirectUri: callback,
      resource,
      fetchFn,
    }),
  );
  return tokensOf(given, now);
}

/** New tokens for a refresh token. Throws as `exchange` does. */
export async function refresh(
  { metadata, resource }: Grantor,
  client: Client,
  refreshToken: string,
  ask: OAuthFetch,
  now: number,
): Promise<Tokens> {
  const sdk = await loadSdk();
  const given = await answered("refused to renew the access", ask, (fetchFn) =>
    sdk.refreshAuthorization(metadata.issuer, {
      metadata,
      clientInformation: client,
      refreshToken,
      resource,
      fetchFn,
    }),
  );
  return tokensOf(given, now);
}

/** Tells the authorization server to forget a token (RFC 7009). Throws if it did not. */
export async function revoke({ metadata }: Grantor, client: Client, token: string, ask: OAuthFetch): Promise<void> {
  if (metadata.revocation_endpoint === undefined) return;
  const headers = new Headers({ "Content-Type": "application/x-www-form-urlencoded" });
  const { client_id, client_secret, token_endpoint_auth_method } = client;
  const body = new URLSearchParams({ token, client_id });
  if (client_secret !== undefined && token_endpoint_auth_method === "client_secret_post") {
    body.set("client_secret", client_secret);
  } else if (client_secret !== undefined) {
    headers.set("Authorization", `Basic ${btoa(`${client_id}:${client_secret}`)}`);
  }
  const { status } = await ask(metadata.revocation_endpoint, { method: "POST", headers, body });
  if (status !== 200) throw new AuthorizationError(`its authorization server answered a revocation with ${status}`);
}

/** Refuses what anybody else could have sent in the place of the server that was asked (RFC 9207). */
export function requireIssuer({ metadata }: Grantor, iss: string | undefined): void {
  const isRequired = metadata.authorization_response_iss_parameter_supported === true;
  if (iss === undefined ? isRequired : iss !== metadata.issuer) {
    throw new AuthorizationError("the browser came back from another authorization server than the one it was sent to");
  }
}

/** Keeps no cause: it would hold what the server wrote, which may repeat a code or a token. */
async function answered<T>(refused: string, ask: OAuthFetch, work: (fetchFn: OAuthFetch) => Promise<T>): Promise<T> {
  let status = 0;
  const fetchFn: OAuthFetch = async (url, init) => {
    const answer = await ask(url, init);
    status = answer.status;
    return answer;
  };
  try {
    return await work(fetchFn);
  } catch (error) {
    if (error instanceof EgressError) throw error;
    const sdk = await loadSdk();
    if (sdk.OAuthError.isInstance(error) && isRefusal(status, error.code)) {
      throw new GrantRefused(`its authorization server ${refused}`);
    }
    throw new AuthorizationError(`its authorization server ${refused}, or gave an answer that cannot be read`);
  }
}

/** Whether the server will say the same again: neither an outage nor a limit of requests says anything of the grant. */
function isRefusal(status: number, code: string): boolean {
  if (status === TOO_MANY_REQUESTS || status >= 500) return false;
  return LASTING_ERRORS.has(code) || (STATUSES_OF_OWN_ERRORS.has(status) && !PASSING_ERRORS.has(code));
}

function tokensOf({ access_token, refresh_token, token_type, expires_in }: OAuthTokens, now: number): Tokens {
  if (token_type.toLowerCase() !== "bearer") throw new GrantRefused("its authorization server gave no bearer token");
  if (!isToken(access_token) || !(refresh_token === undefined || isToken(refresh_token))) {
    throw new GrantRefused("its authorization server gave a token that cannot be used");
  }
  const seconds = expires_in !== undefined && expires_in >= 0 ? Math.min(expires_in, MAX_LIFE_SECONDS) : null;
  return {
    access: access_token,
    refresh: refresh_token ?? null,
    expiresAt: seconds === null ? null : now + seconds * 1000,
  };
}

const isToken = (text: string): boolean => text.length <= MAX_TOKEN && VISIBLE.test(text);
