import { isIP } from "node:net";
import { AppError } from "../lib/app-error.ts";
import { isLoopbackName } from "../lib/loopback.ts";

/**
 * Throws `forbidden` for a request that a page of another origin has sent, or that came by a name that is not this host's:
 * so does one after DNS rebinding. Programs send no `Origin`; an address in `Host` cannot be rebound.
 */
export function requireOwnOrigin(headers: Headers, ownUrls: readonly string[]): void {
  const own = ownUrls.map((url) => new URL(url));
  const host = hostOf(`http://${headers.get("host") ?? ""}`);
  if (
    host === null ||
    !(isAddress(host.hostname) || isLoopbackName(host.hostname) || own.some((one) => one.host === host.host))
  ) {
    throw new AppError(
      "forbidden",
      "Host: this is not a name of this host; set ROOST_PUBLIC_URL to the URL that clients use",
    );
  }
  const origin = headers.get("origin");
  if (origin === null) return;
  const from = hostOf(origin);
  const isOwn = from !== null && own.some((one) => one.origin === from.origin || isSameLoopback(one, from));
  if (isOwn) return;
  throw new AppError("forbidden", "Origin: pages of other sites may not use this; send the request from a program");
}

function hostOf(url: string): URL | null {
  return URL.canParse(url) ? new URL(url) : null;
}

const isAddress = (hostname: string): boolean => isIP(hostname.replace(/^\[|\]$/g, "")) !== 0;
/** `localhost` and `127.0.0.1` are one host, if the port is the same. */
const isSameLoopback = (one: URL, other: URL): boolean =>
  isLoopbackName(one.hostname) &&
  isLoopbackName(other.hostname) &&
  one.protocol === other.protocol &&
  one.port === other.port;
