import { randomUUID } from "node:crypto";
import { AppError } from "../lib/app-error.ts";
import type { Log } from "../lib/log.ts";
import { errorAnswer, toAppError } from "./answer.ts";
import { reachableUrl } from "./reachable-url.ts";
import { clientAddress, isLoopbackAddress, isOwnHost, namesClient, requestIdOf } from "./request.ts";

export interface ListenOptions {
  hostname: string;
  port: number;
  /** Of links; its host name is answered to as well. */
  publicUrl: string | null;
  trustProxy: boolean;
  log: Pick<Log, "warn">;
}

type Answer = (request: Request) => Response | Promise<Response>;

/** The listening socket, and what only it knows of a request. */
export interface Listener {
  /** Where this machine reaches it. */
  readonly url: string;
  /** From now on every request is answered by this; before it, each is asked to come again. */
  answerWith(fetch: Answer): void;
  /** The client's, which a trusted proxy tells. */
  addressOf(request: Request): string;
  /** Who the connection is from: the client or a proxy. */
  socketAddressOf(request: Request): string;
  /** Lets a connection be silent for as long as it likes. */
  keepOpen(request: Request): void;
  /** Takes no more requests; answers that are on their way have a moment to finish, then what is left is closed. */
  stop(): Promise<void>;
}

/** Bun's own refusal of a large body has no envelope and comes before authentication, so that it is never reached. */
const SOCKET_BODY_BYTES = Number.MAX_SAFE_INTEGER;
const IDLE_SECONDS = 30;
const GRACE_MS = 1_000;

/** Binds the address. Throws, with the mend, when it is not to be had. */
export function listen({ hostname, port, publicUrl, trustProxy, log }: ListenOptions): Listener {
  let answer: Answer = starting;
  /** Told once: a proxy that nobody knows of would repeat it with every request. */
  let proxyIsKnown = trustProxy;
  const publicHost = publicUrl === null ? null : new URL(publicUrl).hostname;
  const loopback = hostname === "localhost" || hostname === "::1" || hostname.startsWith("127.");
  const server = serve({
    hostname,
    port,
    idleTimeout: IDLE_SECONDS,
    maxRequestBodySize: SOCKET_BODY_BYTES,
    fetch(request) {
      if (loopback && !isOwnHost(request.headers.get("host"), publicHost)) return wrongHost(request);
      if (!proxyIsKnown && namesClient(request) && isLoopbackAddress(socketAddressOf(request))) {
        proxyIsKnown = true;
        log.warn(UNTRUSTED_PROXY);
      }
      return answer(request);
    },
    error: (error) => errorAnswer(toAppError(error), randomUUID(), null),
  });
  const socketAddressOf = (request: Request): string => server.requestIP(request)?.address ?? "unknown";
  return {
    url: reachableUrl(server.hostname ?? hostname, server.port ?? port),
    answerWith(fetch) {
      answer = fetch;
    },
    addressOf: (request) => clientAddress(request, socketAddressOf(request), trustProxy),
    socketAddressOf,
    keepOpen: (request) => server.timeout(request, 0),
    async stop() {
      const late = setTimeout(() => void server.stop(true), GRACE_MS);
      await server.stop(false);
      clearTimeout(late);
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
  const told = (words: string) => new Error(words, { cause: error });
  switch (error instanceof Error && "code" in error ? error.code : undefined) {
    case "EADDRINUSE":
      return told(`port ${port} of ${hostname} is taken; give another with --port, 0 picks a free one`);
    case "EACCES":
      return told(`this user may not listen on port ${port} of ${hostname}; give one from 1024 on with --port`);
    // Bun has EINVAL for a name that leads nowhere.
    case "EADDRNOTAVAIL":
    case "EINVAL":
    case "ENOTFOUND":
      return told(
        `${hostname} is no address of this machine, and no name of one; give another with --host: ` +
          "127.0.0.1 for this machine alone, 0.0.0.0 for every address it has",
      );
    default:
      return error;
  }
}

const UNTRUSTED_PROXY =
  "requests come through a proxy on this machine, and all its clients count as one address, limits included: set " +
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
