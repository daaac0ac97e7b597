import { afterEach, beforeEach, expect, test } from "bun:test";
import { type McpClient, openClient } from "../../src/mcp/client.ts";
import { type McpService, startMcpService } from "./mcp-service.ts";

let service: McpService;
let client: McpClient;
beforeEach(() => {
  service = startMcpService("2025", { name: "echo" });
});
afterEach(async () => {
  await client.close();
  await service.stop();
});

const never = new AbortController().signal;
const EVENTS = { headers: { "Content-Type": "text/event-stream" } };
const ECHO = { name: "echo", description: "", inputSchema: { type: "object" }, hash: "" };
const open = () => openClient({ url: new URL(service.url), fetch, onChanged() {}, reopenMs: 0 }, never);
const answerOf = (id: number, text: string) =>
  `data: ${JSON.stringify({ jsonrpc: "2.0", id, result: { content: [{ type: "text", text }] } })}\n\n`;

test("a call's answer is fetched where its stream has ended, however often that of notices has", async () => {
  let notices = 0;
  let fetched = 0;
  let called = -1;
  service.intercept = async (method, request) => {
    if (method === "tools/call") {
      called = ((await request.json()) as { id: number }).id;
      return new Response("id: one\ndata:\n\n", EVENTS);
    }
    if (method !== "GET") return undefined;
    if (request.headers.get("last-event-id") === null) {
      notices++;
      return new Response("retry: 0\n\n", EVENTS);
    }
    // After more tries than notices have.
    return new Response(++fetched < 40 ? "id: one\ndata:\n\n" : answerOf(called, "late"), EVENTS);
  };
  client = await open();
  while (notices < 31) await new Promise((resolve) => setImmediate(resolve));
  expect(await client.callTool(ECHO, {}, never)).toEqual({ text: "late", isError: false });
  expect(notices).toBeLessThanOrEqual(62);
});
