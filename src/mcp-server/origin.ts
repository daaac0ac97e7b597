import { isIP } from "node:net";
import { AppError } from "../lib/app-error.ts";

/**
 * Throws `forbidden` for a request that a page of another origin has sent, or that came by a name that is not this host's:
 * so does one after DNS rebinding. Programs send no `Origin`; an address in `Host` cannot be rebound.
 */
export function requireOwnOrigin(headers: Headers, ownUrls: readonly string[]): void {
  const own = ownUrls.map((url) => new URL(url));
  const host = hostOf(`http://${headers.get("host") ?? ""}`);
  if (host === null || !(isAddress(host.hostname) || isLoopback(host) || own.some((one) => one.host === host.host))) {
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

const bare = (hostname: string): string => hostname.replace(/^\[|\]$/g, "");
const isAddress = (hostname: string): boolean => isIP(bare(hostname)) !== 0;
const isLoopback = ({ hostname }: URL): boolean =>
  hostname === "localhost" || bare(hostname) === "::1" || /^127\./.test(hostname);

/** `localhost` and `127.0.0.1` are one host, if the port is the same. */
const isSameLoopback = (one: URL, other: URL): boolean =>
  isLoopback(one) && isLoopback(other) && one.protocol === other.protocol && one.port === other.port;
