import type { EgressAnswer } from "../egress/egress.ts";
import { valuesOf } from "../egress/head.ts";

/** The body of an answer, as far as it is text. */
export type AnswerText = { kind: "html" | "text"; type: string; text: string } | { kind: "binary"; type: string };

const TEXT_TYPES =
  /^(?:text\/|application\/(?:[\w.+-]*(?:json|xml|yaml|javascript|ecmascript|sql|toml|graphql)|x-www-form-urlencoded|x-ndjson)\b)/;
const HTML_TYPES = /^(?:text\/html|application\/xhtml\+xml)$/;
/** Where browsers look for a page's own word on its characters. */
const META_BYTES = 1_024;

/**
 * Reads a body as text, by the characters that its header, its first bytes or its page declare; else UTF-8, and where it
 * is not valid, Windows-1252.
 */
export function textOf({ headers, body, status }: Pick<EgressAnswer, "headers" | "body" | "status">): AnswerText {
  const [declared = ""] = valuesOf({ status, headers }, "content-type");
  const [type = "", ...parameters] = declared
    .toLowerCase()
    .split(";")
    .map((part) => part.trim());
  if (type === "" ? body.includes(0) : !TEXT_TYPES.test(type) && !HTML_TYPES.test(type)) {
    return { kind: "binary", type: type || "application/octet-stream" };
  }
  const [, charset] =
    /^charset="?([^"\s]+)"?$/.exec(parameters.find((part) => part.startsWith("charset=")) ?? "") ?? [];
  const start = body.toString("latin1", 0, META_BYTES);
  const isHtml = HTML_TYPES.test(type) || (type === "" && /^\s*<(?:!doctype html|html)\b/i.test(start));
  const [, meta] = (isHtml && /<meta[^>]+charset\s*=\s*["']?([\w-]+)/i.exec(start)) || [];
  const text = decode(body, byteOrderMark(body) ?? charset ?? meta);
  return { kind: isHtml ? "html" : "text", type: type || (isHtml ? "text/html" : "text/plain"), text };
}

function byteOrderMark(body: Buffer): string | undefined {
  if (body[0] === 0xfe && body[1] === 0xff) return "utf-16be";
  if (body[0] === 0xff && body[1] === 0xfe) return "utf-16le";
  return body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf ? "utf-8" : undefined;
}

function decode(body: Buffer, charset: string | undefined): string {
  try {
    return new TextDecoder(charset ?? "utf-8", { fatal: charset === undefined }).decode(body);
  } catch {
    // Not valid UTF-8, or a name that nobody knows.
    return new TextDecoder("windows-1252").decode(body);
  }
}

/** What stands for a body that is not text. */
export const describeBinary = (type: string, { length }: Buffer): string =>
  `[${length} bytes of ${type}: not text, so not shown]`;

/** Names of the statuses that agents see most. */
const STATUS_NAMES: Readonly<Record<number, string>> = {
  200: "OK",
  201: "Created",
  202: "Accepted",
  204: "No Content",
  304: "Not Modified",
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  409: "Conflict",
  410: "Gone",
  422: "Unprocessable Content",
  429: "Too Many Requests",
  500: "Internal Server Error",
  502: "Bad Gateway",
  503: "Service Unavailable",
  504: "Gateway Timeout",
};

export const shownStatus = (status: number): string => `${status} ${STATUS_NAMES[status] ?? ""}`.trim();

/** The text up to so many characters, with a visible mark where it was cut. */
export const cutText = (text: string, max: number): string =>
  text.length <= max ? text : text.slice(0, max).toWellFormed() + cutMark(text);

export const cutMark = ({ length }: string): string => `\n[… cut here: the first of ${length} characters …]`;
