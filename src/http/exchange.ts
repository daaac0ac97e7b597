import type { AppError } from "../lib/app-error.ts";
import type { Caller } from "../limits/caller.ts";
import type { FairTurns } from "../limits/fair-turns.ts";
import type { RequestTrace, Traces } from "../traces/traces.ts";
import type { Admission } from "./admission.ts";
import type { Idempotency } from "./idempotency.ts";
import type { IncomingBodies } from "./incoming-bodies.ts";
import type { StartPage } from "./paging.ts";
import type { CommitKind, Route } from "./route.ts";

/** What serving needs besides the routes. */
export interface ServingParts {
  admission: Admission;
  /** Whether the credential of a caller, who was let in before, still holds. */
  stillValid(caller: Caller): boolean;
  bodies: IncomingBodies;
  /** By account; public routes are limited by address instead. */
  turns: FairTurns;
  idempotency: Idempotency;
  startPage: StartPage;
  /** Runs `work` in a transaction of this kind; resolves when it is on disk. */
  commits: Record<CommitKind, <T>(work: () => T, accountId?: string) => Promise<T>>;
  addressOf(request: Request): string;
  /** Null without a collector. */
  traces: Pick<Traces, "request"> | null;
  /** Called once for each request, when its answer is ready. */
  onAnswer(exchange: Exchange, status: number, startedMs: number, error: AppError | null): void;
  /** Called for an unexpected failure of what is no route. */
  onPageFailure(about: { requestId: string; method: string; path: string }, error: AppError): void;
}

/** One request and what is known about its answer. */
export interface Exchange {
  route: Route;
  parts: ServingParts;
  request: Request;
  params: Record<string, string>;
  requestId: string;
  trace: RequestTrace | null;
  /** Who asks, once that is known. */
  accountId: string | null;
  /** The run that the request has caused, or decided about. */
  runId: string | null;
  /** The size of the answer's body, as far as it is known. */
  answerBytes: number;
  /** For how many milliseconds it held the thread that serves everybody, as far as it is known. */
  heldMs: number;
}
