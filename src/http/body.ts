import { AppError } from "../lib/app-error.ts";

/** A request's body, at most (api.md section 1, Sizes). */
export const BODY_LIMIT_BYTES = 1024 * 1024;

const tooLarge = () => new AppError("payload_too_large", `body: expected at most ${BODY_LIMIT_BYTES} bytes`);

/** The body's bytes, never more than the limit held in memory. Throws 413 beyond it, 400 for a client that left. */
export async function readBody(request: Request): Promise<Uint8Array> {
  try {
    return await receive(request);
  } catch (cause) {
    // Nobody hears this; it keeps a broken connection from being logged as a fault of the host.
    if (request.signal.aborted) throw new AppError("invalid_request", "body: expected all of it", { cause });
    throw cause;
  }
}

async function receive(request: Request): Promise<Uint8Array> {
  const declared = request.headers.get("content-length");
  if (declared !== null) {
    if (Number(declared) > BODY_LIMIT_BYTES) throw tooLarge();
    return request.bytes();
  }
  if (request.body === null) return new Uint8Array();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body) {
    size += chunk.byteLength;
    if (size > BODY_LIMIT_BYTES) throw tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size);
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** The JSON value in a body. An empty body is `{}`. Throws `invalid_request` for any other type, encoding or syntax. */
export function parseJson(bytes: Uint8Array, contentType: string | null): unknown {
  if (bytes.byteLength === 0) return {};
  const type = contentType?.split(";", 1)[0]?.trim().toLowerCase();
  if (type !== "application/json") {
    throw new AppError("invalid_request", "Content-Type: expected application/json");
  }
  try {
    return JSON.parse(utf8.decode(bytes));
  } catch {
    throw new AppError("invalid_request", "body: expected well-formed JSON in UTF-8");
  }
}
