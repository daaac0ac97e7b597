import { afterEach, beforeEach, expect, test } from "bun:test";
import { createEgress } from "../../src/egress/egress.ts";
import { createEgressPolicy } from "../../src/egress/policy.ts";
import { type Connections, createConnections, type Seen } from "../../src/mcp/connections.ts";
import type { ServerAddress } from "../../src/mcp/schema.ts";
import { handClock } from "../lib/hand-clock.ts";
import { type McpService, startMcpService, text } from "./mcp-service.ts";

let service: McpService;
let connections: Connections;
let listed: [serverId: string, Seen][];
/** How often an instance's secrets were read. */
let redactors: number;

function connect(times: { idleMs?: number; closeMs?: number } = {}): Connections {
  listed = [];
  redactors = 0;
  return createConnections({
    // It stands still: nothing is listed again before its next use.
    clock: handClock(),
    egress: createEgress({ policy: createEgressPolicy([service.host]) }),
    broker: {
      fillFor: async (_, __, texts) => texts.map(([, value]) => value),
      async redactor() {
        redactors++;
        return async (said) => said;
      },
    },
    accountOf: (instanceId) => instanceId,
    authorized: (guarded) => guarded,
    async onListed({ serverId }, seen) {
      listed.push([serverId, seen]);
    },
    async onFailure() {},
    ...times,
  });
}
beforeEach(() => {
  service = startMcpService("2026", { name: "echo", run: () => text("done") });
  connections = connect();
});
afterEach(async () => {
  await connections.closeAll();
  await service.stop();
});

const never = new AbortController().signal;
const serverOf = (name: string, instanceId = "inst_a"): ServerAddress => ({
  ...{ serverId: `mcp_${name}`, instanceId, name, url: service.url, headers: {} },
});
const use = (server: ServerAddress) => connections.use(server, never, async (_, { tools }) => tools.length);

test("those who use a server at the same time share one client, which has listed its tools once", async () => {
  expect(await Promise.all(Array.from({ length: 8 }, () => use(serverOf("one"))))).toEqual(Array(8).fill(1));
  expect([connections.open(), listed.length]).toEqual([1, 1]);
});

test("an instance's secrets are read once for all tools of a list", async () => {
  await service.offer(...Array.from({ length: 20 }, (_, at) => ({ name: `tool_${at}` })));
  expect([await use(serverOf("one")), redactors]).toEqual([20, 1]);
});

test("an account has no more than 16 clients: the one that was not used for longest makes room", async () => {
  for (let at = 0; at < 17; at++) await use(serverOf(`s${at}`));
  expect(connections.open()).toBe(16);
  await use(serverOf("s1"));
  expect(listed.length).toBe(17);
  await use(serverOf("s0"));
  expect(listed.length).toBe(18);
});

test("an account that uses 16 at once waits for itself, and others do not", async () => {
  const end = Promise.withResolvers<void>();
  const begun = Array.from({ length: 16 }, () => Promise.withResolvers<void>());
  const held = begun.map(({ resolve }, at) =>
    connections.use(serverOf(`s${at}`), never, async () => {
      resolve();
      await end.promise;
    }),
  );
  await Promise.all(begun.map(({ promise }) => promise));
  const waiting = use(serverOf("s16"));
  expect(await use(serverOf("other", "inst_b"))).toBe(1);
  end.resolve();
  await Promise.all(held);
  expect(await waiting).toBe(1);
});

test("a client that nobody needs is closed", async () => {
  connections = connect({ idleMs: 0 });
  const closed = Promise.withResolvers<void>();
  service.intercept = (method, request) => {
    if (method === "subscriptions/listen") request.signal.addEventListener("abort", () => closed.resolve());
    return undefined;
  };
  await use(serverOf("one"));
  await closed.promise;
  expect(connections.open()).toBe(0);
});

test("a server of 2025 is told that its session has ended", async () => {
  await service.stop();
  service = startMcpService("2025", { name: "echo" });
  connections = connect({ idleMs: 0 });
  const ended = Promise.withResolvers<string | null>();
  service.intercept = (method, request) => {
    if (method === "DELETE") ended.resolve(request.headers.get("mcp-session-id"));
    return undefined;
  };
  await use(serverOf("one"));
  const session = service.requests.at(-1)?.get("mcp-session-id");
  expect([session, await ended.promise]).toEqual([expect.any(String), session]);
});

test("the stop of the host waits until all servers of 2025 know that their sessions have ended", async () => {
  await service.stop();
  service = startMcpService("2025", { name: "echo" });
  connections = connect({ closeMs: 60_000 });
  let told = 0;
  service.intercept = async (method) => {
    if (method === "DELETE") {
      await new Promise((resolve) => setImmediate(resolve));
      told++;
    }
    return undefined;
  };
  for (const name of ["one", "two", "three"]) await use(serverOf(name));
  await connections.closeAll();
  expect([told, connections.open()]).toEqual([3, 0]);
});

test("the stop of the host waits for no server that does not answer", async () => {
  await service.stop();
  service = startMcpService("2025", { name: "echo" });
  connections = connect({ closeMs: 0 });
  const end = Promise.withResolvers<undefined>();
  service.intercept = (method) => (method === "DELETE" ? end.promise : undefined);
  await use(serverOf("one"));
  await connections.closeAll();
  end.resolve(undefined);
});

