import { AnswerTooLong, readBoundedText } from "../../lib/bounded-text.ts";
import { OUTGOING } from "../../limits/outgoing.ts";
import { Failure } from "../failure.ts";

/** Where `roost serve` listens by default. */
export const DEFAULT_URL = "http://127.0.0.1:7373";

/** The server's error response, with its message. */
export class ApiError extends Failure {
  constructor(
    readonly code: string,
    readonly status: number,
    message: string,
    next: string | null,
  ) {
    super(message, next);
  }
}

/** No answer, or a broken connection: worth a retry. */
export class Unreachable extends Failure {}

export interface CallOptions {
  body?: unknown;
  /** A body that is not JSON, in place of it. */
  file?: { bytes: Uint8Array<ArrayBuffer>; type: string };
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** One page of a list. */
export interface Page<T> {
  data: T[];
  nextCursor: string | null;
}

type Method = "GET" | "POST" | "PATCH" | "DELETE";

/** A client for a server's API, with one account's credential. Paths start with `/v1`, except `/healthz`. */
export interface Client {
  readonly url: string;
  /** Returns the response's body. Throws `ApiError`, `Unreachable`. */
  call<T>(method: Method, path: string, options?: CallOptions): Promise<T>;
  /** Returns a file, once it has started, in pieces. It may be as long as the server likes. */
  download(path: string, type: string): Promise<ReadableStream<Uint8Array>>;
  /** Returns every item of a list, from all of its pages. The path may have a query. */
  all<T>(path: string): Promise<T[]>;
  /** Returns the body of an event stream, once it has started. */
  stream(method: Method, path: string, options?: CallOptions): Promise<ReadableStream<Uint8Array>>;
}

const { deadlineMs: DEADLINE_MS, fileDeadlineMs: FILE_DEADLINE_MS, answerBytes } = OUTGOING.command;
const PAGE = 100;
/** A million items: no list of Roost's is longer. */
const MAX_PAGES = 10_000;

/** `credential` is an API key or a token; null for requests that need none. */
export function createClient(url: string, credential: string | null, deadlineMs: number = DEADLINE_MS): Client {
  async function send(method: Method, path: string, options: CallOptions, signal: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = { ...options.headers };
    if (credential !== null) headers.Authorization = `Bearer ${credential}`;
    if (options.body !== undefined) headers["Content-Type"] = "application/json";
    if (options.file !== undefined) headers["Content-Type"] = options.file.type;
    const body = options.file?.bytes ?? (options.body === undefined ? null : JSON.stringify(options.body));
    // A redirect is not followed: it could carry the credential and a secret to another host.
    const answer = await fetch(url + path, { method, headers, body, signal, redirect: "manual" });
    if (answer.status >= 300 && answer.status < 400) {
      throw new Failure(`${url} redirects to ${answer.headers.get("location")}`, "give that address with --url");
    }
    if (!answer.ok) throw refusalOf(answer, await readBoundedText(answer, answerBytes), url);
    return answer;
  }

  async function call<T>(method: Method, path: string, options: CallOptions = {}): Promise<T> {
    // The server unpacks a file before it answers.
    const late = AbortSignal.timeout(options.file === undefined ? deadlineMs : FILE_DEADLINE_MS);
    try {
      const answer = await send(method, path, options, signalOf(late, options.signal));
      return JSON.parse(await readBoundedText(answer, answerBytes)) as T;
    } catch (error) {
      throw explain(error, url, deadlineMs, options.signal);
    }
  }

  /** The deadline covers only the response's head; the body's reader watches for silence. */
  async function open(method: Method, path: string, type: string, options: CallOptions, deadlineMs: number) {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(new DOMException("late", "TimeoutError")), deadlineMs);
    try {
      const answer = await send(method, path, options, signalOf(late.signal, options.signal));
      if (!answer.headers.get("content-type")?.startsWith(type) || answer.body === null) {
        throw new Failure(`${url} answered without ${KINDS[type] ?? type}`, "is it a Roost server?");
      }
      return answer.body;
    } catch (error) {
      throw explain(error, url, deadlineMs, options.signal);
    } finally {
      clearTimeout(timer);
    }
  }

  return {
    url,
    call,
    async all<T>(path: string): Promise<T[]> {
      const items: T[] = [];
      let after: string | null = null;
      for (let pages = 0; pages < MAX_PAGES; pages++) {
        const cursor: string = after === null ? "" : `&after=${encodeURIComponent(after)}`;
        const page: Page<T> = await call("GET", `${path}${path.includes("?") ? "&" : "?"}limit=${PAGE}${cursor}`);
        items.push(...page.data);
        // A cursor that does not advance would loop forever.
        if (page.nextCursor === null || page.nextCursor === after) return items;
        after = page.nextCursor;
      }
      throw new Failure(`${url} answered with an endless list`, "is it a Roost server?");
    },
    stream: (method, path, options = {}) => open(method, path, "text/event-stream", options, deadlineMs),
    // The server packs a file before it sends any of it.
    download: (path, type) => open("GET", path, type, {}, FILE_DEADLINE_MS),
  };
}

const KINDS: Readonly<Record<string, string>> = {
  "text/event-stream": "an event stream",
  "application/gzip": "a bundle",
};

const signalOf = (late: AbortSignal, given: AbortSignal | undefined): AbortSignal =>
  given === undefined ? late : AbortSignal.any([late, given]);

/** The command that signs in to a server. */
export const loginAt = (url: string): string => `roost login${url === DEFAULT_URL ? "" : ` --url ${url}`}`;

/** What to do about an error, if the server's message does not say. */
const NEXT: Record<string, string> = {
  instance_not_ready: "roost instance start INSTANCE",
  internal_error: "the host's log has the details under this id",
};

function refusalOf(answer: Response, text: string, url: string): Failure {
  const error = errorOf(text);
  if (error === null) {
    const message = `${url} answered ${answer.status}, not in Roost's format`;
    // A reverse proxy gives this answer while the server is down.
    if (answer.status >= 502) return new Unreachable(message, "is the server behind it running?");
    return new Failure(message, "is it a Roost server? Give its address with --url");
  }
  const wait = answer.headers.get("retry-after");
  const again = answer.status === 429 && wait !== null ? `try again in ${wait} s` : null;
  const id = error.requestId === undefined ? "" : ` (request ${error.requestId})`;
  const next = error.code === "unauthorized" ? `sign in: ${loginAt(url)}` : NEXT[error.code];
  return new ApiError(error.code, answer.status, `${error.message}${id}`, again ?? next ?? null);
}

function errorOf(text: string): { code: string; message: string; requestId?: string } | null {
  try {
    const { error } = JSON.parse(text) as { error?: { code?: unknown; message?: unknown; requestId?: string } };
    if (typeof error?.code !== "string" || typeof error.message !== "string") return null;
    return error as { code: string; message: string; requestId?: string };
  } catch {
    return null;
  }
}

function explain(error: unknown, url: string, deadlineMs: number, given: AbortSignal | undefined): unknown {
  if (error instanceof Failure || given?.aborted) return error;
  if (error instanceof AnswerTooLong) return new Failure(`${url} answered too much`, "is it a Roost server?");
  if (error instanceof SyntaxError) return new Failure(`${url} answered without JSON`, "is it a Roost server?");
  if (error instanceof DOMException && error.name === "TimeoutError") {
    return new Unreachable(`${url} did not answer within ${deadlineMs / 1000} s`, "is the server running there?");
  }
  const next = "is the server running there? Start one with `roost serve`, or name another with --url";
  return new Unreachable(`cannot reach ${url}`, next, { cause: error });
}
