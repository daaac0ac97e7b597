import { expect, test } from "bun:test";
import { listen } from "../../src/http/listener.ts";
import { answerWhileStopping } from "../../src/http/status-pages.ts";
import { startConversation } from "../messages/conversation.ts";
import { startOtlpReceiver } from "../support/otlp-receiver.ts";
import { startTestServer } from "../support/test-server.ts";

test("a host that stops says so to everybody but who asks whether it lives", async () => {
  const answer = answerWhileStopping("1.0.0");
  const ask = async (path: string, method = "GET") => {
    const given = answer(new Request(`http://127.0.0.1${path}`, { method, headers: { "X-Request-Id": "one" } }));
    expect([given.headers.get("Connection"), given.headers.get("X-Request-Id")]).toEqual(["close", "one"]);
    return { status: given.status, retryAfter: Number(given.headers.get("Retry-After")), body: await given.json() };
  };
  expect(await ask("/healthz")).toEqual({ status: 200, retryAfter: 0, body: { status: "ok", version: "1.0.0" } });
  expect(await ask("/readyz?full")).toEqual({ status: 503, retryAfter: 0, body: { status: "stopping" } });
  for (const method of ["GET", "POST"]) {
    const { status, retryAfter, body } = await ask("/v1/instances", method);
    expect(body).toEqual({
      error: { code: "internal_error", message: expect.stringContaining("stopping"), status, requestId: "one" },
    });
    expect(status).toBe(503);
    expect(retryAfter).toBeWithin(1, 6);
  }
});

test("while a server drains, answers in progress finish, and new connections get an answer until it has stopped", async () => {
  const log = { warn() {}, error() {} };
  const listener = listen({ hostname: "127.0.0.1", port: 0, publicUrl: null, trustProxy: false, openFiles: null, log });
  const [begun, slow] = [Promise.withResolvers<void>(), Promise.withResolvers<Response>()];
  listener.answerWith(() => {
    begun.resolve();
    return slow.promise;
  });
  const waiting = fetch(listener.url);
  await begun.promise;
  listener.answerWith(answerWhileStopping("1.0.0"));
  const drained = listener.drain();
  const status = async () => (await fetch(new URL("/readyz", listener.url))).status;
  expect(await status()).toBe(503);
  slow.resolve(new Response("done"));
  expect(await (await waiting).text()).toBe("done");
  await drained;
  expect(await status()).toBe(503);
  await listener.stop();
  await expect(status()).rejects.toThrow();
  // Its port is free.
  const { port } = new URL(listener.url);
  const next = listen({
    hostname: "127.0.0.1",
    port: Number(port),
    publicUrl: null,
    trustProxy: false,
    openFiles: null,
    log,
  });
  await next.stop();
});

test("a host is not ready as long as its stop takes, and then it is gone", async () => {
  const collector = startOtlpReceiver();
  collector.answerWith("never");
  const server = await startTestServer({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
  // Its span is what the stop waits for.
  await server.ask("GET", "/v1/skills");
  const stopped = server.stop();
  // In the moment in which the port changes hands, a connection may be refused.
  const ask = (): Promise<Response> => fetch(new URL("/v1/skills", server.url)).catch(ask);
  let answer = await ask();
  while (answer.status === 200) answer = await ask();
  expect([answer.status, answer.headers.get("Connection")]).toEqual([503, "close"]);
  expect(await (await fetch(new URL("/readyz", server.url))).json()).toEqual({ status: "stopping" });
  await stopped;
  await expect(fetch(server.url)).rejects.toThrow();
  await collector.stop();
});

test("a message that waits for its answer when the host stops hears so, and its run goes on at the next start", async () => {
  const it = await startConversation();
  it.when("Wait", { kind: "hang" }, { kind: "text", tokens: ["Here I am"] });
  const asked = it.modelAsked("Wait");
  const waiting = it.person.fetch("POST", it.at("/messages"), { message: "Wait" });
  await asked;
  const restarted = it.server.restart();
  const answer = await waiting;
  expect([answer.status, answer.headers.has("Retry-After")]).toEqual([503, true]);
  expect((await answer.json()).error.message).toContain("what it has accepted goes on");
  await restarted;
  await it.person.ask("POST", it.at("/messages"), { message: "Next" });
  const { data } = (await it.person.ask("GET", it.at("/messages"))).body;
  expect(data.map(({ message }: { message: string }) => message)).toContain("Here I am");
  await it.stop();
});