test("what a server says has changed is listed again before the next use", async () => {
  await use(serverOf("one"));
  expect(listed.map(([, { tools }]) => tools.length)).toEqual([1]);
  await service.offer({ name: "echo" }, { name: "more" });
  // As soon as it is heard.
  while ((await use(serverOf("one"))) !== 2) await new Promise((resolve) => setImmediate(resolve));
  expect(listed.at(-1)?.[1].tools.map(({ name }) => name)).toEqual(["echo", "more"]);
});

test("what has changed is listed before the next use, also after a list that failed", async () => {
  await use(serverOf("one"));
  let failures = 0;
  service.intercept = async (method, request) => {
    if (method !== "tools/list" || failures > 0) return undefined;
    failures++;
    const { id } = (await request.json()) as { id: number };
    return Response.json({ jsonrpc: "2.0", id, error: { code: -32_000, message: "not now" } });
  };
  await service.offer({ name: "echo" }, { name: "more" });
  const next = () => use(serverOf("one")).catch(({ message }: Error) => message);
  let told: unknown = 1;
  for (; told === 1; told = await next()) await new Promise((resolve) => setImmediate(resolve));
  expect([told, failures, await next()]).toEqual([expect.stringContaining("not now"), 1, 2]);
});

test("who comes while what has changed is being listed waits for the new list", async () => {
  await use(serverOf("one"));
  const listing = Promise.withResolvers<"listing">();
  const goOn = Promise.withResolvers<undefined>();
  service.intercept = (method) => {
    if (method !== "tools/list") return undefined;
    listing.resolve("listing");
    return goOn.promise;
  };
  await service.offer({ name: "echo" }, { name: "more" });
  // As soon as it is heard.
  while ((await Promise.race([use(serverOf("one")), listing.promise])) !== "listing")
    await new Promise((resolve) => setImmediate(resolve));
  const other = use(serverOf("one"));
  goOn.resolve(undefined);
  expect(await other).toBe(2);
});

test("a client is closed while what has changed is being listed: its stream ends, and its session", async () => {
  await service.stop();
  service = startMcpService("2025", { name: "echo" });
  connections = connect({ closeMs: 60_000 });
  const [listing, left] = [Promise.withResolvers<"listing">(), Promise.withResolvers<void>()];
  const goOn = Promise.withResolvers<undefined>();
  const ended: unknown[] = [];
  let lists = 0;
  service.intercept = (method, request) => {
    if (method === "GET") request.signal.addEventListener("abort", () => left.resolve());
    if (method === "DELETE") ended.push(request.headers.get("mcp-session-id"));
    if (method !== "tools/list" || ++lists === 1) return undefined;
    listing.resolve("listing");
    return goOn.promise;
  };
  await use(serverOf("one"));
  const session = service.requests.at(-1)?.get("mcp-session-id");
  // As soon as it listens, and has heard.
  while ((await Promise.race([use(serverOf("one")), listing.promise])) !== "listing") {
    await service.offer({ name: "echo" }, { name: "more" });
    await new Promise((resolve) => setImmediate(resolve));
  }
  connections.close("mcp_one");
  await connections.closeAll();
  expect([session, ended]).toEqual([expect.any(String), [session]]);
  await left.promise;
  goOn.resolve(undefined);
});

test("a use that is cancelled ends nothing for the others", async () => {
  const cancel = new AbortController();
  const cancelled = connections.use(serverOf("one"), cancel.signal, async () => 0).catch(String);
  const other = use(serverOf("one"));
  cancel.abort(new Error("enough"));
  expect(await cancelled).toBe("Error: enough");
  expect(await other).toBe(1);
});

test("a server that was retired goes on for who uses it, and is connected anew for the next", async () => {
  await connections.use(serverOf("one"), never, async (client, { tools: [tool] }) => {
    connections.retire("mcp_one");
    if (tool) expect(await client.callTool(tool, {}, never)).toEqual({ text: "done", isError: false });
    await use(serverOf("one"));
    expect([connections.open(), listed.length]).toEqual([2, 2]);
  });
  expect(connections.open()).toBe(1);
});

test.each(["2025", "2026"] as const)("a call that is cancelled ends its exchange with a server of %s", async (era) => {
  await service.stop();
  service = startMcpService(era, { name: "echo" });
  connections = connect();
  const [arrived, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  service.intercept = (method, request) => {
    if (method !== "tools/call") return undefined;
    request.signal.addEventListener("abort", () => ended.resolve());
    arrived.resolve();
    return new Response(new ReadableStream(), { headers: { "Content-Type": "text/event-stream" } });
  };
  const cancel = new AbortController();
  const call = connections.use(serverOf("one"), never, async (client, { tools: [tool] }) => {
    if (tool) await client.callTool(tool, {}, cancel.signal);
  });
  const failed = call.catch((error: Error) => error.message);
  await arrived.promise;
  cancel.abort(new Error("enough"));
  expect(await failed).toBe("it did not answer in time");
  await ended.promise;
});
