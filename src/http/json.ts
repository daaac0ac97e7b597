import { AppError } from "../lib/app-error.ts";
import { isTooComplex, MAX_JSON_DEPTH } from "../lib/json-depth.ts";
import { MAX_BODY_BYTES } from "../limits/body-bytes.ts";

/** Each is checked on the thread that serves everybody: a megabyte of empty objects would hold it up for seconds. */
const MAX_VALUES = 50_000;
/** Of characters in texts: as many as an ordinary body has room for. */
const MAX_ESCAPES = MAX_BODY_BYTES / 2;

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** Parses a JSON body; an empty one is `{}`. Throws `invalid_request` for another content type, encoding or syntax. */
export function parseJson(bytes: Uint8Array, headers: Headers): unknown {
  if (bytes.byteLength === 0) return {};
  const encoding = headers.get("content-encoding")?.trim().toLowerCase() ?? "identity";
  if (encoding !== "identity") {
    throw new AppError("invalid_request", "Content-Encoding: expected none: a body is not unpacked here");
  }
  const type = headers.get("content-type")?.split(";", 1)[0]?.trim().toLowerCase();
  if (type !== "application/json") {
    throw new AppError("invalid_request", "Content-Type: expected application/json");
  }
  try {
    const text = utf8.decode(bytes);
    if (!isTooComplex(text, MAX_JSON_DEPTH, MAX_VALUES, MAX_VALUES, MAX_ESCAPES)) return JSON.parse(text);
  } catch {
    throw new AppError("invalid_request", "body: expected well-formed JSON in UTF-8");
  }
  throw new AppError(
    "invalid_request",
    `body: expected JSON that is nested at most ${MAX_JSON_DEPTH} levels deep and has at most ${MAX_VALUES} values and ${MAX_ESCAPES} escapes`,
  );
}
