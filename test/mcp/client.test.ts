import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { type McpClient, openClient } from "../../src/mcp/client.ts";
import { readListing } from "../../src/mcp/listing.ts";
import type { ServerError } from "../../src/mcp/server-error.ts";
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

describe.each(["2025", "2026"] as const)("a server of %s", (era) => {
  /** Opens a client, whose next requests of this method get this result. */
  async function openTo(method: string, result: object): Promise<void> {
    await service.stop();
    service = startMcpService(era, { name: "echo" });
    client = await open();
    service.intercept = async (asked, request) =>
      asked === method
        ? Response.json({ jsonrpc: "2.0", id: ((await request.json()) as { id: number }).id, result })
        : undefined;
  }

  test("has its other tools where some are not as they should be, and no further page where the cursor is null", async () => {
    const schema = { type: "object" };
    const tools = [
      { name: "good", description: null, annotations: null, inputSchema: schema },
      { name: "bare" },
      { name: "odd", description: 7, inputSchema: schema },
      { name: null, inputSchema: schema },
      null,
      { name: "list", inputSchema: { type: "array" } },
    ];
    await openTo("tools/list", { resultType: "complete", tools, nextCursor: null });
    const listing = await readListing(await client.listTools(never), { server: "docs", redact: async (text) => text });
    expect(listing.tools.map(({ name, description }) => [name, description])).toEqual([["good", ""]]);
    expect(listing.notes?.split("; ")).toEqual([
      '"bare" was left out: it has no input schema of an object',
      '"odd" was left out: its description is no text',
      "a tool without a name was left out: its name does not have 1 to 128 characters",
      "a tool without a name was left out: its name does not have 1 to 128 characters",
      '"list" was left out: it has no input schema of an object',
    ]);
  });

  test("is heard where parts of an answer are not as they should be, or unknown", async () => {
    const content = [
      { type: "text", text: "Here it is.", annotations: null },
      { type: "video", data: "AAAA" },
      { type: "image", data: "AAAA" },
      { type: "resource", resource: { uri: "file:///a" } },
      null,
    ];
    await openTo("tools/call", { content, structuredContent: { answer: 42 } });
    expect(await client.callTool(ECHO, {}, never)).toEqual({
      text: [
        "Here it is.",
        "[video: not shown]",
        "[image of unknown, 3 bytes: not shown]",
        "[resource: not shown]",
        '{"answer":42}',
      ].join("\n\n"),
      isError: false,
    });
  });

  test("that repeats its data as text is not told twice", async () => {
    const content = [{ type: "text", text: '{ "b": 1, "a": [2] }' }];
    await openTo("tools/call", { resultType: "complete", content, structuredContent: { a: [2], b: 1 } });
    expect((await client.callTool(ECHO, {}, never)).text).toBe('{ "b": 1, "a": [2] }');
  });

  test("that asks for more has not done it", async () => {
    await openTo("tools/call", { resultType: "input_required", requestState: "x" });
    const failed = await client.callTool(ECHO, {}, never).catch((error: ServerError) => error);
    expect(failed).toMatchObject({ fault: "refused", message: "it asks for more, which Roost does not answer" });
  });
});
