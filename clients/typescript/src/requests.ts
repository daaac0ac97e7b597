import { errorOf, RoostError } from "./error.ts";
import type { CallOptions, Method } from "./operations.ts";

/** Where the server is, and how to call it. */
export interface RoostOptions {
  /** The server's address; in a browser, "" is the page's own. By default that of a server on this machine. */
  url?: string;
  /** An API key or a token, or what returns one; null for requests that need none. */
  credential?: string | null | (() => string | null);
  /** For each try of a call; for a stream, until it begins. 30 seconds by default. */
  deadlineMs?: number;
  /** How often a call is repeated that can be repeated without doing anything twice. 2 by default. */
  retries?: number;
  /** How long a broken stream is tried to be continued. A minute by default. */
  patienceMs?: number;
  /** The longest answer that is read. 16 MiB by default, twice the longest of Roost's. */
  maxAnswerBytes?: number;
  /** In place of the global `fetch`. */
  fetch?: (url: string, init: RequestInit) => Promise<Response>;
}

/** A call, before its path is filled in. */
export interface Request extends CallOptions {
  method: Method;
  path: string;
  params?: Record<string, string> | undefined;
  query?: Record<string, unknown> | undefined;
  body?: unknown;
}

export interface Requests {
  /** What to call the server in messages. */
  readonly server: string;
  readonly patienceMs: number;
  /** The answer, read and parsed. */
  call(request: Request): Promise<unknown>;
  /** The answer as soon as its head is there; the deadline holds no longer. Throws `RoostError` if it is an error. */
  open(request: Request): Promise<Response>;
}

const DEFAULT_URL = "http://127.0.0.1:7373";
const MIB = 1024 * 1024;
const FIRST_WAIT_MS = 250;
/** A server that wants a longer wait is left to the caller. */
const LONGEST_WAIT_MS = 10_000;

/** The POSTs that take no `Idempotency-Key`: each is meant as a new one. */
export const UNKEYED: ReadonlySet<string> = new Set([
  "/v1/auth/send-code",
  "/v1/auth/verify-code",
  "/v1/auth/redeem-link",
  "/v1/instances/{instanceId}/mcp-servers/{serverId}/authorize",
  "/v1/mcp",
]);

