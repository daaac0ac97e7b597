import { randomUUID } from "node:crypto";
import { isIP } from "node:net";

const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** The client's `X-Request-Id` where it is of the accepted form, else a new one. */
export function requestIdOf(request: Request): string {
  const given = request.headers.get("x-request-id");
  return given !== null && REQUEST_ID.test(given) ? given : randomUUID();
}

/**
 * The bytes of its body as the request tells them; null where it does not. The runtime takes a length that is told twice
 * where both are the same, and hands it on as `5, 5` (RFC 9110, 8.6). What is no number is no length that anything allows.
 */
export function declaredLength({ headers }: Request): number | null {
  const told = headers.get("content-length");
  if (told === null) return null;
  const length = Number.parseInt(told, 10);
  return Number.isNaN(length) ? Number.POSITIVE_INFINITY : length;
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
 * the proxy itself saw, which a client cannot make up. What is no IP address there counts as nothing.
 */
export function clientAddress(request: Request, socketAddress: string, trustProxy: boolean): string {
  if (!trustProxy) return socketAddress;
  return addressIn(request.headers.get("x-forwarded-for")?.split(",").at(-1)?.trim() ?? "") ?? socketAddress;
}

/** Some proxies write the port too: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
function addressIn(entry: string): string | null {
  const bare = /^\[([^\]]+)\](?::\d+)?$/.exec(entry)?.[1] ?? /^([\d.]+):\d+$/.exec(entry)?.[1] ?? entry;
  return isIP(bare) === 0 ? null : bare;
}

/** Whether a proxy tells whose request this is. Cheap: every request is asked. */
export const namesClient = ({ headers }: Request): boolean =>
  headers.has("x-forwarded-for") || headers.has("forwarded") || headers.has("x-real-ip");

/** Whether anything says that a proxy handed this request on: the socket's address is then not the client's. */
const isForwarded = (request: Request): boolean =>
  namesClient(request) ||
  request.headers.has("via") ||
  request.headers.keys().some((name) => name.startsWith("x-forwarded-"));

export const isLoopbackAddress = (address: string): boolean => address === "::1" || /^(::ffff:)?127\./.test(address);

/** Whether a `Host` header names this machine to itself. */
function isLoopbackHost(hostHeader: string | null): boolean {
  const name = hostNameOf(hostHeader);
  return name === "localhost" || name === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(name);
}

/**
 * Whether a request is this machine's own. A proxy beside the server connects from loopback too: what it handed on, or was
 * asked for under another name, is not (security.md).
 */
export const isFromThisMachine = (request: Request, socketAddress: string): boolean =>
  isLoopbackAddress(socketAddress) && isLoopbackHost(request.headers.get("host")) && !isForwarded(request);

/**
 * Whether a server that listens on loopback only should answer: the `Host` must name it, or a page of another origin
 * could reach it by rebinding its own name to 127.0.0.1. `publicHost`: how it is called from elsewhere, in lower case.
 */
export const isOwnHost = (hostHeader: string | null, publicHost: string | null): boolean =>
  isLoopbackHost(hostHeader) || (publicHost !== null && hostNameOf(hostHeader) === publicHost);

const hostNameOf = (hostHeader: string | null): string => (hostHeader ?? "").replace(/:\d+$/, "").toLowerCase();
