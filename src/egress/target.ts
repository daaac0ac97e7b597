import { isIP } from "node:net";
import { EgressError } from "./refusal.ts";

/** Where a request goes. */
export interface Target {
  url: URL;
  /** In lower case and punycode, without brackets and final dot. */
  host: string;
  isAddress: boolean;
  port: number;
  secure: boolean;
}

const MAX_URL = 8_192;

/**
 * Reads a URL as the WHATWG parser does, so that nobody reads another host out of it: number forms of addresses, IDN and
 * backslashes are settled here. Throws `EgressError`.
 */
export function targetOf(text: string, base?: URL): Target {
  if (text.length > MAX_URL) throw new EgressError("url", `the URL is longer than ${MAX_URL} characters`);
  const url = URL.parse(text, base);
  if (url === null) {
    throw new EgressError("url", "this is not a URL: expected one in full, such as https://example.org/page");
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new EgressError("url", `${url.protocol} URLs cannot be fetched: expected http: or https:`);
  }
  if (url.username !== "" || url.password !== "") {
    throw new EgressError("url", "the URL holds a user name or a password: send credentials in a header instead");
  }
  url.hash = "";
  const secure = url.protocol === "https:";
  const host = url.hostname.replace(/\.$/, "").replace(/^\[(.*)\]$/, "$1");
  if (host === "" || host.endsWith(".")) throw new EgressError("url", `"${url.hostname}" is not a host`);
  return { url, host, isAddress: isIP(host) !== 0, port: Number(url.port) || (secure ? 443 : 80), secure };
}

/** `example.org`, or `example.org:8080` where the port is not the scheme's own. */
export const shownHost = ({ host, url }: Target): string => {
  const bracketed = host.includes(":") ? `[${host}]` : host;
  return url.port === "" ? bracketed : `${bracketed}:${url.port}`;
};

/** Whether an entry (`host` for the scheme's own port, or `host:port`) names this target. */
export function isNamedBy(entry: string, target: Target): boolean {
  const named = URL.parse(`${target.url.protocol}//${entry}`);
  if (named === null || named.pathname !== "/") return false;
  return named.hostname.replace(/\.$/, "") === target.url.hostname.replace(/\.$/, "") && named.port === target.url.port;
}