export function createRequests(options: RoostOptions): Requests {
  const { credential = null, deadlineMs = 30_000, retries = 2, patienceMs = 60_000 } = options;
  const { maxAnswerBytes = 16 * MIB, fetch = (url, init) => globalThis.fetch(url, init) } = options;
  const base = (options.url ?? DEFAULT_URL).replace(/\/+$/, "");
  const server = base === "" ? "the server" : base;

  async function send(request: Request, key: string | null, signal: AbortSignal): Promise<Response> {
    const { method, body } = request;
    const who = typeof credential === "function" ? credential() : credential;
    const headers: Record<string, string> = { ...request.headers };
    if (who !== null) headers.Authorization = `Bearer ${who}`;
    if (key !== null) headers["Idempotency-Key"] = key;
    const [content, type] = encoded(body);
    if (type !== null) headers["Content-Type"] = type;
    const answer = await fetch(base + filled(request), {
      method: method.toUpperCase(),
      headers,
      body: content,
      credentials: "omit",
      redirect: "manual",
      signal,
    });
    if (answer.ok) return answer;
    if (answer.type === "opaqueredirect" || (answer.status >= 300 && answer.status < 400 && answer.status !== 304)) {
      const where = answer.headers.get("location") ?? "elsewhere";
      throw new RoostError("redirected", `${server} redirects to ${where}`, { status: answer.status, server });
    }
    throw errorOf(answer, await readText(answer), server);
  }

  /** Sends a request, again where nothing is done twice. `read` takes what it needs of the answer. */
  async function perform<T>(request: Request, read: (answer: Response) => Promise<T>): Promise<T> {
    const { method, path, signal: given, deadlineMs: withinMs = deadlineMs } = request;
    const key = request.idempotencyKey ?? (method === "post" && !UNKEYED.has(path) ? newKey() : null);
    for (let tries = 0; ; tries++) {
      const late = new AbortController();
      const timer = setTimeout(() => late.abort(), withinMs);
      try {
        const signal = given ? AbortSignal.any([late.signal, given]) : late.signal;
        return await read(await send(request, key, signal));
      } catch (thrown) {
        if (given?.aborted) throw given.reason;
        const error = late.signal.aborted
          ? new RoostError("timeout", `${server} did not answer within ${withinMs / 1000} s`, { server })
          : explained(thrown);
        const mayRetry = tries < (request.retries ?? retries);
        const wait = mayRetry ? waitAfter(error, method === "get" || key !== null, tries) : null;
        if (wait === null) throw error;
        await pause(wait, given);
      } finally {
        clearTimeout(timer);
      }
    }
  }

  function explained(thrown: unknown): RoostError {
    if (thrown instanceof RoostError) return thrown;
    if (thrown instanceof SyntaxError) {
      return new RoostError("unexpected_answer", `${server} answered without JSON`, { server });
    }
    return new RoostError("unreachable", `cannot reach ${server}`, { server, cause: thrown });
  }

  async function readText(answer: Response): Promise<string> {
    // A browser's tools show only what was read in one piece. No answer is longer than it says, unless it is compressed.
    const length = answer.headers.get("content-length");
    const isPlain = length !== null && !answer.headers.has("content-encoding");
    if (isPlain && Number(length) <= maxAnswerBytes) return answer.text();
    const decoder = new TextDecoder();
    let bytes = 0;
    let text = "";
    const reader = answer.body?.getReader();
    for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
      bytes += part.value.byteLength;
      if (bytes > maxAnswerBytes) {
        reader?.cancel().catch(() => undefined);
        throw new RoostError("unexpected_answer", `${server} answered too much`);
      }
      text += decoder.decode(part.value, { stream: true });
    }
    return text + decoder.decode();
  }

  return {
    server,
    patienceMs,
    call: (request) =>
      perform(request, async (answer) => {
        const text = await readText(answer);
        // Of all answers, only a file is not JSON.
        const isFile = request.path.endsWith("/{file}") && answer.headers.get("content-type")?.startsWith("text/plain");
        return isFile ? text : JSON.parse(text);
      }),
    open: (request) => perform(request, async (answer) => answer),
  };
}

/** How long to wait before a call is repeated; null if it must not be, or not so soon. */
function waitAfter({ code, status, retryAfterSeconds }: RoostError, repeatable: boolean, tries: number): number | null {
  // Nobody's asking again starts an instance.
  if (code === "instance_not_ready") return null;
  const told = retryAfterSeconds === null ? null : retryAfterSeconds * 1000;
  // A refused request was not carried out.
  const refused = status === 429 && told !== null;
  // A conflict says when to come back if the first request with this key is still being answered.
  const unclear = code === "unreachable" || code === "timeout" || (told !== null && (status === 503 || status === 409));
  if (!refused && !(repeatable && unclear)) return null;
  const wait = told ?? FIRST_WAIT_MS * 2 ** tries;
  return wait <= LONGEST_WAIT_MS ? wait : null;
}

/** An `Idempotency-Key`. A browser has no `crypto.randomUUID` on a page that it got without TLS. */
export const newKey = (): string =>
  [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

/** Rejects if the signal is, or gets, aborted. */
export function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });
}

/** A body as it is sent, and its type. */
function encoded(body: unknown): [content: BodyInit | null, type: string | null] {
  if (body === undefined) return [null, null];
  if (typeof body === "string") return [body, "text/plain"];
  if (body instanceof Blob || body instanceof Uint8Array) return [body as BodyInit, "application/gzip"];
  return [JSON.stringify(body), "application/json"];
}

function filled({ path, params = {}, query = {} }: Request): string {
  // The `/` between the folders of a file's name stay.
  const part = (name: string) => (params[name] ?? "").split("/").map((folder) => encodedPart(name, folder));
  const at = path.replace(/\{(\w+)\}/g, (_, name) => part(name).join(name === "file" ? "/" : "%2F"));
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) asked.set(name, String(value));
  const text = asked.toString();
  return text === "" ? at : `${at}?${text}`;
}

/** `fetch` takes dots for a step to another path, also where they are encoded: `../messages` would be no file. */
function encodedPart(name: string, part: string): string {
  if (part === "." || part === "..") {
    throw new RoostError("invalid_request", `path.${name}: expected a name without "." and ".." as a part`);
  }
  return encodeURIComponent(part);
}
