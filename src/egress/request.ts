import { ENCODINGS } from "./body.ts";
import { HEADER_NAME } from "./head.ts";
import { EgressError } from "./refusal.ts";
import { shownHost, type Target } from "./target.ts";

/** What is sent to a target. */
export interface Message {
  /** In capitals. */
  method: string;
  headers: Readonly<Record<string, string>>;
  body: Uint8Array | null;
  /** Asks for no compression, which would hold back what is streamed. */
  uncompressed?: boolean;
}

/** A message, and the query that it is sent with. */
export interface PreparedMessage extends Message {
  search: string;
}

/** Headers that frame the message or belong to the connection: they are written here, and nowhere else. */
const OWN = new Set([
  "host",
  "connection",
  "content-length",
  "transfer-encoding",
  "accept-encoding",
  "upgrade",
  "te",
  "trailer",
  "keep-alive",
  "expect",
  "proxy-authorization",
  "proxy-connection",
]);

/** What may follow a redirect to another origin: nothing that may be a credential. */
const HARMLESS = new Set(["accept", "accept-language", "user-agent"]);

/** Whether what stands in this header also goes where a redirect leads. */
export const isSentOn = (header: string): boolean => HARMLESS.has(header.toLowerCase());

const METHOD = /^[A-Z]{1,16}$/;
/** They open tunnels, or reflect credentials. */
const REFUSED_METHODS = new Set(["CONNECT", "TRACE"]);
/** Without line breaks, a header cannot become two. */
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const BODILESS = new Set(["GET", "HEAD"]);

/** The bytes of the request. Throws `EgressError`, naming the header but never its value. */
export function writeMessage(target: Target, { method, headers, body, uncompressed }: Message): Buffer {
  if (!METHOD.test(method) || REFUSED_METHODS.has(method)) {
    throw new EgressError("url", `the method ${JSON.stringify(method.slice(0, 20))} cannot be used`);
  }
  if (body !== null && BODILESS.has(method)) throw new EgressError("url", `a ${method} request has no body`);
  const lines = [
    `${method} ${target.url.pathname}${target.url.search} HTTP/1.1`,
    `Host: ${shownHost(target)}`,
    "Connection: close",
    `Accept-Encoding: ${uncompressed ? "identity" : ENCODINGS}`,
  ];
  if (!Object.keys(headers).some((name) => name.toLowerCase() === "user-agent")) lines.push("User-Agent: Roost");
  for (const [name, value] of Object.entries(headers)) {
    if (!HEADER_NAME.test(name))
      throw new EgressError("url", `${JSON.stringify(name.slice(0, 50))} is not a header's name`);
    if (OWN.has(name.toLowerCase()))
      throw new EgressError("url", `the header ${name} is set by the host: leave it out`);
    if (!HEADER_VALUE.test(value)) {
      throw new EgressError("url", `the header ${name} has a line break or a character that headers cannot carry`);
    }
    lines.push(`${name}: ${value}`);
  }
  if (body !== null) lines.push(`Content-Length: ${body.length}`);
  return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), body ?? Buffer.alloc(0)]);
}

/**
 * What is sent to where a redirect points (RFC 9110, 15.4). To another origin go neither credentials nor bodies, and only
 * what reads. Throws `EgressError`.
 */
export function redirected(message: Message, status: number, from: Target, to: Target): Message {
  if (from.secure && !to.secure) throw new EgressError("redirect", "the server redirects from https to http");
  const becomesGet = status === 303 ? message.method !== "HEAD" : status <= 302 && message.method === "POST";
  const next: Message = becomesGet
    ? { method: "GET", headers: without(message.headers, (name) => name.startsWith("content-")), body: null }
    : message;
  if (to.url.origin === from.url.origin) return next;
  if (!BODILESS.has(next.method)) {
    throw new EgressError(
      "redirect",
      `the server redirects ${next.method} to another host, ${shownHost(to)}: ask there directly`,
    );
  }
  return { ...next, headers: without(next.headers, (name) => !isSentOn(name)) };
}

const without = (headers: Message["headers"], drops: (name: string) => boolean): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !drops(name.toLowerCase())));
