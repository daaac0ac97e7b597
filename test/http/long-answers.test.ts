import { expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { z } from "zod";
import { route } from "../../src/http/route.ts";
import { openGround, serve } from "../support/route-harness.ts";

const MIB = 1024 * 1024;
const REQUESTS = 128;

const residentBytes = () => {
  Bun.gc(true);
  return process.memoryUsage().rss;
};

test.each([
  ["without a key", ""],
  ["with one", "Idempotency-Key: KEY\r\n"],
])("a request's body is not kept while its answer takes long: %s", async (_, header) => {
  await using ground = openGround();
  const over = Promise.withResolvers<object>();
  let read = 0;
  const table = [
    route({
      method: "POST",
      path: "/v1/wait",
      name: "wait",
      tag: "host",
      summary: "Wait",
      access: "chat",
      bound: "record",
      body: z.object({ message: z.string() }),
      answer: z.unknown(),
      async handle({ body }) {
        await body();
        read++;
        return over.promise;
      },
    }),
  ];
  await using server = serve(table, ground);
  const caller = ground.account();
  const sent = JSON.stringify({ message: "hi", filler: "x".repeat(MIB - 100) });
  // The harness gets to know its callers by their requests.
  await server.send(caller, "GET", "/v1/wait");
  const name = `${caller.accountId} ${caller.instanceId} ${[...caller.scopes].join("+")}`;
  const before = residentBytes();
  const sockets: Socket[] = [];
  for (let at = 0; at < REQUESTS; at++) {
    const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
    sockets.push(socket);
    const head = `POST /v1/wait HTTP/1.1\r\nHost: localhost\r\nX-Caller: ${name}\r\nContent-Type: application/json\r\n`;
    socket.write(`${head}${header.replace("KEY", String(at))}Content-Length: ${sent.length}\r\n\r\n${sent}`);
    while (read <= at) await new Promise((resolve) => setImmediate(resolve));
  }
  expect(residentBytes() - before).toBeLessThan((REQUESTS / 2) * MIB);
  over.resolve({});
  for (const socket of sockets) socket.destroy();
});
