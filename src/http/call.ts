import { z } from "zod";
import type { AppError } from "../lib/app-error.ts";
import { authorize, type Caller, requireVisible } from "../limits/caller.ts";
import { Reply, toAppError } from "./answer.ts";
import type { Exchange } from "./exchange.ts";
import { parse } from "./fields.ts";
import type { Attempt } from "./idempotency.ts";
import { type IncomingBody, receivedBody } from "./incoming-bodies.ts";
import { parseJson } from "./json.ts";
import { credentialEnded } from "./lasting-answers.ts";
import { queryToCheck } from "./request.ts";
import type { AnyCall, AskedRoute, Route } from "./route.ts";

/** The body of a route that takes none: an object does no harm. */
const NO_FIELDS = z.object({}).transform(() => undefined);

const NOTHING = new Uint8Array();

export interface CallInput {
  /** Absent for a read. */
  incoming?: IncomingBody | undefined;
  /** With an `Idempotency-Key`: stores the answer. */
  attempt?: Attempt;
  /** What is wrong with the key or the body; reported once the resource was found. */
  refusal?: AppError;
}

/** The call that the route's handler gets. Throws what the route's `find` throws. */
export function createCall(
  exchange: Exchange,
  caller: Caller | null,
  { incoming, attempt, refusal }: CallInput = {},
): AnyCall {
  const { route, parts, request, params, requestId } = exchange;
  const find = () => route.find?.({ caller, params, request });
  const causedRun = (runId: string) => {
    exchange.runId = runId;
    exchange.trace?.caused(runId);
  };
  const bytes = async () => {
    if (refusal) throw refusal;
    const read = (await incoming?.bytes()) ?? NOTHING;
    // Checked again: the body may have been held back until many other tries had been refused.
    if (caller === null) parts.admission.requireFewRefusals(parts.addressOf(request));
    // Or until the credential was revoked, by whoever it was stolen from.
    else if (!parts.stillValid(caller)) throw credentialEnded();
    return read;
  };
  return {
    caller,
    params,
    request,
    requestId,
    causedRun,
    ask: (inner, asked) => askRoute(exchange, inner, asked, caller),
    found: find(),
    find,
    address: () => parts.addressOf(request),
    startPage: parts.startPage,
    query: () => (route.query ? parse(route.query, queryToCheck(request)) : undefined),
    async body() {
      const read = await bytes();
      const { body: form = NO_FIELDS } = route;
      if (typeof form === "string") return read;
      const fields = () => parse(form, parseJson(read, request.headers));
      if (caller === null) return fields();
      const turn = parts.turns.enter(caller.accountId);
      if (turn) await turn;
      return parts.turns.spend(caller.accountId, fields);
    },
    commit(operate, runId) {
      const work = () => {
        if (refusal) throw refusal;
        const result = operate(find());
        const run = runId?.(result);
        if (run !== undefined) causedRun(run);
        if (attempt) keep(route, attempt, result, run);
        return result;
      };
      const commit = parts.commits[route.commit ?? "shared"];
      if (caller === null) return commit(work);
      return commit(() => parts.turns.spend(caller.accountId, work), caller.accountId);
    },
  };
}

/** Where requests of other routes come from. */
const INSIDE = "http://inside";

async function askRoute(
  exchange: Exchange,
  route: Route,
  { params = {}, query = {}, body, headers }: AskedRoute,
  caller: Caller | null,
): Promise<{ value: unknown; text: string }> {
  const { parts, requestId, request: outer } = exchange;
  if (caller === null || route.access === "public") throw new Error(`${route.name} cannot be asked from inside`);
  const { admission } = parts;
  const isRead = route.method === "GET";
  const startedMs = performance.now();
  admission.inner(caller, route.method);
  authorize(caller, route.access);
  requireVisible(caller, params.instanceId);
  const search = new URLSearchParams(Object.entries(query).flatMap(([name, value]) => (value ? [[name, value]] : [])));
  const request = new Request(`${INSIDE}?${search}`, {
    headers: { "Content-Type": "application/json", ...headers },
    signal: outer.signal,
  });
  const inside: Exchange = { ...exchange, route, params, request };
  const incoming = receivedBody(body === undefined ? NOTHING : new TextEncoder().encode(JSON.stringify(body)));
  const turn = parts.turns.enter(caller.accountId);
  if (turn) await turn;
  try {
    const made = await parts.turns.spend(caller.accountId, () =>
      route.handle(createCall(inside, caller, isRead ? {} : { incoming })),
    );
    exchange.runId ??= inside.runId;
    if (made instanceof Response) return { value: made, text: "" };
    const value = made instanceof Reply ? made.value : made;
    const text = JSON.stringify(value);
    if (isRead) admission.chargeRead(caller, text.length, performance.now() - startedMs);
    else admission.chargeWrite(caller, text.length);
    return { value, text };
  } catch (thrown) {
    const error = toAppError(thrown);
    if (error.cause !== undefined) parts.onPageFailure({ requestId, method: route.method, path: route.path }, error);
    throw error;
  }
}

const recordOf = (id: string, value: unknown) => ({ [id]: (value as Record<string, string>)[id] ?? "" });

/** Stores the answer to a request under a key, in the transaction that is open. */
export function keep(route: Route, attempt: Attempt, result: unknown, runId?: string): void {
  if (result instanceof Response) return;
  const status = result instanceof Reply ? result.status : (route.status ?? 200);
  const value = result instanceof Reply ? result.value : result;
  const body = JSON.stringify(route.kept ? route.kept(value) : value);
  attempt.save({ status, body, runId, record: route.reread && recordOf(route.reread.id, value) });
}
