import { isObject } from "../../lib/is-object.ts";
import { isTooDeep } from "../../lib/json-depth.ts";
import { ModelError } from "../engine.ts";
import { oneLine, withoutEchoes } from "./echo.ts";

/** The request that failed, for error messages. */
export interface ModelServer {
  /** Scheme, host and port. The rest of the URL may contain secrets and is never shown. */
  origin: string;
  model: string;
  apiKey: string | undefined;
  /** The names of the settings that may need to be fixed. */
  keySetting: string;
  urlSetting: string;
  /** The texts sent, on one line, which its errors may repeat. */
  prompt(): string;
}

/** Messages for tenants. They reveal neither the server, nor its address, nor its error text. */
const FOR_TENANTS = {
  unreachable: "The model server did not answer: try again, or ask the host's operator.",
  failed: "The model server failed: try again, or ask the host's operator.",
  busy: "The model server is busy: try again in a while.",
  refused: "The model server refused the request: ask the host's operator.",
  broken: "The model server's answer was incomplete or invalid: try again, or ask the host's operator.",
};

/** The failure for a response with an error status; `detail` tells the operator what to do. */
export function statusFailure(server: ModelServer, status: number, body: string): ModelError {
  const said = readError(server, body);
  if (isOverflow(said)) return overflowFailure(server, said);
  const colon = said.message === "" ? "." : `: ${said.message}`;
  const at = `The model server at ${server.origin}`;
  const { keySetting, urlSetting, model } = server;
  if (status === 401) return refused(`${at} does not accept the API key: check ${keySetting}.`);
  if (status === 404) {
    return refused(
      `${at} does not know the model "${model}": check its name (with Ollama, \`ollama pull ${model}\` ` +
        `fetches it) and ${urlSetting}, which usually ends in /v1.`,
      `The model server does not know the model "${model}": choose another for this agent, or ask the host's operator.`,
      "unknown_model",
    );
  }
  if (status === 429) {
    const detail = `${at} limits requests (429): try again later, or check the plan there${colon}`;
    return new ModelError("unavailable", FOR_TENANTS.busy, { detail });
  }
  if (status === 408 || status >= 500) {
    const detail = `${at} failed (${status}): try again, or look at its log${colon}`;
    return new ModelError("unavailable", FOR_TENANTS.failed, { detail });
  }
  if (status < 400) return refused(`${at} redirects (${status}): set ${urlSetting} to the final address.`);
  if (status === 403) return refused(`${at} refuses access (403): check ${keySetting} and its rights${colon}`);
  return refused(`${at} refused the request (${status})${colon}`);
}

const refused = (detail: string, words = FOR_TENANTS.refused, kind: "rejected" | "unknown_model" = "rejected") =>
  new ModelError(kind, words, { detail });

/** The failure for an error object inside a stream. */
export function streamFailure(server: ModelServer, error: unknown): ModelError {
  const said = describe(server, error);
  if (isOverflow(said)) return overflowFailure(server, said);
  const detail = `The model server at ${server.origin} failed: ${said.message || "it did not say why"}`;
  return new ModelError("broken", FOR_TENANTS.failed, { detail });
}

/**
 * The failure for a request without an answer. Uses only the network error's `code`: fetch's message contains the whole
 * URL.
 */
export function connectFailure(server: ModelServer, code: string | undefined): ModelError {
  const detail = `${connectReason(server, code)} Check ${server.urlSetting}.`;
  return new ModelError("unavailable", FOR_TENANTS.unreachable, { detail });
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

export const silentFailure = (server: ModelServer, idleTimeoutMs: number): ModelError => {
  const silence = `was silent for ${idleTimeoutMs / 1000} s`;
  return new ModelError("silent", `The model server ${silence}: try again, or ask the host's operator.`, {
    detail:
      `The model server at ${server.origin} ${silence}: it may be overloaded, or still loading "${server.model}". ` +
      "Try again, or look at its log.",
  });
};

export const brokenFailure = (server: ModelServer, what: string): ModelError =>
  new ModelError("broken", FOR_TENANTS.broken, { detail: `The model server at ${server.origin} ${what}` });

export const CUT = "closed the connection in the middle of its answer: try again, or look at its log.";

interface ServerError {
  message: string;
  code: string;
  promptTokens: number | undefined;
  limitTokens: number | undefined;
}

function readError(server: ModelServer, body: string): ServerError {
  try {
    const document: unknown = isTooDeep(body) ? body : JSON.parse(body);
    const inner = isObject(document) && document.error != null ? document.error : document;
    return describe(server, inner);
  } catch {
    // An HTML page is of no use in an error message.
    return describe(server, body.trimStart().startsWith("<") ? "" : body);
  }
}

/** OpenAI: `{ message, code }`; FastAPI: `{ detail }`; llama.cpp adds token counts; some send a bare string. */
function describe(server: ModelServer, error: unknown): ServerError {
  const fields = isObject(error) ? error : { message: error };
  const message = fields.message ?? fields.detail;
  return {
    message: clean(server, typeof message === "string" ? message : message == null ? "" : JSON.stringify(message)),
    code: `${textOr(fields.code)} ${textOr(fields.type)}`,
    promptTokens: countOr(fields.n_prompt_tokens),
    limitTokens: countOr(fields.n_ctx),
  };
}

/** Characters of a message that are looked at, besides the API key. */
const MAX_READ = 4_000;

function clean(server: ModelServer, message: string): string {
  const line = oneLine(withoutKey(message, server.apiKey ?? ""));
  return withoutEchoes(line.length > 300 ? `${line.slice(0, 299)}…` : line, server.prompt());
}

/** Its beginning, without the key: where that is cut off, it may end in a part of one, which is not shown either. */
function withoutKey(message: string, key: string): string {
  if (key === "") return message.slice(0, MAX_READ);
  const read = message.slice(0, MAX_READ + key.length);
  const pieces = read.split(key);
  const last = pieces.pop() ?? "";
  const isWhole = read.length === message.length;
  pieces.push(isWhole ? last : last.slice(0, Math.max(0, last.length - key.length + 1)));
  return pieces.join("…").slice(0, MAX_READ);
}

const OVERFLOW_CODE = /context_length_exceeded|exceed_context_size/;
const OVERFLOW_WORDS =
  /(maximum|available|exceeds?( the)?( model'?s)?|max) context (length|size|window)|context (length|size|window) (is )?exceeded|greater than the context (length|size)|prompt is too long/i;

const isOverflow = (said: ServerError): boolean => OVERFLOW_CODE.test(said.code) || OVERFLOW_WORDS.test(said.message);

function overflowFailure(server: ModelServer, said: ServerError): ModelError {
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
