import { AppError, type ErrorCode } from "../lib/app-error.ts";
import { addressKey } from "../limits/address.ts";
import { authorize, type Caller, requireVisible } from "../limits/caller.ts";
import { clientLeft, errorAnswer, jsonAnswer, Reply, refusalAnswer, toAppError } from "./answer.ts";
import { BOUNDS, bodyBytesOf } from "./bounds.ts";
import { type CallInput, createCall, keep } from "./call.ts";
import type { Exchange, ServingParts } from "./exchange.ts";
import { keyRefusal } from "./idempotency.ts";
import { type IncomingBody, receivedBody } from "./incoming-bodies.ts";
import { declaredLength, pathAndQueryOf, requestIdOf } from "./request.ts";
import type { Route } from "./route.ts";
import type { IdempotentRequest } from "./schema.ts";

/** Answers one request for one route, in the contract's order (docs/contract/api.md, Order of checks). */
export async function serveRoute(
  route: Route,
  parts: ServingParts,
  request: Request,
  params: Record<string, string>,
): Promise<Response> {
  const startedMs = performance.now();
  const requestId = requestIdOf(request);
  const trace = parts.traces === null ? null : beginTrace(parts.traces, route, request, requestId);
  const about = { accountId: null, runId: params.runId ?? null, trace };
  const exchange: Exchange = { route, parts, request, params, requestId, answerBytes: 0, heldMs: 0, ...about };
  let answer: Response;
  let failure: AppError | null = null;
  try {
    answer = await answerOf(exchange);
  } catch (thrown) {
    failure = hasLeft(thrown, request) ? clientLeft() : toAppError(thrown);
    answer = await refusalAnswer(failure, request, requestId, route.errorForm);
  }
  parts.onAnswer(exchange, answer.status, startedMs, failure);
  trace?.end({ ...exchange, status: answer.status, error: failure?.code ?? null });
  return answer;
}

/** Whether what a request waited for was given up with it: that is no fault of the host. */
const hasLeft = (thrown: unknown, { signal }: Request): boolean => signal.aborted && thrown === signal.reason;

const beginTrace = (
  traces: NonNullable<ServingParts["traces"]>,
  { method, path }: Route,
  request: Request,
  requestId: string,
) => traces.request({ method, route: path, requestId, traceparent: request.headers.get("traceparent") });

async function answerOf(exchange: Exchange): Promise<Response> {
  const { route, parts, request, params } = exchange;
  if (route.access === "public") return answerAnybody(exchange);
  const known = parts.admission.caller(request);
  const caller = known instanceof Promise ? await known : known;
  exchange.accountId = caller.accountId;
  authorize(caller, route.access);
  requireVisible(caller, params.instanceId);
  if (route.method === "GET") return answerRead(exchange, caller);
  // Its memory is reserved before its turn comes: it arrives meanwhile.
  const answer = await withBody(exchange, caller.accountId, async (incoming) => {
    const turn = parts.turns.enter(caller.accountId);
    if (turn) await turn;
    return answerCaller(exchange, caller, incoming);
  });
  parts.admission.chargeWrite(caller, exchange.answerBytes);
  return answer;
}

/** Most requests are reads without a body, and few of them have to wait. */
async function answerRead(exchange: Exchange, caller: Caller): Promise<Response> {
  const turn = exchange.parts.turns.enter(caller.accountId);
  if (turn) await turn;
  const answer = await answerCaller(exchange, caller);
  exchange.parts.admission.chargeRead(caller, exchange.answerBytes, exchange.heldMs);
  return answer;
}

async function answerCaller(exchange: Exchange, caller: Caller, incoming?: IncomingBody): Promise<Response> {
  const { route, request } = exchange;
  const key = route.method === "POST" && route.idempotent !== false ? request.headers.get("idempotency-key") : null;
  if (key !== null && incoming) return answerOnce(exchange, caller, key, incoming);
  const made = inTurn(exchange, caller, () => {
    const handled = handle(exchange, caller, { incoming });
    return handled instanceof Promise ? handled : toResponse(exchange, handled);
  });
  if (made instanceof Response) return made;
  const result = await made;
  return inTurn(exchange, caller, () => toResponse(exchange, result));
}

function inTurn<T>(exchange: Exchange, { accountId }: Caller, work: () => T): T {
  const beganMs = performance.now();
  try {
    return exchange.parts.turns.spend(accountId, work);
  } finally {
    exchange.heldMs += performance.now() - beganMs;
  }
}

/** A refusal here counts against the address. */
const REFUSALS: ReadonlySet<ErrorCode> = new Set(["unauthorized", "invite_required"]);

async function answerAnybody(exchange: Exchange): Promise<Response> {
  const { route, parts, request } = exchange;
  await parts.admission.anybody(request);
  if (route.method === "GET") return toResponse(exchange, await handle(exchange, null));
  const address = parts.addressOf(request);
  parts.admission.requireFewRefusals(address);
  try {
    return await withBody(exchange, addressKey(address), async (incoming) =>
      toResponse(exchange, await handle(exchange, null, { incoming })),
    );
  } catch (error) {
    if (error instanceof AppError && REFUSALS.has(error.code)) parts.admission.refused(address);
    throw error;
  }
}

async function withBody<T>(
  exchange: Exchange,
  owner: string,
  work: (incoming: IncomingBody) => Promise<T>,
): Promise<T> {
  const { route, parts, request } = exchange;
  const incoming = parts.bodies.open(request, owner, bodyBytesOf(route, declaredLength(request) !== null));
  try {
    return await work(incoming);
  } finally {
    incoming.close();
  }
}

