import { lazily } from "../lib/lazily.ts";
import { nameOf } from "../lib/model-name.ts";
import { waitFor } from "../lib/wait-for.ts";
import { withoutEnd } from "../lib/without-end.ts";
import type { CalledServer, ModelAbilities, ModelEngine, ModelEvent, ModelRequest } from "./engine.ts";
import { createAnswerReader } from "./openai/answer.ts";
import { createContextSizes } from "./openai/context-sizes.ts";
import { oneLine } from "./openai/echo.ts";
import { brokenFailure, CUT, type ModelServer, silentFailure } from "./openai/failure.ts";
import { type Endpoint, type Fetch, type Opening, openAnswer, type Reader } from "./openai/open-answer.ts";
import { type Dialect, learnDialect, MAX_LEARNT, STANDARD_DIALECT, textsOf, writeRequest } from "./openai/request.ts";
import { type RequestWatch, watchRequest } from "./openai/watch.ts";

export interface OpenAiOptions {
  /** With `/v1`, as for the OpenAI SDKs. */
  baseUrl: string;
  apiKey?: string | undefined;
  /** The context length of models about which the server tells nothing, in tokens. */
  contextTokens?: number;
  /** The maximum tokens of one answer: without it, a tenant's prompt decides how much the operator pays. */
  answerTokens?: number;
  connectTimeoutMs?: number;
  /** The longest silence, before the answer and within it. */
  idleTimeoutMs?: number;
  /** The names of the URL and key settings in error messages. */
  keySetting?: string;
  urlSetting?: string;
  /** Replaces `fetch`, for example with an egress guard, which then has its own connect timeout. */
  fetch?: Fetch;
  /** Of the operator's own server: its calls pass on their traces, which tell its port, too. */
  passesTrace?: boolean;
  /** Called before the wait of each retry. */
  log?: (retry: Retry) => void;
  random?: () => number;
  wait?: (ms: number, signal: AbortSignal) => Promise<void>;
}

export interface Retry {
  server: string;
  model: string;
  accountId: string;
  instanceId: string;
  runId: string | undefined;
  attempt: number;
  waitMs: number;
  reason: string;
}

const MAX_RETRIES = 2;
const FIRST_BACKOFF_MS = 500;
const MAX_BACKOFF_MS = 10_000;
/**
 * After the finish reason, only usage can follow; a server that keeps the connection open must not delay the answer.
 */
const USAGE_TIMEOUT_MS = 5_000;
const DRAIN_MS = 1_000;
const MAX_DIALECTS = 100;
const STREAMING = { stream: true };
/** Of a model whose server does not say (docs/contract/api.md, Models). */
export const USUAL_CONTEXT_TOKENS = 32_768;

/**
 * The engine for `openai:<model>`: any server with an OpenAI-compatible `/chat/completions`. Connection failures, 408,
 * 429 and 5xx are retried twice, but only before the first byte of the body (docs/contract/api.md, Models that fail).
 */
export function createOpenAiEngine(options: OpenAiOptions): ModelEngine {
  const { apiKey, answerTokens = 4_096, idleTimeoutMs = 60_000, random = Math.random, wait = waitFor } = options;
  const endpoint = endpointOf(options);
  const called = calledServer(endpoint.url, options.passesTrace ?? false);
  const sizes = createContextSizes(options);
  const contextTokensOf = (model: string) => sizes.of(model) ?? options.contextTokens ?? USUAL_CONTEXT_TOKENS;
  const dialects = new Map<string, Dialect>();
  const answerTokensOf = ({ maxTokens }: Pick<ModelRequest, "maxTokens">) =>
    Math.min(maxTokens ?? answerTokens, answerTokens);

  /** Everybody's requests have the dialect from now on, so the server must have taken this one because of it alone. */
  const remember = (model: string, dialect: Dialect) => {
    if (!dialect.isForAll) return;
    if (dialects.size >= MAX_DIALECTS) dialects.clear();
    dialects.set(model, dialect);
  };

  const backoffMs = (retry: number, retryAfterMs: number | null): number =>
    Math.min(
      MAX_BACKOFF_MS,
      retryAfterMs === null
        ? FIRST_BACKOFF_MS * 2 ** retry * (0.5 + random() / 2)
        : retryAfterMs + FIRST_BACKOFF_MS * (random() / 2),
    );

  async function* stream(request: ModelRequest, caller: AbortSignal): AsyncGenerator<ModelEvent[]> {
    // Only refusals are compared with them.
    const texts = lazily(() => textsOf(request));
    const server: ModelServer = {
      origin: endpoint.url.origin,
      model: nameOf(request.model),
      apiKey,
      keySetting: options.keySetting ?? "ROOST_OPENAI_API_KEY",
      urlSetting: options.urlSetting ?? "ROOST_OPENAI_BASE_URL",
      prompt: lazily(() => oneLine(texts().join("\n"))),
    };
    const bounded = { ...request, maxTokens: answerTokensOf(request) };
    const known = dialects.get(server.model) ?? STANDARD_DIALECT;
    let dialect = known;
    let lessons = 0;
    for (let retry = 0; ; ) {
      caller.throwIfAborted();
      request.onSent?.(called);
      const watch = watchRequest(caller, idleTimeoutMs);
      let opening: Opening;
      try {
        opening = await openAnswer(
          endpointFor(endpoint, request, options.passesTrace ?? false),
          server,
          writeRequest(bounded, server.model, dialect),
          watch,
        );
        if (opening.kind === "open") {
          if (dialect !== known) remember(server.model, dialect);
          yield* readAnswer(opening, server, bounded.maxTokens, watch);
          return;
        }
      } catch (error) {
        caller.throwIfAborted();
        throw watch.silent ? silentFailure(server, idleTimeoutMs) : error;
      } finally {
        watch.close();
      }
      caller.throwIfAborted();
      const { refusal } = opening;
      const mayLearn = refusal !== "" && lessons < MAX_LEARNT;
      const learnt = mayLearn ? learnDialect(dialect, refusal, bounded, texts()) : null;
      if (learnt !== null) {
        lessons++;
        dialect = learnt;
        request.onRefused?.();
        continue;
      }
      const failure = opening.failure();
      if (failure.kind !== "unavailable" || retry === MAX_RETRIES) throw failure;
      request.onRefused?.();
      const waitMs = backoffMs(retry++, opening.retryAfterMs);
      const { message, detail = message } = failure;
      const { accountId, instanceId, runId } = request;
      const whose = { accountId, instanceId, runId };
      options.log?.({ server: server.origin, model: server.model, ...whose, attempt: retry, waitMs, reason: detail });
      await wait(waitMs, caller);
    }
  }

  return {
    abilities: (model): ModelAbilities => ({
      contextTokens: contextTokensOf(nameOf(model)),
      tools: true,
      prompt: "full",
      images: true,
    }),
    answerTokens: answerTokensOf,
    stream,
  };
}

