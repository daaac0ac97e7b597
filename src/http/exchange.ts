import type { AppError } from "../lib/app-error.ts";
import type { FairTurns } from "../limits/fair-turns.ts";
import type { Admission } from "./admission.ts";
import type { Idempotency } from "./idempotency.ts";
import type { IncomingBodies } from "./incoming-bodies.ts";
import type { StartPage } from "./paging.ts";
import type { CommitKind, Route } from "./route.ts";

/** What serving takes beside the routes. */
export interface ServingParts {
  admission: Admission;
  bodies: IncomingBodies;
  /** By account; what no account asks for is bounded by its address. */
  turns: FairTurns;
  idempotency: Idempotency;
  startPage: StartPage;
  /** Runs `work` in a transaction of each kind; resolves when it is on disk. */
  commits: Record<CommitKind, <T>(work: () => T) => Promise<T>>;
  addressOf(request: Request): string;
  /** Called once a request, after its answer is made. */
  onAnswer(route: Route, status: number, startedMs: number, requestId: string, error: AppError | null): void;
}

/** One request on its way through the server. */
export interface Exchange {
  route: Route;
  parts: ServingParts;
  request: Request;
  params: Record<string, string>;
  requestId: string;
  /** Of the answer's body, where it is known. */
  answerBytes: number;
}
