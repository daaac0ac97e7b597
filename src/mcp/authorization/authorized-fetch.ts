import type { GuardedFetch } from "../../egress/as-fetch.ts";
import { EgressError } from "../../egress/refusal.ts";
import { AUTHORIZE_AGAIN, ServerError } from "../server-error.ts";
import type { Credentials, OwnedServer } from "./credentials.ts";
import { AuthorizationError } from "./failure.ts";
import { GrantRefused } from "./grants.ts";

/**
 * Sends the server's token with each request to its origin that has no `Authorization` of its own. If the server refuses it,
 * the request is sent once more with another token: what was answered 401 was not done. Without one, the refusal is the
 * answer. Throws `ServerError` if the token could not be renewed.
 */
export const withTokens =
  (send: GuardedFetch, credentials: Pick<Credentials, "current" | "other">, server: OwnedServer): GuardedFetch =>
  async (url, init = {}, runId) => {
    const isOwn = new URL(url).origin === new URL(server.url).origin;
    if (!isOwn || new Headers(init.headers).has("Authorization")) return send(url, init, runId);
    const token = await asked(credentials.current(server));
    if (token === null) return send(url, init, runId);
    const answer = await send(url, bearing(init, token), runId);
    if (answer.status !== 401 || init.body instanceof ReadableStream) return answer;
    const other = await asked(credentials.other(server, token));
    if (other === null) return answer;
    await answer.body?.cancel();
    return send(url, bearing(init, other), runId);
  };

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
