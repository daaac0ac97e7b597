import { createEgress } from "../../src/egress/egress.ts";
import { createEgressPolicy } from "../../src/egress/policy.ts";
import { newId } from "../../src/lib/id.ts";
import { type Authorization, createAuthorization } from "../../src/mcp/authorization/authorization.ts";
import { type Credentials, createCredentials, type OwnedServer } from "../../src/mcp/authorization/credentials.ts";
import { openMasterKey } from "../../src/secrets/master-key.ts";
import { createVault } from "../../src/secrets/vault.ts";
import { type Ground, openGround } from "../support/route-harness.ts";

export const PUBLIC_URL = "http://127.0.0.1:3000";
export const CALLBACK = `${PUBLIC_URL}/v1/oauth/callback`;

/** The rules of authorizations over a database of their own, whose guard lets them reach `hosts`. */
export interface Room extends AsyncDisposable {
  ground: Ground;
  authorization: Authorization;
  credentials: Credentials;
  /** Moves the clock. */
  later(ms: number): void;
  /** An MCP server of a new instance. */
  add(url: string): OwnedServer;
  remove(server: OwnedServer): void;
  move(server: OwnedServer, url: string): void;
  /** Why authorizations have ended otherwise than well. */
  failures: string[];
  revocationFailures: unknown[];
}

export function openRoom(hosts: readonly string[], publicUrl = PUBLIC_URL): Room {
  let laterMs = 0;
  const beganMs = Date.now();
  const clock = { now: () => beganMs + laterMs, monotonicNs: () => process.hrtime.bigint() };
  const ground = openGround(clock);
  const { store } = ground;
  const egress = createEgress({ policy: createEgressPolicy(hosts.length === 0 ? "none" : hosts) });
  const sealing = createVault(store, clock, openMasterKey(ground.dataDir));
  const failures: string[] = [];
  const revocationFailures: unknown[] = [];
  const credentials = createCredentials({
    ...{ store, clock, egress, sealing },
    onRevocationFailed: (_, error) => void revocationFailures.push(error),
  });
  const caller = ground.account();
  const { instanceId } = ground.instances.create(caller, "one");
  const rowOf = (serverId: string) =>
    store.sqlite
      .query<{ name: string; url: string }, [string]>("SELECT name, url FROM mcp_servers WHERE server_id = ?")
      .get(serverId);
  const authorization = createAuthorization({
    ...{ ...ground, store, clock, egress, sealing, credentials },
    publicUrl: () => publicUrl,
    find(serverId) {
      const row = rowOf(serverId);
      return row ? { ...row, serverId, instanceId, accountId: caller.accountId } : undefined;
    },
    onFailed: (_, reason) => void failures.push(reason),
  });
  let servers = 0;
  return {
    ...{ ground, authorization, credentials, failures, revocationFailures },
    later: (ms) => {
      laterMs += ms;
    },
    add(url) {
      const server = { serverId: newId("mcp"), instanceId, accountId: caller.accountId, name: `s${++servers}`, url };
      store.transaction(() =>
        store.sqlite.run(
          `INSERT INTO mcp_servers (server_id, instance_id, name, url, headers, status, tools, revision, created_at, updated_at)
           VALUES (?, ?, ?, ?, '{}', 'needs_authorization', '[]', 1, 0, 0)`,
          [server.serverId, instanceId, server.name, url],
        ),
      );
      return server;
    },
    remove: ({ serverId }) =>
      store.transaction(() => void store.sqlite.run("DELETE FROM mcp_servers WHERE server_id = ?", [serverId])),
    move: ({ serverId }, url) =>
      store.transaction(
        () => void store.sqlite.run("UPDATE mcp_servers SET url = ? WHERE server_id = ?", [url, serverId]),
      ),
    [Symbol.asyncDispose]: () => ground[Symbol.asyncDispose](),
  };
}
