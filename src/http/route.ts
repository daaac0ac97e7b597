import type { z } from "zod";
import type { Access, Caller } from "../accounts/caller.ts";
import type { ErrorCode } from "../lib/app-error.ts";
import type { Bound } from "./bounds.ts";
import type { StartPage } from "./paging.ts";

export type Method = "GET" | "POST" | "PATCH" | "PUT" | "DELETE";

/** The names after `:` in a path, and `*` for a tail. */
type ParamsOf<Path extends string> = Path extends `${infer Head}/${infer Tail}`
  ? ParamsOf<Head> & ParamsOf<Tail>
  : Path extends `:${infer Name}`
    ? { [K in Name]: string }
    : Path extends "*"
      ? { "*": string }
      : unknown;

type Parsed<S> = S extends z.ZodType ? z.output<S> : undefined;

/** What a handler sees of its request. `query` and `body` are parsed when asked for, so a handler fixes their order. */
export interface Call<Params, Query, Body, Who> {
  readonly caller: Who;
  readonly params: Params;
  readonly request: Request;
  readonly requestId: string;
  /** The client's address, as the settings say it is to be found. */
  address(): string;
  /** Throws `invalid_request`. */
  query(): Query;
  /** Where the page of a list begins. Throws `invalid_request` for a cursor that is not of this list. */
  readonly startPage: StartPage;
  /** Throws `invalid_request` or `payload_too_large`. */
  body(): Promise<Body>;
  /** The body as it came, for routes that take no JSON. Throws `payload_too_large`. */
  bytes(): Promise<Uint8Array>;
  /**
   * Runs the operation in one transaction that also stores its answer under the request's `Idempotency-Key`, so that
   * a crash cannot leave the one without the other. Requests of the same moment share one commit; the promise resolves
   * when it is on disk. `runId` names the run whose events are the answer.
   */
  once<T>(operate: () => T, runId?: (result: T) => string): Promise<T>;
}

export interface RouteSpec<
  Path extends string = string,
  A extends Access = Access,
  Query extends z.ZodType | undefined = z.ZodType | undefined,
  Body extends z.ZodType | undefined = z.ZodType | undefined,
> {
  method: Method;
  path: Path;
  /** One line for the reference. */
  summary: string;
  access: A;
  /** What one request may cost the host (bounds.ts). */
  bound: Bound;
  query?: Query;
  body?: Body;
  /** Of success; 200 where absent. */
  status?: number;
  /** The success's JSON; text for a route that answers with something else. */
  answer: z.ZodType | "text/event-stream" | "text/plain";
  /** Codes that the operation itself can give, beyond those every route gives. */
  errors?: ErrorCode[];
  /** False for the routes whose repetition is meant: asking for a code, verifying one. */
  idempotent?: false;
  /** What is kept of a success for its replay, where that is not all of it. */
  kept?: (result: never) => unknown;
  /** The GET that tells a success again which is too large to be kept, and the path parameters of its record. */
  reread?: { by: Route; params: (result: never) => Record<string, string> };
  /** Answers a replayed request from its run. */
  replay?: (call: Call<ParamsOf<Path>, Parsed<Query>, Parsed<Body>, Caller>, runId: string) => unknown;
  handle(call: Call<ParamsOf<Path>, Parsed<Query>, Parsed<Body>, A extends "public" ? null : Caller>): unknown;
}

/** A route of any shape, as the server registers it. */
export type Route = Omit<RouteSpec, "handle" | "kept" | "reread" | "replay"> & {
  kept?: (result: unknown) => unknown;
  reread?: { by: Route; params: (result: unknown) => Record<string, string> };
  replay?: (call: AnyCall, runId: string) => unknown;
  handle(call: AnyCall): unknown;
};
// biome-ignore lint/suspicious/noExplicitAny: the one place where routes of different shapes meet in a list
export type AnyCall = Call<any, any, any, any>;

/** One entry of the route table: where it is, who may use it, what it takes and gives, and the way down. */
export const route = <
  Path extends string,
  A extends Access,
  Query extends z.ZodType | undefined = undefined,
  Body extends z.ZodType | undefined = undefined,
>(
  spec: RouteSpec<Path, A, Query, Body>,
): Route => spec as unknown as Route;