/** Errors of the operation itself, which a repetition with the same key gets again. */
const KEPT_ERRORS = new Set([400, 404, 409]);

/** A function of its own: one that waits for the answer would keep the body with what its closures share. */
const handleInTurn = (exchange: Exchange, caller: Caller, input: CallInput): unknown =>
  exchange.parts.turns.spend(caller.accountId, () => handle(exchange, caller, input));

const paymentOf = ({ headers }: Request): string | null => headers.get("X-PAYMENT") ?? headers.get("PAYMENT-SIGNATURE");

async function answerOnce(exchange: Exchange, caller: Caller, key: string, incoming: IncomingBody): Promise<Response> {
  const { route, parts, request, params, requestId } = exchange;
  const body = keyRefusal(key) ?? (await incoming.bytes().catch(asRefusal));
  // A bad key or a body over the limit is reported after the resource was found; nothing is stored for the key.
  if (body instanceof AppError) {
    return toResponse(exchange, await handle(exchange, caller, { refusal: body }));
  }
  // Even if the path names no instance, the answer may contain one: it is only for keys limited to the same instance.
  const limitedTo = params.instanceId === undefined ? caller.instanceId : null;
  const asked = { method: route.method, path: pathAndQueryOf(request), limitedTo, body, payment: paymentOf(request) };
  const begun = parts.idempotency.begin(caller.accountId, key, asked);
  if (begun.kind === "replay") return replayed(exchange, caller, body, begun.stored);
  const { attempt } = begun;
  // What no commit of the operation has stored shares its commit with others, in the account's turn.
  const store = (save: () => void) =>
    parts.commits.shared(() => parts.turns.spend(caller.accountId, save), caller.accountId);
  try {
    const result = await handleInTurn(exchange, caller, { incoming: receivedBody(body), attempt });
    if (!attempt.saved() && !(result instanceof Response)) await store(() => keep(route, attempt, result));
    return toResponse(exchange, result);
  } catch (thrown) {
    const error = toAppError(thrown);
    if (!attempt.saved() && error.isKept && KEPT_ERRORS.has(error.status)) {
      const kept = await errorAnswer(error, requestId, null, route.errorForm).text();
      await store(() => attempt.save({ status: error.status, body: kept }));
    }
    throw thrown;
  } finally {
    attempt.end();
  }
}

function asRefusal(thrown: unknown): AppError {
  if (thrown instanceof AppError) return thrown;
  throw thrown;
}

/** Marked as a replay even if the record is gone by now: nothing was done again. */
async function replayed(
  exchange: Exchange,
  caller: Caller,
  body: Uint8Array,
  stored: IdempotentRequest,
): Promise<Response> {
  const mark = "Idempotent-Replayed";
  try {
    const again = await answerAgain(exchange, caller, body, stored);
    again.headers.set(mark, "true");
    return again;
  } catch (thrown) {
    const error = toAppError(thrown);
    if (error.isOfRun || KEPT_ERRORS.has(error.status)) error.headers[mark] = "true";
    throw error;
  }
}

async function answerAgain(
  exchange: Exchange,
  caller: Caller,
  body: Uint8Array,
  { status, body: kept, runId, record }: IdempotentRequest,
): Promise<Response> {
  const { route, params } = exchange;
  if (runId !== null && route.replay) {
    return toResponse(
      exchange,
      await route.replay(createCall(exchange, caller, { incoming: receivedBody(body) }), runId),
    );
  }
  if (kept !== null) {
    exchange.answerBytes = kept.length;
    return storedAnswer(exchange, status, kept);
  }
  const by = route.reread?.by;
  if (record === null || by === undefined) {
    throw new AppError("conflict", "Idempotency-Key: this was done, but its answer was too large to be stored");
  }
  if (by.access !== "public") authorize(caller, by.access);
  const read = JSON.stringify(await handle({ ...exchange, route: by, params: { ...params, ...record } }, caller));
  exchange.answerBytes = read.length;
  return jsonAnswer(status, read, exchange.requestId);
}

/** A stored error is repeated in the form that this request asks for, with this request's id. */
function storedAnswer({ route, request, requestId }: Exchange, status: number, body: string): Response {
  if (status < 400) return jsonAnswer(status, body, requestId);
  const { error, ...rest } = JSON.parse(body) as { error: { code: ErrorCode; message: string; param?: string | null } };
  const again = { status, body: rest, ...(typeof error.param === "string" && { param: error.param }) };
  const stored = new AppError(error.code, error.message, again);
  return errorAnswer(stored, requestId, request.headers.get("accept"), route.errorForm);
}

/** Runs the route. What the request is about is found first: without it nothing else is checked. */
const handle = (exchange: Exchange, caller: Caller | null, input?: CallInput): unknown =>
  exchange.route.handle(createCall(exchange, caller, input));

function toResponse(exchange: Exchange, result: unknown): Response {
  const { route, requestId } = exchange;
  if (result instanceof Response) {
    result.headers.set("X-Request-Id", requestId);
    exchange.answerBytes = Number(result.headers.get("content-length") ?? 0);
    return result;
  }
  const reply = result instanceof Reply ? result : new Reply(route.status ?? 200, result);
  const body = JSON.stringify(reply.value);
  exchange.answerBytes = body.length;
  // Tests run with this check, the binary without it.
  if (process.env.NODE_ENV !== "production" && body.length > BOUNDS[route.bound].answerBytes) {
    throw new Error(`${route.method} ${route.path} answered with ${body.length} bytes, beyond its bound`);
  }
  return jsonAnswer(reply.status, body, requestId, reply.headers);
}
