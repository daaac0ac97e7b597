import type { Egress } from "../../egress/egress.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Store } from "../../storage/store.ts";
import type { ServerAddress } from "../schema.ts";
import { type Grantor, scopesOf } from "./discovery.ts";
import { type Client, GrantRefused, refresh, revoke, type Tokens } from "./grants.ts";
import { oauthFetch } from "./oauth-fetch.ts";
import { authorizationQueries } from "./queries.ts";
import type { CredentialsRow } from "./schema.ts";

/** A server of the protocol, and whose it is. */
export interface OwnedServer extends Pick<ServerAddress, "serverId" | "instanceId" | "name" | "url"> {
  accountId: string;
}

/** What a completed authorization is worth: all of it, for one authorization server only. */
export interface Granted {
  /** The server's, at which the tokens may be shown. */
  url: string;
  grantor: Grantor;
  client: Client;
  tokens: Tokens;
}

interface Kept extends Granted {
  /** The access token before the last renewal: answers to it may still be on their way. */
  earlier: string | null;
  /** Whether a renewal was refused: then a person has to authorize the server again. */
  isEnded: boolean;
  /** The scopes that the server has asked for besides, when a token was not enough. */
  wanted?: string | undefined;
}

/** Characters of the scopes that a server may ask for besides: the page to consent on has them in its address. */
const MAX_WANTED = 1_000;
/** RFC 6749, 3.3 */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*$/;

/** Seals what is kept (src/secrets/vault.ts). */
export interface Sealing {
  seal(content: string, about: string): { dataKeyId: number; sealed: Buffer };
  open(kept: { dataKeyId: number; sealed: Buffer }, about: string): string | null;
}

/** The tokens for MCP servers. They leave it only in requests to their server, or to who has given them. */
export interface Credentials {
  /** Call it in the transaction that authorizes the server. What was given before is revoked, as by `forget`. */
  keep(server: OwnedServer, granted: Granted): void;
  /**
   * Forgets them, and asks the authorization server to do the same, once, without waiting for it. Call it in the
   * transaction that removes the server or changes its URL.
   */
  forget(server: OwnedServer): void;
  /**
   * A token that is good by the clock, renewed if need be; null if there is none. Throws `GrantRefused` if a person has to
   * authorize the server again, another `AuthorizationError` or `EgressError` if it could not be renewed now.
   */
  current(server: OwnedServer): Promise<string | null>;
  /** Another token than one that the server has refused; null if there is none. Throws as `current`. */
  other(server: OwnedServer, refused: string): Promise<string | null>;
  /** Has the next authorization ask for this scope too: the server does not do with what its token is good for. */
  want(server: OwnedServer, scope: string): void;
  /** The scopes that are to be asked for besides. */
  wanted(server: OwnedServer): string | undefined;
  has(serverId: string): boolean;
  /** All tokens of an instance's servers, by what they are, to be looked for in what comes back. */
  values(instanceId: string): Map<string, string>;
}

export interface CredentialParts {
  store: Store;
  clock: Clock;
  egress: Pick<Egress, "send" | "policy">;
  sealing: Sealing;
  onRevocationFailed(server: OwnedServer, error: unknown): void;
}

/** A token is renewed so long before its end: a request takes its time too. */
const EARLY_MS = 30_000;
/** Of one renewal, whoever waits for it. */
const RENEWAL_MS = 30_000;

const ended = () => new GrantRefused("its authorization server refused to renew the access");

const about = (serverId: string, issuer: string): string => `mcp credentials|${serverId}|${issuer}`;

