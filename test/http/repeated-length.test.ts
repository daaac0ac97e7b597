import { afterEach, expect, test } from "bun:test";
import { handClock } from "../lib/hand-clock.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { rawRequest } from "./raw-request.ts";

let server: TestServer;
afterEach(() => server.stop());

/** The runtime accepts two equal lengths, and passes them on as one header: `5, 5`. */
const head = (method: string, path: string, length: number, more: string[] = []) =>
  [
    `${method} ${path} HTTP/1.1`,
    `Host: ${new URL(server.url).host}`,
    "Content-Type: application/json",
    `Content-Length: ${length}`,
    `Content-Length: ${length}`,
    ...more,
    "",
    "",
  ].join("\r\n");

test("a repeated Content-Length counts once: a body over the limit is refused unread", async () => {
  server = await startTestServer();
  const body = JSON.stringify({ email: "ada@example.com", filler: "x".repeat(20_000) });
  const answer = await rawRequest(server.url, head("POST", "/v1/auth/send-code", body.length), body);
  expect(answer.status).toBe(413);
});

test("a repeated Content-Length lets nobody exceed the account's rate", async () => {
  // No time passes, so that it gives back nothing of what was used up, however long the requests take.
  server = await startTestServer({ ROOST_WRITES_PER_SECOND: "1" }, { clock: handClock() });
  const person = await server.signUp();
  const body = JSON.stringify({ name: "Ada" });
  const request = head("PATCH", "/v1/auth/me", body.length, [`Authorization: Bearer ${person.token}`]);
  expect((await rawRequest(server.url, request, body)).status).toBe(200);
  const answers = await Promise.all(
    Array.from({ length: 40 }, () => person.ask("PATCH", "/v1/auth/me", { name: "Ada" })),
  );
  expect(answers.filter(({ status }) => status === 429).length).toBeGreaterThan(20);
});