function endpointOf({ baseUrl, apiKey, connectTimeoutMs = 10_000, fetch }: OpenAiOptions): Endpoint {
  const url = new URL(baseUrl);
  url.pathname = `${withoutEnd(url.pathname, "/")}/chat/completions`;
  const headers: Record<string, string> = {
    "Content-Type": "application/json",
    Accept: "text/event-stream",
    // Compression would delay tokens.
    "Accept-Encoding": "identity",
  };
  if (apiKey) headers.Authorization = `Bearer ${apiKey}`;
  return { url, headers, connectTimeoutMs, fetch };
}

/** What traces tell of it: of a server whose URL is a secret, only the name. */
function calledServer({ hostname, port, protocol }: URL, isOperators: boolean): CalledServer {
  const address = hostname.replace(/^\[(.*)\]$/, "$1");
  return isOperators ? { address, port: Number(port) || (protocol === "https:" ? 443 : 80) } : { address };
}

/** Where one request goes. */
const endpointFor = (endpoint: Endpoint, { runId, traceparent }: ModelRequest, passesTrace: boolean): Endpoint => ({
  ...endpoint,
  runId,
  ...(passesTrace && traceparent !== undefined && { headers: { ...endpoint.headers, traceparent } }),
});

/** Yields the events of each network chunk. An abort by the caller, or silence, makes the read fail. */
async function* readAnswer(
  { reader, first }: Extract<Opening, { kind: "open" }>,
  server: ModelServer,
  maxTokens: number,
  watch: RequestWatch,
): AsyncGenerator<ModelEvent[]> {
  const answer = createAnswerReader(server, maxTokens);
  const decoder = new TextDecoder();
  let released = false;
  try {
    let next: typeof first | "cut" = first;
    while (next !== "cut" && !next.done) {
      answer.push(decoder.decode(next.value, STREAMING));
      if (answer.done) break;
      if (answer.finished) watch.limit(USAGE_TIMEOUT_MS);
      const events = answer.takeText();
      if (events.length > 0) yield events;
      watch.beginWait();
      next = await reader.read().catch((cause: unknown) => {
        if (watch.signal.aborted && !(watch.silent && answer.finished)) throw cause;
        return "cut" as const;
      });
      watch.endWait();
    }
    if (next === "cut") {
      if (!answer.finished) throw brokenFailure(server, CUT);
    } else if (next.done) {
      answer.end();
      released = true;
    } else {
      void drain(reader, watch);
      released = true;
    }
    yield answer.takeRest();
  } catch (error) {
    // What the model said before it failed may have come in the same network chunk.
    const said = answer.takeText();
    if (said.length > 0) yield said;
    throw error;
  } finally {
    if (!released) watch.abort();
  }
}

/** Reads what follows `[DONE]`: a connection is reused only if the body was read to its end. */
async function drain(reader: Reader, watch: RequestWatch): Promise<void> {
  const timer = setTimeout(() => watch.abort(), DRAIN_MS);
  try {
    while (!(await reader.read()).done);
  } catch {
    // The answer is complete; how the connection ended does not matter.
  } finally {
    clearTimeout(timer);
  }
}
