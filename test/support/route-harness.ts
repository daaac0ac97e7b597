import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ServingParts } from "../../src/http/exchange.ts";
import { createIdempotency } from "../../src/http/idempotency.ts";
import { createIncomingBodies } from "../../src/http/incoming-bodies.ts";
import { createPaging } from "../../src/http/paging.ts";
import type { Route } from "../../src/http/route.ts";
import { createFetch } from "../../src/http/server.ts";
import { createInstances, type Instances } from "../../src/instances/instances.ts";
import { AppError } from "../../src/lib/app-error.ts";
import { type Clock, systemClock } from "../../src/lib/clock.ts";
import { type Caller, SCOPES } from "../../src/limits/caller.ts";
import { createFairTurns } from "../../src/limits/fair-turns.ts";
import { type Audit, createAudit } from "../../src/storage/audit.ts";
import { openStore, type Store } from "../../src/storage/store.ts";
import { ampleQuotas } from "./quotas.ts";

/** A data folder with a database, an audit log and instances: what the features build on. */
export interface Ground extends AsyncDisposable {
  dataDir: string;
  store: Store;
  clock: Clock;
  audit: Audit;
  instances: Instances;
  accountOf(instanceId: string): string;
  /** Creates an account, and returns the caller that its token stands for. */
  account(): Caller;
}

export function openGround(clock: Clock = systemClock): Ground {
  const dataDir = mkdtempSync(join(tmpdir(), "roost-room-"));
  const store = openStore(dataDir);
  const nothing = () => {};
  const instances = createInstances({
    store,
    clock,
    requireLaunch: async () => {},
    meter: { start: nothing, stop: nothing, remove: nothing, listen: nothing },
    createFolder: nothing,
    quotas: ampleQuotas(store),
    removals: { add: nothing },
  });
  let accounts = 0;
  return {
    dataDir,
    store,
    clock,
    audit: createAudit(store, clock, () => true),
    instances,
    accountOf: (instanceId) => instances.find(instanceId)?.accountId ?? instanceId,
    account() {
      const name = `person-${++accounts}`;
      const accountId = `acct_${name}`;
      store.sqlite.run("INSERT INTO accounts (account_id, email, name, created_at) VALUES (?, ?, ?, 0)", [
        accountId,
        `${name}@example.com`,
        name,
      ]);
      return {
        accountId,
        email: `${name}@example.com`,
        name,
        scopes: new Set(SCOPES),
        instanceId: null,
        keyId: null,
        credentials: [],
      };
    },
    async [Symbol.asyncDispose]() {
      store.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

export interface Answer {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever came
  body: any;
  headers: Headers;
}

export interface RouteServer extends AsyncDisposable {
  url: string;
  /** Sends a request as this caller (null: without credentials), with a JSON body if one is given. */
  send(caller: Caller | null, method: string, path: string, body?: unknown, headers?: HeadersInit): Promise<Answer>;
}

/**
 * Serves these routes on a free port. Only admission is replaced, and what is in `parts`: a header names the caller,
 * who has no limits.
 */
export function serve(
  routes: readonly Route[],
  { store, clock }: Ground,
  parts: Partial<ServingParts> = {},
): RouteServer {
  const callers = new Map<string, Caller>();
  const fetchRoutes = createFetch(routes, [], {
    admission: {
      caller(request) {
        const caller = callers.get(request.headers.get("x-caller") ?? "");
        if (!caller) throw new AppError("unauthorized", "missing or invalid credentials");
        return caller;
      },
      inner() {},
      anybody: () => null,
      requireFewRefusals() {},
      refused() {},
      chargePage() {},
      chargeRead() {},
      chargeWrite() {},
    },
    stillValid: () => true,
    turns: createFairTurns({ maxMs: Number.POSITIVE_INFINITY }),
    bodies: createIncomingBodies({ now: () => performance.now() / 1000 }),
    idempotency: createIdempotency(store, clock, randomBytes(32)),
    startPage: createPaging(randomBytes(32)),
    commits: {
      shared: (work) => store.commitSoon(work, "full"),
      alone: async (work) => store.transaction(work),
    },
    addressOf: () => "127.0.0.1",
    traces: null,
    onAnswer() {},
    onPageFailure() {},
    ...parts,
  });
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, idleTimeout: 0, fetch: fetchRoutes });
  const url = `http://127.0.0.1:${server.port}`;

  return {
    url,
    async send(caller, method, path, body, headers) {
      const sent = new Headers(headers);
      if (caller) {
        const name = `${caller.accountId} ${caller.instanceId} ${[...caller.scopes].join("+")}`;
        callers.set(name, caller);
        sent.set("x-caller", name);
      }
      if (body !== undefined && !sent.has("content-type")) sent.set("content-type", "application/json");
      const content = body === undefined ? null : typeof body === "string" ? body : JSON.stringify(body);
      const response = await fetch(url + path, { method, headers: sent, body: content });
      return { status: response.status, body: await response.json(), headers: response.headers };
    },
    async [Symbol.asyncDispose]() {
      await server.stop(true);
    },
  };
}
