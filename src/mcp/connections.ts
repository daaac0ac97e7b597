import { asFetch, type GuardedFetch } from "../egress/as-fetch.ts";
import type { Egress } from "../egress/egress.ts";
import { targetOf } from "../egress/target.ts";
import type { Clock } from "../lib/clock.ts";
import { untilAborted } from "../lib/until-aborted.ts";
import { createFairPlaces } from "../limits/fair-places.ts";
import { OUTGOING } from "../limits/outgoing.ts";
import { createSlots } from "../limits/slots.ts";
import type { SecretBroker } from "../tools/secret-broker.ts";
import type { McpClient } from "./client.ts";
import { type Listing, readListing } from "./listing.ts";
import type { ServerAddress } from "./schema.ts";
import { ServerError } from "./server-error.ts";
import { createServerFetch } from "./server-fetch.ts";

const { clients: MAX_CLIENTS, places: PLACES, deadlineMs: DEADLINE_MS, idleMs: IDLE_MS } = OUTGOING.mcp;
/** A server that says all the time that its tools have changed is asked no more often. */
const LIST_PAUSE_MS = 10_000;
/** How long the stop of the host, which has ten seconds in all, waits until servers have been told that their sessions end. */
const CLOSE_MS = 2_000;

export interface ConnectionParts {
  clock: Clock;
  egress: Pick<Egress, "open">;
  broker: Pick<SecretBroker, "fillFor"> & {
    /** Takes the values of the instance's secrets out of texts. */
    redactor(instanceId: string): Promise<(text: string) => Promise<string>>;
  };
  accountOf(instanceId: string): string;
  /** Adds the token of a server at which somebody has authorized the instance. */
  authorized(fetch: GuardedFetch, server: ServerAddress & { accountId: string }): GuardedFetch;
  /** Told whenever a server was seen. */
  onListed(server: ServerAddress, seen: Seen): Promise<void>;
  /** Told of what nobody waits for. */
  onFailure(server: ServerAddress, thrown: unknown): Promise<void>;
  idleMs?: number | undefined;
  closeMs?: number | undefined;
}

/** What a client has learned of its server. */
export interface Seen extends Listing {
  protocolVersion: string | null;
}

/** Clients of servers: one for each, which is closed when nobody has needed it for a while. */
export interface Connections {
  /**
   * Works with the server's client, connecting it first where it is not. By then, its tools are listed as they are now.
   * Throws `ServerError`, or the signal's reason.
   */
  use<T>(server: ServerAddress, signal: AbortSignal, work: (client: McpClient, seen: Seen) => Promise<T>): Promise<T>;
  /** Ends the server's client, whoever uses it. */
  close(serverId: string): void;
  /** The next use connects anew; who uses the client now goes on with it. */
  retire(serverId: string): void;
  /** Ends those of an instance. */
  closeOf(instanceId: string): void;
  /** Ends all, and waits for a moment until their servers know. */
  closeAll(): Promise<void>;
  open(): number;
}

interface Connection {
  server: ServerAddress;
  accountId: string;
  /** Closed at the end, whatever becomes of the list of its tools. */
  client: Promise<McpClient>;
  opened: Promise<Opened>;
  users: number;
  lastUsedMs: number;
  /** Ends it once nobody has used it for a while. */
  idle: Timer | undefined;
  /** Whether the server has said that its tools have changed, since they were listed. */
  isStale: boolean;
  listedMs: number;
  end: AbortController;
}

interface Opened {
  client: McpClient;
  seen: Seen;
}

