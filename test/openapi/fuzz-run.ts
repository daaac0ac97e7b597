import { type OpenApi, openApiCheck } from "../support/openapi-check.ts";
import { type FuzzCase, makeCase, targetsOf } from "./fuzz-case.ts";
import { createRandom } from "./random.ts";
import { asCurl, type RawAnswer, type RawOutcome, sendRaw } from "./raw-request.ts";
import { openFuzzGround, type World } from "./world.ts";

export interface FuzzOptions {
  seed: number;
  /** The first case; the world is fresh if this is a multiple of `CASES_OF_A_WORLD`. */
  from?: number;
  /** The number of cases, or how long to run. */
  cases?: number;
  durationMs?: number;
  /** After how many failures to stop. */
  maxFailures?: number;
}

export interface FuzzFailure {
  number: number;
  what: string;
  curl: string;
}

export interface FuzzReport {
  cases: number;
  /** How often each status was the answer. */
  statuses: Record<string, number>;
  failures: FuzzFailure[];
}

/** Cases break the world bit by bit; after this many, there is a new one. */
export const CASES_OF_A_WORLD = 150;
const PATIENCE_MS = 60_000;

/** Sends case after case to a new server, and checks each answer. */
export async function fuzz({ seed, from = 0, cases, durationMs, maxFailures = 10 }: FuzzOptions): Promise<FuzzReport> {
  await using ground = await openFuzzGround();
  const { server } = ground;
  const document: OpenApi = (await server.ask("GET", "/openapi.json")).body;
  const targets = targetsOf(document);
  const check = openApiCheck(document);
  const report: FuzzReport = { cases: 0, statuses: {}, failures: [] };
  const until = performance.now() + (durationMs ?? Number.POSITIVE_INFINITY);
  let world: World | undefined;

  for (let number = from; report.cases < (cases ?? Number.POSITIVE_INFINITY) && performance.now() < until; number++) {
    if (world === undefined || number % CASES_OF_A_WORLD === 0) world = await ground.newWorld();
    const made = makeCase(targets, document, world, createRandom(seed, number));
    const outcome = await sendRaw(server.url, made.request, PATIENCE_MS);
    report.cases++;
    const status = outcome.answers[0]?.status ?? outcome.ended;
    report.statuses[status] = (report.statuses[status] ?? 0) + 1;
    const wrong = [...faultsOf(made, outcome, check), ...ground.faults().map((fault) => `the log says: ${fault}`)];
    if (wrong.length === 0) continue;
    const what = `${made.operationId}: ${wrong.join("; ")}`;
    report.failures.push({ number, what, curl: asCurl(server.url, made.request) });
    if (report.failures.length >= maxFailures) break;
  }
  return report;
}

/** What is wrong with an outcome; empty if nothing is. */
function faultsOf(made: FuzzCase, { answers, ended }: RawOutcome, check: ReturnType<typeof openApiCheck>): string[] {
  const { wire } = made.request;
  const [first, second] = answers;
  if (wire === "truncated")
    return first ? faultsOfAnswer({ ...made, isOperation: false, isRefused: false }, first, check) : [];
  if (ended === "timeout") return [`no answer within ${PATIENCE_MS} ms`];
  // Bun's server closes a connection on which a request comes before the answer to the one before it.
  if (!first) return made.isHttp && wire !== "pipelined" ? ["the connection was closed without an answer"] : [];
  const faults = faultsOfAnswer(made, first, check);
  if (second && second.status !== 200) faults.push(`the request behind it got ${second.status}`);
  return faults;
}

function faultsOfAnswer(
  made: FuzzCase,
  { status, headers, body }: RawAnswer,
  check: ReturnType<typeof openApiCheck>,
): string[] {
  const { method, target } = made.request;
  if (status >= 500 && status !== 502 && status !== 503) return [`${status} ${body}`];
  if (made.isRefused && status !== 401) return [`expected 401, got ${status}`];
  if (!made.isHttp && status >= 400 && headers.get("x-request-id") === null) return [];
  // Of whoever checks the input: everything that is refused says itself what was expected.
  if (status === 400 && /Too (small|big)|Invalid (input|option|string)/.test(body ?? "")) return [`400 ${body}`];
  try {
    if (made.isOperation && made.isHttp) check({ method, path: target, status, headers, body });
    else if (status >= 400 && method !== "HEAD") requireEnvelope(status, headers, body ?? "");
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
  return [];
}

function requireEnvelope(status: number, headers: Headers, body: string): void {
  const value = JSON.parse(body);
  const error = headers.get("content-type")?.startsWith("application/problem+json") ? value : value.error;
  if (error?.status !== status || error.requestId !== headers.get("x-request-id")) {
    throw new Error(`expected the envelope, got ${status} ${body.slice(0, 300)}`);
  }
}
