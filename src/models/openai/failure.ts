import { ModelError } from "../engine.ts";

/** Who was asked for what: the parts of a failure's words. */
export interface ModelServer {
  /** Scheme, host and port. The rest of the URL may hold secrets and is never shown. */
  origin: string;
  model: string;
  apiKey: string | undefined;
  /** Names of the settings that a mend would change. */
  keySetting: string;
  urlSetting: string;
}

/** The failure that an answer with an error status means, in words that say what to do. */
export function statusFailure(server: ModelServer, status: number, body: string): ModelError {
  const said = readError(server, body);
  if (isOverflow(said)) return overflowFailure(server, said);
  const colon = said.message === "" ? "." : `: ${said.message}`;
  const at = `The model server at ${server.origin}`;
  if (status === 401)
    return new ModelError("rejected", `${at} does not accept the API key: check ${server.keySetting}.`);
  if (status === 404) {
    return new ModelError(
      "rejected",
      `${at} does not know the model "${server.model}": check its name (with Ollama, \`ollama pull ${server.model}\` ` +
        `fetches it) and ${server.urlSetting}, which usually ends in /v1.`,
    );
  }
  if (status === 429) {
    return new ModelError(
      "unavailable",
      `${at} limits requests (429): try again later, or check the plan there${colon}`,
    );
  }
  if (status === 408 || status >= 500) {
    return new ModelError("unavailable", `${at} failed (${status}): try again, or look at its log${colon}`);
  }
  if (status < 400) {
    return new ModelError("rejected", `${at} redirects (${status}): set ${server.urlSetting} to the final address.`);
  }
  if (status === 403) {
    return new ModelError("rejected", `${at} refuses access (403): check ${server.keySetting} and its rights${colon}`);
  }
  return new ModelError("rejected", `${at} refused the request (${status})${colon}`);
}

/** The failure that an error object inside a stream means. */
export function streamFailure(server: ModelServer, error: unknown): ModelError {
  const said = describe(server, error);
  if (isOverflow(said)) return overflowFailure(server, said);
  return new ModelError(
    "broken",
    `The model server at ${server.origin} failed: ${said.message || "it did not say why"}`,
  );
}

/** The failure that a request without any answer means. `code` is the network's: fetch's own words hold the whole URL. */
export function connectFailure(server: ModelServer, code: string | undefined): ModelError {
  return new ModelError("unavailable", `${connectReason(server, code)} Check ${server.urlSetting}.`);
}

function connectReason({ origin }: ModelServer, code: string | undefined): string {
  switch (code) {
    case "ECONNREFUSED":
      return `Nothing answers at ${origin}: is the model server running?`;
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `The model server's name in ${origin} is not known to DNS.`;
    case "ECONNRESET":
      return `The model server at ${origin} closed the connection without an answer: look at its log.`;
    default:
      return `The model server at ${origin} cannot be reached${code === undefined ? "" : ` (${code})`}.`;
  }
}

export const silentFailure = (server: ModelServer, idleTimeoutMs: number): ModelError =>
  new ModelError(
    "silent",
    `The model server at ${server.origin} was silent for ${idleTimeoutMs / 1000} s: it may be overloaded, or still loading ` +
      `"${server.model}". Try again, or look at its log.`,
  );

export const brokenFailure = (server: ModelServer, what: string): ModelError =>
  new ModelError("broken", `The model server at ${server.origin} ${what}`);

export const CUT = "broke off in the middle of its answer: try again, or look at its log.";

interface Said {
  message: string;
  code: string;
  promptTokens: number | undefined;
  limitTokens: number | undefined;
}

function readError(server: ModelServer, body: string): Said {
  try {
    const document: unknown = JSON.parse(body);
    const inner = isRecord(document) && document.error != null ? document.error : document;
    return describe(server, inner);
  } catch {
    // A page of HTML says nothing to the reader of an error message.
    return describe(server, body.trimStart().startsWith("<") ? "" : body);
  }
}

/** OpenAI: `{ message, code }`; FastAPI: `{ detail }`; llama.cpp adds token counts; some send a bare string. */
function describe(server: ModelServer, error: unknown): Said {
  const fields = isRecord(error) ? error : { message: error };
  const message = fields.message ?? fields.detail;
  return {
    message: clean(server, typeof message === "string" ? message : message == null ? "" : JSON.stringify(message)),
    code: `${textOr(fields.code)} ${textOr(fields.type)}`,
    promptTokens: countOr(fields.n_prompt_tokens),
    limitTokens: countOr(fields.n_ctx),
  };
}

function clean(server: ModelServer, message: string): string {
  const hidden = server.apiKey ? message.replaceAll(server.apiKey, "…") : message;
  const line = hidden
    .slice(0, 4000)
    .replace(/[\s\p{C}]+/gu, " ")
    .trim();
  return line.length > 300 ? `${line.slice(0, 299)}…` : line;
}

const OVERFLOW_CODE = /context_length_exceeded|exceed_context_size/;
const OVERFLOW_WORDS =
  /(maximum|available|exceeds?( the)?( model'?s)?|max) context (length|size|window)|context (length|size|window) (is )?exceeded|greater than the context (length|size)|prompt is too long/i;

const isOverflow = (said: Said): boolean => OVERFLOW_CODE.test(said.code) || OVERFLOW_WORDS.test(said.message);

function overflowFailure(server: ModelServer, said: Said): ModelError {
  const limitTokens = said.limitTokens ?? countIn(said.message, /(?:length|size|window)\D{0,12}?(\d+)/i);
  const promptTokens =
    said.promptTokens ??
    countIn(said.message, /(?:resulted in|requested|contains?(?: at least)?|request \()\D{0,12}?(\d+)/i);
  const counts = limitTokens === undefined ? "" : ` (${promptTokens ?? "more"} of ${limitTokens} tokens)`;
  return new ModelError(
    "context_overflow",
    `The conversation is longer than the model "${server.model}" can read${counts}: start a fresh conversation or use a ` +
      "model with a larger context.",
    promptTokens === undefined || limitTokens === undefined ? {} : { overflow: { promptTokens, limitTokens } },
  );
}

const countIn = (text: string, pattern: RegExp): number | undefined => countOr(Number(pattern.exec(text)?.[1]));
const countOr = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : undefined;
const textOr = (value: unknown): string => (typeof value === "string" ? value : "");
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