export function createConnections(parts: ConnectionParts): Connections {
  const { clock, egress, broker, accountOf, authorized, onListed, onFailure } = parts;
  const { idleMs = IDLE_MS, closeMs = CLOSE_MS } = parts;
  const connections = new Map<string, Connection>();
  /** Those that are still in use, but that nobody else may have. */
  const retired = new Set<Connection>();
  /** Nobody but the stop of the host waits for these. */
  const closing = new Set<Promise<void>>();
  const slots = createSlots(MAX_CLIENTS);
  const places = createFairPlaces(PLACES);
  const all = () => [...connections.values(), ...retired];
  const nowMs = () => Number(clock.monotonicNs() / 1_000_000n);

  async function list(connection: Connection, client: McpClient, signal: AbortSignal): Promise<Seen> {
    connection.listedMs = nowMs();
    const { server } = connection;
    const listed = await client.listTools(signal);
    const redact = await broker.redactor(server.instanceId);
    const listing = await readListing(listed, { server: server.name, redact });
    const seen = { ...listing, protocolVersion: client.protocolVersion };
    await onListed(server, seen);
    return seen;
  }

  async function clientOf(connection: Connection, signal: AbortSignal): Promise<McpClient> {
    const { server, accountId } = connection;
    const url = new URL(server.url);
    const { openClient } = await import("./client.ts");
    const names = Object.keys(server.headers);
    const fetch = createServerFetch({
      guarded: authorized(asFetch(egress, { accountId, instanceId: server.instanceId }), { ...server, accountId }),
      url,
      async headers() {
        const texts = Object.values(server.headers).map((text): ["header", string] => ["header", text]);
        const values = await broker.fillFor(server.instanceId, targetOf(server.url), texts);
        return Object.fromEntries(names.map((name, at) => [name, values[at] ?? ""]));
      },
    });
    return await openClient({ url, fetch, onChanged: () => noteChange(connection) }, signal);
  }

  async function connect(connection: Connection): Promise<Opened> {
    const within = AbortSignal.any([connection.end.signal, AbortSignal.timeout(DEADLINE_MS)]);
    connection.client = clientOf(connection, within);
    const client = await connection.client;
    return { client, seen: await list(connection, client, within) };
  }

  /** Lists again what the server says has changed, at once or after a pause. */
  function noteChange(connection: Connection): void {
    if (connection.isStale) return;
    connection.isStale = true;
    const waitMs = Math.max(0, connection.listedMs + LIST_PAUSE_MS - nowMs());
    const timer = setTimeout(() => {
      if (!connection.isStale || connections.get(connection.server.serverId) !== connection) return;
      const { server, end } = connection;
      refresh(connection).catch((error: unknown) => {
        if (!end.signal.aborted) void onFailure(server, error);
      });
    }, waitMs);
    timer.unref();
  }

  /** Lists its tools again. Whoever uses it meanwhile waits for that; after a failure, the next use lists them again. */
  function refresh(connection: Connection): Promise<Opened> {
    const before = connection.opened;
    const within = AbortSignal.any([connection.end.signal, AbortSignal.timeout(DEADLINE_MS)]);
    const again = async (): Promise<Opened> => {
      try {
        const { client } = await before;
        return { client, seen: await list(connection, client, within) };
      } catch (error) {
        Object.assign(connection, { isStale: true, opened: before });
        throw error;
      }
    };
    connection.isStale = false;
    connection.opened = again();
    return connection.opened;
  }

  function retire(connection: Connection): void {
    const { serverId } = connection.server;
    if (connections.get(serverId) === connection) connections.delete(serverId);
    retired.add(connection);
    if (connection.users === 0) end(connection);
  }

  function end(connection: Connection): void {
    const { server, accountId, client } = connection;
    if (connections.get(server.serverId) === connection) connections.delete(server.serverId);
    else if (!retired.delete(connection)) return;
    clearTimeout(connection.idle);
    slots.release(accountId);
    connection.end.abort(new ServerError("unknown", "its client was closed"));
    const closed = client
      .then((connected) => connected.close())
      .catch(() => {})
      .finally(() => closing.delete(closed));
    closing.add(closed);
  }

  /** A place for one more client of the account; the one that was not used for longest makes room. */
  function takePlace(accountId: string): void {
    for (;;) {
      const place = slots.acquire(accountId);
      if (place === "taken") return;
      const idle = [...connections.values()]
        .filter((one) => one.users === 0 && (place === "total" || one.accountId === accountId))
        .toSorted((one, other) => one.lastUsedMs - other.lastUsedMs);
      const [longest] = idle;
      if (longest === undefined) throw busy("servers are in use");
      end(longest);
    }
  }

  function connectionOf(server: ServerAddress): Connection {
    const known = connections.get(server.serverId);
    if (known) {
      if (isSameAddress(known.server, server)) return known;
      retire(known);
    }
    const accountId = accountOf(server.instanceId);
    takePlace(accountId);
    const notYet = Promise.reject(new Error("not yet"));
    notYet.catch(() => {});
    const connection: Connection = {
      ...{ server, accountId, users: 0, lastUsedMs: nowMs(), idle: undefined, isStale: false, listedMs: 0 },
      ...{ client: notYet, opened: notYet, end: new AbortController() },
    };
    connections.set(server.serverId, connection);
    connection.opened = connect(connection);
    connection.opened.catch(() => end(connection));
    return connection;
  }

  function leave(connection: Connection): void {
    connection.lastUsedMs = nowMs();
    if (--connection.users > 0) return;
    if (retired.has(connection)) {
      end(connection);
      return;
    }
    connection.idle = setTimeout(() => end(connection), idleMs);
    connection.idle.unref();
  }

  return {
    async use(server, signal, work) {
      const release = await places.take(accountOf(server.instanceId), signal);
      if (release === null) throw busy("calls wait");
      try {
        const connection = connectionOf(server);
        connection.users++;
        clearTimeout(connection.idle);
        try {
          await untilAborted(connection.opened, signal);
          if (connection.isStale) refresh(connection).catch(() => {});
          const { client, seen } = await untilAborted(connection.opened, signal);
          return await work(client, seen);
        } finally {
          leave(connection);
        }
      } finally {
        release();
      }
    },
    close(serverId) {
      for (const one of all()) if (one.server.serverId === serverId) end(one);
    },
    retire(serverId) {
      const connection = connections.get(serverId);
      if (connection) retire(connection);
    },
    closeOf(instanceId) {
      for (const one of all()) if (one.server.instanceId === instanceId) end(one);
    },
    async closeAll() {
      for (const one of all()) end(one);
      await untilAborted(Promise.all(closing), AbortSignal.timeout(closeMs)).catch(() => {});
    },
    open: () => connections.size + retired.size,
  };
}

const busy = (what: string) => new ServerError("busy", `too many MCP ${what} at the moment: try again later`);

export const isSameAddress = (one: ServerAddress, other: ServerAddress): boolean =>
  one.url === other.url && one.name === other.name && JSON.stringify(one.headers) === JSON.stringify(other.headers);
