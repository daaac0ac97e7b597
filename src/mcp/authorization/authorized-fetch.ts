import type { GuardedFetch } from "../../egress/as-fetch.ts";
import { EgressError } from "../../egress/refusal.ts";
import { AUTHORIZE_AGAIN, ServerError } from "../server-error.ts";
import type { Credentials, OwnedServer } from "./credentials.ts";
import { AuthorizationError } from "./failure.ts";
import { GrantRefused } from "./grants.ts";
import { loadSdk } from "./sdk.ts";

/**
 * Sends the server's token with each request to its origin that has no `Authorization` of its own. If the server refuses it,
 * the request is sent once more with another token: what was answered 401 was not done. Without one, the refusal is the
 * answer. What the server wants a token for besides is asked for at the next authorization. Throws `ServerError` if the token
 * could not be renewed.
 */
export const withTokens =
  (
    send: GuardedFetch,
    credentials: Pick<Credentials, "current" | "other" | "want">,
    server: OwnedServer,
  ): GuardedFetch =>
  async (url, init = {}, runId) => {
    const isOwn = new URL(url).origin === new URL(server.url).origin;
    if (!isOwn || new Headers(init.headers).has("Authorization")) return send(url, init, runId);
    const token = await asked(credentials.current(server));
    if (token === null) return send(url, init, runId);
    const answer = await send(url, bearing(init, token), runId);
    if (answer.status === 403) await noteScope(answer, credentials, server);
    if (answer.status !== 401 || init.body instanceof ReadableStream) return answer;
    const other = await asked(credentials.other(server, token));
    if (other === null) return answer;
    await answer.body?.cancel();
    return send(url, bearing(init, other), runId);
  };

async function noteScope(answer: Response, credentials: Pick<Credentials, "want">, server: OwnedServer): Promise<void> {
  const { error, scope } = (await loadSdk()).extractWWWAuthenticateParams(answer);
  if (error === "insufficient_scope" && scope !== undefined) credentials.want(server, scope);
}

function bearing(init: RequestInit, token: string): RequestInit {
  const headers = new Headers(init.headers);
  headers.set("Authorization", `Bearer ${token}`);
  return { ...init, headers };
}

/** Whatever goes wrong here, the server itself was asked for nothing. */
async function asked(token: Promise<string | null>): Promise<string | null> {
  try {
    return await token;
  } catch (error) {
    if (error instanceof GrantRefused) throw new ServerError("authorization", `${error.message}: ${AUTHORIZE_AGAIN}`);
    if (error instanceof AuthorizationError) throw new ServerError("unreachable", error.message);
    if (error instanceof EgressError) {
      throw new ServerError("unreachable", `its authorization server could not be asked: ${error.message}`);
    }
    throw error;
  }
}
