import { randomUUID } from "node:crypto";
import { AppError } from "../lib/app-error.ts";
import type { Log } from "../lib/log.ts";
import { isLoopbackAddress } from "../lib/loopback.ts";
import { errorAnswer, toAppError } from "./answer.ts";
import { createPace } from "./pace.ts";
import { reachableUrl } from "./reachable-url.ts";
import { clientAddress, declaredLength, isOwnHost, namesClient, requestIdOf } from "./request.ts";
import { spareFiles } from "./spare-files.ts";

export interface ListenOptions {
  hostname: string;
  port: number;
  /** The base of links; requests to its host name are accepted too. */
  publicUrl: string | null;
  trustProxy: boolean;
  /** How many files and connections the host may have open; null if unknown. */
  openFiles: number | null;
  log: Pick<Log, "warn" | "error">;
}

type Answer = (request: Request) => Response | Promise<Response>;

/** The listening socket. */
export interface Listener {
  /** Its URL on this machine. */
  readonly url: string;
  /** Sets the handler of all requests; before that, each is asked to retry. */
  answerWith(fetch: Answer): void;
  /** The client's address, taken from a trusted proxy if there is one. */
  addressOf(request: Request): string;
  /** The peer of the connection: the client or a proxy. */
  socketAddressOf(request: Request): string;
  /** Disables a connection's idle timeout. */
  keepOpen(request: Request): void;
  /**
   * Gives answers in progress a moment to finish, then closes their connections. New connections are still answered: who
   * asks whether this server is ready, or for anything else, hears that it stops.
   */
  drain(): Promise<void>;
  /** The same, and frees the port. */
  stop(): Promise<void>;
}

/** Never reached: Bun's own refusal of a large body has no error envelope and comes before authentication. */
const SOCKET_BODY_BYTES = Number.MAX_SAFE_INTEGER;
const IDLE_SECONDS = 30;
const GRACE_MS = 1_000;
/** Requests of all connections that begin in one turn of the event loop. */
const AT_ONCE = 50;

/** Of a request that may wait for its turn: meanwhile the runtime takes in all of its body, whatever its size. */
const MAX_WAITING_BODY_BYTES = 1_024;

function mayWait(request: Request): boolean {
  const bytes = declaredLength(request) ?? (request.headers.has("transfer-encoding") ? Number.POSITIVE_INFINITY : 0);
  return bytes <= MAX_WAITING_BODY_BYTES;
}

/** Binds the address. Throws, saying how to fix it, if that fails. */
export function listen({ hostname, port, publicUrl, trustProxy, openFiles, log }: ListenOptions): Listener {
  let answer: Answer = starting;
  /** Logged only once. */
  let proxyIsKnown = trustProxy;
  const inPace = createPace(AT_ONCE);
  const server = serve({
    hostname,
    port,
    idleTimeout: IDLE_SECONDS,
    maxRequestBodySize: SOCKET_BODY_BYTES,
    // Bun's page about an error is for its own developers.
    development: false,
    // Without development, Bun would let a second server listen on the same port.
    reusePort: false,
    fetch(request) {
      spare();
      return mayWait(request) ? inPace(() => answerOf(request)) : answerOf(request);
    },
    error(err) {
      const requestId = randomUUID();
      log.error({ err, requestId }, "request failed");
      return errorAnswer(toAppError(err), requestId, null);
    },
  });
  const spare = spareFiles({ openFiles, closeIdle: () => void server.closeIdleConnections() });
  const listensOn = server.port ?? port;
  const url = reachableUrl(server.hostname ?? hostname, listensOn);
  // As it was bound: a name or another spelling of the address does not tell. Bun's types lack it.
  const { address: bound } = server as typeof server & { address: { address: string } };
  const isLoopback = isLoopbackAddress(bound.address);
  const names = [url, ...(publicUrl === null ? [] : [publicUrl])].map((one) => new URL(one).hostname);
  function answerOf(request: Request): Response | Promise<Response> {
    if (isLoopback && !isOwnHost(request.headers.get("host"), names)) return wrongHost(request);
    if (!proxyIsKnown && namesClient(request) && isLoopbackAddress(socketAddressOf(request))) {
      proxyIsKnown = true;
      log.warn(UNTRUSTED_PROXY);
    }
    return answer(request);
  }
  const socketAddressOf = (request: Request): string => server.requestIP(request)?.address ?? "unknown";
  async function end(): Promise<void> {
    const late = setTimeout(() => void server.stop(true), GRACE_MS);
    await server.stop(false);
    clearTimeout(late);
  }
  /** After `server`, which takes no new connections once it ends. */
  let successor: Bun.Server<undefined> | undefined;
  return {
    url,
    answerWith(fetch) {
      answer = fetch;
    },
    addressOf: (request) => clientAddress(request, socketAddressOf(request), trustProxy),
    socketAddressOf,
    keepOpen: (request) => server.timeout(request, 0),
    async drain() {
      const ended = end();
      try {
        successor = serve({ hostname, port: listensOn, development: false, reusePort: false, fetch: answerOf });
      } catch {
        // Another program has taken the port in this moment, or no file is left: then clients find no server.
      }
      await ended;
    },
    async stop() {
      await end();
      await successor?.stop(true);
    },
  };
}

function serve(options: { hostname: string; port: number } & Bun.Serve.Options<undefined>) {
  try {
    return Bun.serve(options);
  } catch (error) {
    throw unheard(options, error);
  }
}

function unheard({ hostname, port }: { hostname: string; port: number }, error: unknown): unknown {
  const failure = (text: string) => new Error(text, { cause: error });
  switch (error instanceof Error && "code" in error ? error.code : undefined) {
    case "EADDRINUSE":
      return failure(
        `port ${port} of ${hostname} is in use; choose another with --port or ROOST_PORT, 0 picks a free one`,
      );
    case "EACCES":
      return failure(
        `no permission to listen on port ${port} of ${hostname}; choose one from 1024 up with --port or ROOST_PORT`,
      );
    // Bun reports EINVAL for a name that cannot be resolved.
    case "EADDRNOTAVAIL":
    case "EINVAL":
    case "ENOTFOUND":
      return failure(
        `${hostname} is not an address or name of this machine; choose another with --host or ROOST_HOST: ` +
          "127.0.0.1 for this machine alone, 0.0.0.0 for every address it has",
      );
    default:
      return error;
  }
}

const UNTRUSTED_PROXY =
  "requests come through a proxy on this machine, so all its clients share one address and its limits: set " +
  "ROOST_TRUST_PROXY=true if the proxy itself writes X-Forwarded-For";

function starting(request: Request): Response {
  const error = new AppError("internal_error", "this server is starting; try again", {
    status: 503,
    retryAfterSeconds: 1,
  });
  return errorAnswer(error, requestIdOf(request), request.headers.get("accept"));
}

function wrongHost(request: Request): Response {
  const error = new AppError(
    "forbidden",
    "Host: this server listens on loopback only and answers to its own names; behind a proxy, set ROOST_PUBLIC_URL to " +
      "the URL that clients use",
  );
  return errorAnswer(error, requestIdOf(request), request.headers.get("accept"));
}
