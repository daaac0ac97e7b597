import { createHash, randomBytes } from "node:crypto";
import type { Egress } from "../../egress/egress.ts";
import { EgressError } from "../../egress/refusal.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Audit } from "../../storage/audit.ts";
import type { Store } from "../../storage/store.ts";
import { CALLBACK_PATH } from "./client-metadata.ts";
import type { Credentials, OwnedServer, Sealing } from "./credentials.ts";
import { discover, type Grantor } from "./discovery.ts";
import { AuthorizationError } from "./failure.ts";
import { authorizationRequest, type Client, exchange, register, requireIssuer } from "./grants.ts";
import { oauthFetch } from "./oauth-fetch.ts";
import { authorizationQueries } from "./queries.ts";
import type { PendingRow } from "./schema.ts";

/** How long a browser may take, in milliseconds. */
const LIFE_MS = 10 * 60 * 1000;
/** Of all requests together, at the beginning and at the end: less than clients wait for an answer. */
const BEGIN_MS = 25_000;
const COMPLETE_MS = BEGIN_MS;
/** As long as the guard's own requests may have. */
const MAX_URL = 8_192;

/** What a browser brings back. */
export interface Returned {
  state: string;
  /** Absent if the person, or the authorization server, has refused. */
  code: string | undefined;
  iss: string | undefined;
}

/** How an authorization has ended. */
export type Ending =
  | { outcome: "authorized" | "denied"; server: OwnedServer }
  | { outcome: "failed"; server: OwnedServer; reason: string }
  /** Nobody waits for this state: it was used, it has expired, or there never was one. */
  | { outcome: "unknown" };

export interface Authorization {
  /** Where to send a browser. A later beginning for the same server ends the earlier one. Throws `AuthorizationError`. */
  begin(server: OwnedServer): Promise<{ authorizationUrl: string; expiresAt: number }>;
  complete(returned: Returned): Promise<Ending>;
  /** Removes at most `limit` that have expired. Returns whether there may be more. */
  prune(limit: number): boolean;
}

export interface AuthorizationParts {
  store: Store;
  clock: Clock;
  audit: Audit;
  egress: Pick<Egress, "send" | "policy">;
  sealing: Sealing;
  credentials: Pick<Credentials, "keep" | "wanted">;
  /** How browsers reach this host. */
  publicUrl(): string;
  /** The server, as it is now. */
  find(serverId: string): OwnedServer | undefined;
  /** Called in a transaction when an authorization has failed, with the reason for its owner. */
  onFailed(serverId: string, reason: string): void;
}

/** What is kept until the browser is back. */
interface Pending {
  url: string;
  grantor: Grantor;
  client: Client;
  verifier: string;
  callback: string;
}

const hashOf = (state: string): Buffer => createHash("sha256").update(state).digest();
const about = (serverId: string): string => `mcp authorization|${serverId}`;

/** OAuth 2.1 for MCP servers, in two halves (docs/contract/security.md, Authorization of MCP servers). */
export function createAuthorization(parts: AuthorizationParts): Authorization {
  const { store, clock, audit, egress, sealing } = parts;
  const queries = authorizationQueries(store.db);

  /** Throws for a URL that may not be opened: it comes from a stranger. */
  function requireOpenable(url: URL): void {
    if (url.href.length > MAX_URL)
      throw new AuthorizationError("the page of its authorization server has too long a URL");
    const target = { url, host: url.hostname, isAddress: false, port: 0, secure: url.protocol === "https:" };
    if (target.secure || egress.policy.names(target)) return;
    throw new AuthorizationError("the page of its authorization server is not an https one");
  }

  /** The state counts once, whatever becomes of it. */
  function take(state: string): { server: OwnedServer; pending: Pending } | null {
    return store.transaction(() => {
      const row = queries.take(hashOf(state));
      if (row === undefined || row.expiresAt <= clock.now()) return null;
      const server = parts.find(row.serverId);
      const pending = pendingOf(row);
      return server && pending && server.url === pending.url ? { server, pending } : null;
    });
  }

  function pendingOf(row: PendingRow): Pending | null {
    const content = sealing.open(row, about(row.serverId));
    return content === null ? null : (JSON.parse(content) as Pending);
  }

  async function redeem(server: OwnedServer, pending: Pending, code: string, iss: string | undefined): Promise<void> {
    const { grantor, client, verifier, callback } = pending;
    const ask = oauthFetch(egress, server, AbortSignal.timeout(COMPLETE_MS));
    const tokens = await exchange(grantor, client, { code, iss, verifier, callback }, ask, clock.now());
    store.transaction(() => {
      if (parts.find(server.serverId)?.url !== pending.url) throw new AuthorizationError("it was changed meanwhile");
      parts.credentials.keep(server, { url: pending.url, grantor, client, tokens });
      const detail = { name: server.name, issuer: grantor.metadata.issuer };
      audit.append({ actor: "host", action: "mcp.authorized", subject: server.instanceId, detail });
    });
  }

  return {
    async begin(server) {
      const publicUrl = parts.publicUrl();
      const callback = `${publicUrl}${CALLBACK_PATH}`;
      const ask = oauthFetch(egress, server, AbortSignal.timeout(BEGIN_MS));
      const state = randomBytes(32).toString("base64url");
      try {
        const grantor = await discover(server.url, ask, parts.credentials.wanted(server));
        const client = await register(grantor, publicUrl, ask);
        const { url, verifier } = await authorizationRequest(grantor, client, { state, callback });
        requireOpenable(url);
        const pending: Pending = { url: server.url, grantor, client, verifier, callback };
        const expiresAt = clock.now() + LIFE_MS;
        const { serverId, instanceId, accountId, name } = server;
        store.transaction(() => {
          if (parts.find(serverId)?.url !== server.url) throw new AuthorizationError("it was changed meanwhile");
          const sealed = sealing.seal(JSON.stringify(pending), about(serverId));
          queries.begin({ serverId, stateHash: hashOf(state), ...sealed, expiresAt });
          const detail = { name, issuer: grantor.metadata.issuer };
          audit.append({ actor: accountId, action: "mcp.authorize", subject: instanceId, detail });
        });
        return { authorizationUrl: url.href, expiresAt };
      } catch (error) {
        throw explained(error);
      }
    },
    async complete({ state, code, iss }) {
      const taken = take(state);
      if (taken === null) return { outcome: "unknown" };
      const { server, pending } = taken;
      const failed = (reason: string) => store.transaction(() => parts.onFailed(server.serverId, reason));
      try {
        // Before anything else that the browser brings is believed, a refusal included.
        requireIssuer(pending.grantor, iss);
        if (code === undefined) {
          failed("the authorization was denied");
          return { outcome: "denied", server };
        }
        await redeem(server, pending, code, iss);
        return { outcome: "authorized", server };
      } catch (error) {
        const { message } = explained(error);
        failed(message);
        return { outcome: "failed", server, reason: message };
      }
    },
    prune: (limit) => store.transaction(() => queries.removeExpired(clock.now(), limit) === limit),
  };
}

/** What the owner is told of a failure; throws on what is none. */
function explained(error: unknown): AuthorizationError {
  if (error instanceof AuthorizationError) return error;
  // Nobody else cancels them.
  if (error instanceof EgressError && error.fault === "cancelled") {
    return new AuthorizationError(`its authorization took more than ${BEGIN_MS / 1000} seconds`);
  }
  if (error instanceof EgressError) return new AuthorizationError(`its authorization failed: ${error.message}`);
  throw error;
}
