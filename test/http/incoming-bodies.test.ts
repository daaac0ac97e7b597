import { afterEach, expect, test } from "bun:test";
import { z } from "zod";
import { createIncomingBodies, type IncomingBodies } from "../../src/http/incoming-bodies.ts";
import { route } from "../../src/http/route.ts";
import { AppError } from "../../src/lib/app-error.ts";
import { openGround, serve as serveRoutes } from "../support/route-harness.ts";
import { hold } from "./held-request.ts";

const KIB = 1024;
let server: Bun.Server<undefined> | undefined;
afterEach(() => server?.stop(true));

/** A server that reads each request's body, on behalf of its `X-Owner`, and reports how it went. */
function serve(bodies: IncomingBodies, limitBytes = 64 * KIB): string {
  server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    async fetch(request) {
      try {
        const body = bodies.open(request, request.headers.get("x-owner") ?? "nobody", limitBytes);
        return new Response(String((await body.bytes()).byteLength));
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        return new Response(error.message, { status: error.status, headers: error.headers });
      }
    },
  });
  return server.url.href;
}
const until = async (holds: () => boolean) => {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve));
};

test("memory for bodies is bounded for all senders together, and released afterwards", async () => {
  const bodies = createIncomingBodies({ totalBytes: 256 * KIB, now: () => 0 });
  const url = serve(bodies);
  const body = "x".repeat(16 * KIB);
  const held = [];
  for (let at = 0; at < 30; at++) {
    held.push(await hold(url, "POST", "/", body, { "X-Owner": "attacker" }));
    await until(() => bodies.receiving() >= Math.min(at + 1, 12) * 16 * KIB);
  }
  // Twelve fit into the share of one; the rest is refused before it is read.
  const refused = await Promise.all(held.slice(12).map(({ answered }) => answered));
  expect(new Set(refused.map(({ status }) => status))).toEqual(new Set([503]));
  expect(bodies.receiving()).toBe(12 * 16 * KIB);
  const neighbour = await fetch(url, { method: "POST", body, headers: { "X-Owner": "neighbour" } });
  expect([neighbour.status, await neighbour.text()]).toEqual([200, String(16 * KIB)]);
  for (const request of held) request.destroy();
  await until(() => bodies.receiving() === 0);
});

test("a body over its limit is refused at once, and none of it is kept", async () => {
  const bodies = createIncomingBodies({ now: () => 0 });
  const url = serve(bodies, KIB);
  const held = await hold(url, "POST", "/", "x".repeat(1_000 * KIB));
  expect((await held.answered).status).toBe(413);
  expect(bodies.receiving()).toBe(0);
  held.destroy();
});

test("a body without a length is counted as it arrives", async () => {
  const bodies = createIncomingBodies({ now: () => 0 });
  const url = serve(bodies, 10 * KIB);
  const chunked = (chunks: number) => {
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let at = 0; at < chunks; at++) controller.enqueue(new Uint8Array(KIB));
        controller.close();
      },
    });
    return fetch(url, { method: "POST", body });
  };
  expect(await (await chunked(10)).text()).toBe(String(10 * KIB));
  expect((await chunked(11)).status).toBe(413);
  expect(bodies.receiving()).toBe(0);
});

test("a body that does not arrive in time is given up, and its connection closed", async () => {
  let now = 0;
  const bodies = createIncomingBodies({ deadlineSeconds: 30, checkMs: 5, now: () => now });
  const url = serve(bodies);
  const held = await hold(url, "POST", "/", "x".repeat(KIB));
  await until(() => bodies.receiving() > 0);
  now = 31;
  expect((await held.answered).status).toBe(408);
  expect(bodies.receiving()).toBe(0);
});

test("a request without a body reserves nothing", async () => {
  const bodies = createIncomingBodies({ totalBytes: 1, now: () => 0 });
  expect(await (await fetch(serve(bodies), { method: "DELETE" })).text()).toBe("0");
});

test("a body counts from before its request waits for its turn: it arrives meanwhile", async () => {
  const bodies = createIncomingBodies({ now: () => 0 });
  const turn = Promise.withResolvers<void>();
  const waiting = Promise.withResolvers<number>();
  const turns = {
    enter() {
      waiting.resolve(bodies.receiving());
      return turn.promise;
    },
    spend: <T>(_: string, work: () => T) => work(),
    spent() {},
  };
  const write = route({
    method: "POST",
    path: "/v1/write",
    name: "write",
    tag: "host",
    summary: "Write",
    access: "chat",
    bound: "record",
    body: z.object({ text: z.string() }),
    answer: z.unknown(),
    handle: async ({ body }) => ({ length: (await body()).text.length }),
  });
  await using ground = openGround();
  await using routes = serveRoutes([write], ground, { bodies, turns });
  const sent = { text: "x".repeat(16 * KIB) };
  const answer = routes.send(ground.account(), "POST", "/v1/write", sent);
  expect(await waiting.promise).toBe(JSON.stringify(sent).length);
  turn.resolve();
  expect((await answer).body).toEqual({ length: 16 * KIB });
  expect(bodies.receiving()).toBe(0);
});
