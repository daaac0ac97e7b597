import { ModelError } from "../engine.ts";
import { canConnect } from "./connect-probe.ts";
import { connectFailure, type ModelServer, statusFailure } from "./failure.ts";
import type { RequestWatch } from "./watch.ts";

/** `runId` is of the run that asks, for the log. */
export type Fetch = (url: string, init: BunFetchRequestInit, runId?: string) => Promise<Response>;
export type Reader = ReadableStreamDefaultReader<Uint8Array>;
export type ReadResult = Awaited<ReturnType<Reader["read"]>>;

/**
 * The outcome of one request, up to the first byte of the answer's body. `refusal` is the body of a 400 or 422; `failure`
 * searches the prompt for what the server repeats of it, so it is for what is reported.
 */
export type Opening =
  | { kind: "open"; reader: Reader; first: ReadResult }
  | { kind: "failed"; failure: () => ModelError; refusal: string; retryAfterMs: number | null };

export interface Endpoint {
  url: URL;
  headers: Record<string, string>;
  connectTimeoutMs: number;
  /** Replaces `fetch` and the connect timeout. */
  fetch: Fetch | undefined;
  runId?: string | undefined;
}

const MAX_REFUSAL_BYTES = 64 * 1024;

/** With a proxy, a direct connection would prove nothing. */
const PROXIED = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"].some((name) => process.env[name]);

/** Sends the request once. Throws if `watch` aborts it, because of silence or by the caller. */
export async function openAnswer(
  endpoint: Endpoint,
  server: ModelServer,
  body: string,
  watch: RequestWatch,
): Promise<Opening> {
  let answered = false;
  let unconnected = false;
  const half = endpoint.connectTimeoutMs / 2;
  const probe = async () => {
    if ((await canConnect(endpoint.url, half)) || answered) return;
    unconnected = true;
    watch.abort();
  };
  const probeTimer = endpoint.fetch === undefined && !PROXIED ? setTimeout(probe, half) : undefined;
  watch.beginWait();
  try {
    const init: BunFetchRequestInit = {
      method: "POST",
      headers: endpoint.headers,
      body,
      signal: watch.signal,
      redirect: "manual",
      timeout: false,
    };
    const { url, runId } = endpoint;
    const response = await (endpoint.fetch?.(url.href, init, runId) ?? fetch(url.href, init));
    answered = true;
    if (!response.ok) return await readRefusal(server, response, watch);
    const reader = (response.body ?? new Blob([]).stream()).getReader();
    return { kind: "open", reader, first: await reader.read() };
  } catch (cause) {
    if (watch.signal.aborted && !unconnected) throw cause;
    const failure =
      cause instanceof ModelError ? cause : connectFailure(server, unconnected ? "ETIMEDOUT" : errorCode(cause));
    return { kind: "failed", failure: () => failure, refusal: "", retryAfterMs: null };
  } finally {
    answered = true;
    watch.endWait();
    clearTimeout(probeTimer);
  }
}

async function readRefusal(server: ModelServer, response: Response, watch: RequestWatch): Promise<Opening> {
  const decoder = new TextDecoder();
  let refusal = "";
  try {
    for await (const chunk of response.body ?? []) {
      refusal += decoder.decode(chunk, { stream: true });
      if (refusal.length > MAX_REFUSAL_BYTES) break;
    }
  } catch (cause) {
    if (watch.signal.aborted) throw cause;
    // An incomplete refusal is still a refusal: the status has arrived.
  }
  return {
    kind: "failed",
    failure: () => statusFailure(server, response.status, refusal),
    refusal: response.status === 400 || response.status === 422 ? refusal : "",
    retryAfterMs: retryAfterMs(response.headers.get("Retry-After")),
  };
}

function retryAfterMs(header: string | null): number | null {
  if (header === null) return null;
  const ms = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now();
  return Number.isFinite(ms) ? Math.max(0, ms) : null;
}

const errorCode = (error: unknown): string | undefined => {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" && /^[A-Z0-9_]{1,64}$/.test(code) ? code : undefined;
};