export function createCredentials(parts: CredentialParts): Credentials {
  const { store, clock, egress, sealing } = parts;
  const queries = authorizationQueries(store.db);
  /** One at a time for each server: a refresh token is good for one renewal, whose answer all that wait share. */
  const renewals = new Map<string, Promise<string | null>>();

  function read(row: CredentialsRow): Kept | null {
    const content = sealing.open(row, about(row.serverId, row.issuer));
    return content === null ? null : (JSON.parse(content) as Kept);
  }

  /** Null for a server that is looked at under another URL: that may be anybody's. */
  function find({ serverId, url }: OwnedServer): { row: CredentialsRow; kept: Kept } | null {
    const row = queries.find(serverId);
    const kept = row && read(row);
    return row && kept?.url === url ? { row, kept } : null;
  }

  function write({ serverId }: OwnedServer, kept: Kept): void {
    const { issuer } = kept.grantor.metadata;
    const sealed = sealing.seal(JSON.stringify(kept), about(serverId, issuer));
    queries.put({ serverId, issuer, ...sealed, updatedAt: clock.now() });
  }

  async function renew(server: OwnedServer, row: CredentialsRow, kept: Kept): Promise<string | null> {
    const { grantor, client, tokens } = kept;
    if (tokens.refresh === null) return null;
    const ask = oauthFetch(egress, server, AbortSignal.timeout(RENEWAL_MS));
    try {
      const given = await refresh(grantor, client, tokens.refresh, ask, clock.now());
      return settle(server, row, () => {
        write(server, { ...kept, tokens: given, earlier: tokens.access });
        return given.access;
      });
    } catch (error) {
      if (!(error instanceof GrantRefused)) throw error;
      const newer = settle(server, row, () => {
        write(server, { ...kept, isEnded: true });
        return null;
      });
      if (newer !== null) return newer;
      throw ended();
    }
  }

  /** What came of a renewal counts only if nobody has authorized the server again, or removed it, meanwhile. */
  const settle = (server: OwnedServer, row: CredentialsRow, work: () => string | null): string | null =>
    store.transaction(() => (queries.isUnchanged(row) ? work() : (find(server)?.kept.tokens.access ?? null)));

  function renewOnce(server: OwnedServer, row: CredentialsRow, kept: Kept): Promise<string | null> {
    if (kept.isEnded) throw ended();
    const { serverId } = server;
    const begun = renewals.get(serverId);
    if (begun) return begun;
    const renewal = renew(server, row, kept).finally(() => renewals.delete(serverId));
    renewals.set(serverId, renewal);
    return renewal;
  }

  async function tellRevoked(server: OwnedServer, { grantor, client, tokens }: Granted): Promise<void> {
    const ask = oauthFetch(egress, server, AbortSignal.timeout(RENEWAL_MS));
    await revoke(grantor, client, tokens.refresh ?? tokens.access, ask);
  }

  const revokeSoon = (server: OwnedServer, granted: Granted): void =>
    store.afterCommit(() => {
      tellRevoked(server, granted).catch((error: unknown) => parts.onRevocationFailed(server, error));
    });

  return {
    keep(server, granted) {
      const row = queries.find(server.serverId);
      const before = row && read(row);
      const wanted = find(server)?.kept.wanted;
      write(server, { ...granted, earlier: null, isEnded: false, wanted });
      // Some servers end all that a client was ever given with one token of it.
      if (before && before.client.client_id !== granted.client.client_id) revokeSoon(server, before);
    },
    forget(server) {
      const row = queries.remove(server.serverId);
      const kept = row && read(row);
      if (kept) revokeSoon(server, kept);
    },
    async current(server) {
      const found = find(server);
      if (found === null) return null;
      const { row, kept } = found;
      if (kept.isEnded) throw ended();
      const { access, refresh: refreshToken, expiresAt } = kept.tokens;
      const leftMs = expiresAt === null ? Number.POSITIVE_INFINITY : expiresAt - clock.now();
      if (leftMs > EARLY_MS || refreshToken === null) return access;
      try {
        return await renewOnce(server, row, kept);
      } catch (error) {
        if (leftMs <= 0 || error instanceof GrantRefused) throw error;
        return access;
      }
    },
    async other(server, refused) {
      const found = find(server);
      if (found === null) return null;
      const { row, kept } = found;
      if (kept.tokens.access !== refused && !kept.isEnded) return kept.tokens.access;
      return await renewOnce(server, row, kept);
    },
    want(server, scope) {
      if (scope.length > MAX_WANTED || !SCOPE.test(scope)) return;
      store.transaction(() => {
        const kept = find(server)?.kept;
        if (!kept) return;
        const all = scopesOf(scope, kept.wanted);
        const wanted = all.length > MAX_WANTED ? scope : all;
        if (wanted !== kept.wanted) write(server, { ...kept, wanted });
      });
    },
    wanted: (server) => find(server)?.kept.wanted,
    has: (serverId) => queries.find(serverId) !== undefined,
    values(instanceId) {
      const values = new Map<string, string>();
      for (const row of queries.ofInstance(instanceId)) {
        const kept = read(row);
        if (kept === null) continue;
        const { tokens, earlier, client } = kept;
        const all = {
          ...{ token: tokens.access, earlier_token: earlier },
          ...{ refresh_token: tokens.refresh, client_secret: client.client_secret },
        };
        for (const [name, value] of Object.entries(all)) if (value) values.set(`${name} of ${row.serverId}`, value);
      }
      return values;
    },
  };
}
