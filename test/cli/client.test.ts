import { afterAll, expect, test } from "bun:test";
import { explain } from "../../src/cli/failure.ts";
import { createClient, RoostError } from "../../src/cli/user/client.ts";
import { whenLost } from "../../src/cli/user/lost-connection.ts";
import { readBoundedText } from "../../src/lib/bounded-text.ts";

const MIB = 1024 * 1024;
let sent = 0;

/** Sends as fast as it is read, forever. */
const endless = () =>
  new ReadableStream<Uint8Array>({
    pull(controller) {
      sent += MIB;
      controller.enqueue(new Uint8Array(MIB).fill(0x20));
    },
  });

const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch(request) {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === "/v1/instances") {
      return Response.json({ data: [], nextCursor: String(Number(searchParams.get("after") ?? 0) + 1) });
    }
    return new Response(endless(), { status: pathname === "/v1/auth/me" ? 400 : 200 });
  },
});
afterAll(() => server.stop(true));
const client = createClient(`http://127.0.0.1:${server.port}`, null);

test.each(["/v1/billing", "/v1/auth/me"] as const)("an answer without end is left: %s", async (path) => {
  sent = 0;
  await expect(client.get(path)).rejects.toThrow("answered too much");
  expect(sent).toBeLessThan(200 * MIB);
});

test("an endless list is abandoned", async () => {
  await expect(Array.fromAsync(client.all("/v1/instances"))).rejects.toThrow("an endless list");
});

test("text is read to its last byte, but never past its maximum length", async () => {
  const text = "né日本👩‍💻";
  const bytes = new TextEncoder().encode(text).byteLength;
  expect(await readBoundedText(new Response(text), bytes)).toBe(text);
  await expect(readBoundedText(new Response(text), bytes - 1)).rejects.toThrow(`more than ${bytes - 1} bytes`);
  expect(await readBoundedText(new Response(null), 0)).toBe("");
});

const WHEN = { requestId: "req_1", retryAfterSeconds: 56_413 };
test.each([
  [
    "budget_exceeded",
    "too many tokens: ask for more, or try again after 2026-11-29T00:00:00.000Z",
    { ...WHEN, status: 429 },
    "too many tokens: ask for more, or try again after 2026-11-29T00:00:00.000Z (request req_1)",
  ],
  [
    "rate_limited",
    "too many of them; try again in 7 seconds",
    { ...WHEN, status: 429 },
    "too many of them; try again in 7 seconds (request req_1)",
  ],
  [
    "rate_limited",
    "too many of them; try again later",
    { ...WHEN, status: 429 },
    "too many of them (request req_1); try again in 16 hours",
  ],
  [
    "rate_limited",
    "too many of them",
    { requestId: "req_1", retryAfterSeconds: 130, status: 429 },
    "too many of them (request req_1); try again in 3 minutes",
  ],
  [
    "rate_limited",
    "too many of them",
    { requestId: "req_1", retryAfterSeconds: 90, status: 429 },
    "too many of them (request req_1); try again in 90 s",
  ],
  [
    "internal_error",
    "its log has the details",
    { requestId: "req_1", status: 500 },
    "its log has the details (request req_1)",
  ],
  [
    "instance_not_ready",
    "the workspaces are being read; try again",
    { ...WHEN, status: 409 },
    "the workspaces are being read; try again (request req_1)",
  ],
  [
    "instance_not_ready",
    "the instance is stopped",
    { ...WHEN, status: 409 },
    "the instance is stopped (request req_1); roost instance start INSTANCE",
  ],
] as const)("%s: what to do about %j is said once", (code, message, more, line) => {
  expect(explain(new RoostError(code, message, more)).line).toBe(`roost: ${line}`);
});

test("a connection that was lost leaves a next step that works once the server is back", () => {
  const lost = new RoostError("disconnected", "the connection broke");
  expect(explain(lost, { instance: "my home", agent: "ada" }).line).toBe(
    "roost: the connection broke; to see what happened once it runs again: roost events 'my home' ada --after 0",
  );
});

test("a lost connection is told once, and one that the first try brings back is not", () => {
  let told = 0;
  const connected = whenLost(() => told++);
  const tell = (...states: boolean[]) => {
    for (const is of states) connected(is);
    return told;
  };
  expect(tell(true, false, true, false, true)).toBe(0);
  expect(tell(false, false, false, false)).toBe(1);
  expect(tell(true, false, false)).toBe(2);
});
