import { randomUUID } from "node:crypto";
import { AppError } from "../lib/app-error.ts";
import { errorAnswer, toAppError } from "./answer.ts";
import { clientAddress, isOwnHost, requestIdOf } from "./request.ts";

export interface ListenOptions {
  hostname: string;
  port: number;
  /** Of links; its host name is answered to as well. */
  publicUrl: string | null;
  trustProxy: boolean;
}

type Answer = (request: Request) => Response | Promise<Response>;

/** The listening socket, and what only it knows of a request. */
export interface Listener {
  readonly url: string;
  /** From now on every request is answered by this; before it, each is asked to come again. */
  answerWith(fetch: Answer): void;
  addressOf(request: Request): string;
  /** Lets a connection be silent for as long as it likes. */
  keepOpen(request: Request): void;
  /** Takes no more requests; answers that are on their way have a moment to finish, then what is left is closed. */
  stop(): Promise<void>;
}

/** Bun's own refusal of a large body has no envelope and comes before authentication, so that it is never reached. */
const SOCKET_BODY_BYTES = Number.MAX_SAFE_INTEGER;
const IDLE_SECONDS = 30;
const GRACE_MS = 1_000;

/** Binds the address. Throws when it is taken. */
export function listen({ hostname, port, publicUrl, trustProxy }: ListenOptions): Listener {
  let answer: Answer = starting;
  const publicHost = publicUrl === null ? null : new URL(publicUrl).hostname;
  const loopback = hostname === "localhost" || hostname === "::1" || hostname.startsWith("127.");
  const server = Bun.serve({
    hostname,
    port,
    idleTimeout: IDLE_SECONDS,
    maxRequestBodySize: SOCKET_BODY_BYTES,
    fetch(request) {
      if (loopback && !trustProxy && !isOwnHost(request.headers.get("host"), publicHost)) return wrongHost(request);
      return answer(request);
    },
    error: (error) => errorAnswer(toAppError(error), randomUUID(), null),
  });
  const shownHost = server.hostname?.includes(":") ? `[${server.hostname}]` : server.hostname;
  return {
    url: `http://${shownHost}:${server.port}`,
    answerWith(fetch) {
      answer = fetch;
    },
    addressOf: (request) => clientAddress(request, server.requestIP(request)?.address ?? "unknown", trustProxy),
    keepOpen: (request) => server.timeout(request, 0),
    async stop() {
      const late = setTimeout(() => void server.stop(true), GRACE_MS);
      await server.stop(false);
      clearTimeout(late);
    },
  };
}

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
    "Host: this server answers on loopback only; set ROOST_PUBLIC_URL for another name",
  );
  return errorAnswer(error, requestIdOf(request), request.headers.get("accept"));
}
