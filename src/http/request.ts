import { randomUUID } from "node:crypto";

const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** The client's `X-Request-Id` where it is of the accepted form, else a new one. */
export function requestIdOf(request: Request): string {
  const given = request.headers.get("x-request-id");
  return given !== null && REQUEST_ID.test(given) ? given : randomUUID();
}

/** The path with its query, as it came. Not by `URL`, which throws where the `Host` is no host name. */
export function pathAndQueryOf({ url }: Request): string {
  const at = url.indexOf("/", url.indexOf("://") + 3);
  return at < 0 ? "/" : url.slice(at);
}

/** The query as an object; of a name given twice the last counts. */
export function queryOf(request: Request): Record<string, string> {
  const at = request.url.indexOf("?");
  return at < 0 ? {} : Object.fromEntries(new URLSearchParams(request.url.slice(at + 1)));
}

/**
 * The client's address. Behind a proxy that the operator trusts it is the last one in `X-Forwarded-For`: the one that
 * the proxy itself saw, which a client cannot make up.
 */
export function clientAddress(request: Request, socketAddress: string, trustProxy: boolean): string {
  if (!trustProxy) return socketAddress;
  return request.headers.get("x-forwarded-for")?.split(",").at(-1)?.trim() || socketAddress;
}

/**
 * Whether a server that listens on loopback only should answer: the `Host` must name it, or a page of another origin
 * could reach it by rebinding its own name to 127.0.0.1.
 */
export function isOwnHost(hostHeader: string | null, publicHost: string | null): boolean {
  if (hostHeader === null) return false;
  const name = hostHeader.replace(/:\d+$/, "").toLowerCase();
  return name === "localhost" || name === "[::1]" || name === publicHost || /^127\.\d+\.\d+\.\d+$/.test(name);
}
