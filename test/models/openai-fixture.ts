/** Fixtures for tests of the OpenAI-compatible engine: servers that stop with their test, and a request. */
import { expect } from "bun:test";
import type { ModelError, ModelEvent, ModelRequest } from "../../src/models/engine.ts";
import { createOpenAiEngine, type OpenAiOptions } from "../../src/models/openai.ts";
import { type MockAnswer, type MockModelServer, startMockModelServer } from "../support/mock-model-server.ts";
import { type RawServer, startRawServer } from "../support/raw-http-server.ts";

export const KEY = "sk-top-secret-key";
const closing: (() => unknown)[] = [];
/** For `afterEach`: stops what the test started. */
export async function stopServers(): Promise<void> {
  for (const close of closing.splice(0)) await close();
}

export const QUESTION: ModelRequest = {
  model: "openai:qwen3:4b",
  messages: [{ role: "user", content: "Hi" }],
  tools: [],
  accountId: "acct_1",
  instanceId: "inst_1",
};

export async function raw(respond: Parameters<typeof startRawServer>[0]): Promise<RawServer> {
  const server = await startRawServer(respond);
  closing.push(server.stop);
  return server;
}

export function mock(...answers: MockAnswer[]): MockModelServer {
  const server = startMockModelServer();
  server.script(...answers);
  closing.push(server.stop);
  return server;
}

/** An engine that does not really wait between attempts, and the waits that it would have made. */
export function engine(baseUrl: string, options: Partial<OpenAiOptions> = {}) {
  const waits: number[] = [];
  const wait = async (ms: number) => void waits.push(ms);
  return { waits, ...createOpenAiEngine({ baseUrl, apiKey: KEY, random: () => 0, wait, ...options }) };
}

export async function collect(batches: AsyncIterable<ModelEvent[]>): Promise<ModelEvent[]> {
  return (await Array.fromAsync(batches)).flat();
}

export const ask = (baseUrl: string, options: Partial<OpenAiOptions> = {}, request = QUESTION) =>
  collect(engine(baseUrl, options).stream(request, new AbortController().signal));

export async function failure(promise: Promise<unknown>) {
  const error = await promise.then(
    () => undefined,
    (caught: unknown) => caught,
  );
  expect(error).toMatchObject({ name: "ModelError" });
  const { message, detail } = error as ModelError;
  for (const words of [message, detail ?? ""]) expect(words).not.toContain(KEY);
  // A tenant sees neither the server's address, nor its error text, nor the operator's settings.
  expect(message).not.toMatch(/127\.0\.0\.1|localhost|https?:|ROOST_|mock failure/);
  return { ...(error as ModelError), message, detail: detail ?? message };
}

export const textOf = (events: ModelEvent[]): string =>
  events.map((event) => (event.type === "text" ? event.text : "")).join("");
export const callsOf = (events: ModelEvent[]) =>
  events.flatMap((event) => (event.type === "tool_call" ? [event.call] : []));
export const finishOf = (events: ModelEvent[]) =>
  events.flatMap((event) => (event.type === "finish" ? [event.reason] : []));
export const delta = (fields: object, finish: string | null = null) => ({
  choices: [{ index: 0, delta: fields, finish_reason: finish }],
});
export const sse = (...chunks: object[]): string =>
  chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("");
export const bytes = (...chunks: (string | Uint8Array)[]): MockAnswer => ({ kind: "raw", chunks });
