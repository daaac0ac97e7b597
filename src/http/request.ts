import { randomUUID } from "node:crypto";
import { isIP } from "node:net";
import { isLoopbackAddress, isLoopbackName } from "../lib/loopback.ts";

const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** The client's `X-Request-Id` if it is valid, or a new one. */
export function requestIdOf(request: Request): string {
  const given = request.headers.get("x-request-id");
  return given !== null && REQUEST_ID.test(given) ? given : randomUUID();
}

/**
 * The request's Content-Length; null if it has none. The runtime accepts a repeated header with equal values and passes
 * it on as `5, 5` (RFC 9110, 8.6). An invalid number exceeds every limit.
 */
export function declaredLength({ headers }: Request): number | null {
  const header = headers.get("content-length");
  if (header === null) return null;
  const length = Number.parseInt(header, 10);
  return Number.isNaN(length) ? Number.POSITIVE_INFINITY : length;
}

/** The raw path with its query. If `Host` is not a host name, that is all that the runtime gives: `URL` would throw. */
export function pathAndQueryOf({ url }: Request): string {
  if (url.startsWith("/")) return url;
  const at = url.indexOf("/", url.indexOf("://") + 3);
  return at < 0 ? "/" : url.slice(at);
}

const parametersOf = ({ url }: Request): URLSearchParams => {
  const at = url.indexOf("?");
  return new URLSearchParams(at < 0 ? "" : url.slice(at + 1));
};

/** The query as an object, before it is checked; the last of repeated names counts. */
export const queryOf = (request: Request): Record<string, string> => Object.fromEntries(parametersOf(request));

/** The query to be checked. A name that is repeated has a list, which no field takes: which one counts would be a guess. */
export function queryToCheck(request: Request): Record<string, string | string[]> {
  // Most requests have none.
  if (!request.url.includes("?")) return {};
  const given = Map.groupBy(parametersOf(request), ([name]) => name);
  const values = given.entries().map(([name, all]): [string, string | string[]] => {
    const [value = "", ...more] = all.map(([, one]) => one);
    return [name, more.length === 0 ? value : [value, ...more]];
  });
  return Object.fromEntries(values);
}

/**
 * The client's address. Behind a trusted proxy it is the last one in `X-Forwarded-For`, which the proxy itself added
 * and a client cannot forge; anything but an IP address is ignored.
 */
export function clientAddress(request: Request, socketAddress: string, trustProxy: boolean): string {
  if (!trustProxy) return socketAddress;
  return addressIn(request.headers.get("x-forwarded-for")?.split(",").at(-1)?.trim() ?? "") ?? socketAddress;
}

/** Some proxies add the port: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
function addressIn(entry: string): string | null {
  const bare = /^\[([^\]]+)\](?::\d+)?$/.exec(entry)?.[1] ?? /^([\d.]+):\d+$/.exec(entry)?.[1] ?? entry;
  return isIP(bare) === 0 ? null : bare;
}

/** Whether a proxy names the client of this request. Cheap, since it runs for every request. */
export const namesClient = ({ headers }: Request): boolean =>
  headers.has("x-forwarded-for") || headers.has("forwarded") || headers.has("x-real-ip");

/** Whether any header shows that a proxy forwarded this request: the socket's address is then not the client's. */
const isForwarded = (request: Request): boolean =>
  namesClient(request) ||
  request.headers.has("via") ||
  request.headers.keys().some((name) => name.startsWith("x-forwarded-"));

/** Whether a `Host` header is a loopback name. */
const isLoopbackHost = (hostHeader: string | null): boolean => isLoopbackName(hostNameOf(hostHeader));

/**
 * Whether a request comes from this machine itself. A proxy on it connects from loopback too, so forwarded requests and
 * those to other host names do not count (docs/contract/security.md, HTTP).
 */
export const isFromThisMachine = (request: Request, socketAddress: string): boolean =>
  isLoopbackAddress(socketAddress) && isLoopbackHost(request.headers.get("host")) && !isForwarded(request);

/**
 * Whether a server that listens on loopback only should answer: the `Host` must be its own, or a page of another origin
 * could reach it by DNS rebinding. `names` are the other host names that it has, in lower case.
 */
export const isOwnHost = (hostHeader: string | null, names: readonly string[]): boolean =>
  isLoopbackHost(hostHeader) || names.includes(hostNameOf(hostHeader));

const hostNameOf = (hostHeader: string | null): string => (hostHeader ?? "").replace(/:\d+$/, "").toLowerCase();
