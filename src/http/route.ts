import type { z } from "zod";
import type { ErrorCode } from "../lib/app-error.ts";
import type { Access, Caller } from "../limits/caller.ts";
import { type Bound, bodyBytesOf } from "./bounds.ts";
import type { StartPage } from "./paging.ts";
import type { Tag } from "./tags.ts";

export type Method = "GET" | "POST" | "PATCH" | "PUT" | "DELETE";

/**
 * How a change is committed. Either way the request is answered when the change is on disk, with its answer stored under
 * the request's `Idempotency-Key`; and what throws has changed nothing.
 *
 * - `shared`: at the end of the turn, in one commit with the other requests of the moment. Thousands of small changes
 *   cost one write to the disk, so this is the choice for all that has no reason for the other.
 * - `alone`: at once, in a transaction of its own, whose write to the disk everybody waits for. For what is seldom and must
 *   hold for the very next request, however many changes wait for their commit: a key revoked, an instance deleted.
 */
export type CommitKind = "shared" | "alone";

/** The names after `:` in a path, and `*` for a tail. */
type ParamsOf<Path extends string> = Path extends `${infer Head}/${infer Tail}`
  ? ParamsOf<Head> & ParamsOf<Tail>
  : Path extends `:${infer Name}`
    ? { [K in Name]: string }
    : Path extends "*"
      ? { "*": string }
      : unknown;

type Parsed<S> = S extends z.ZodType ? z.output<S> : S extends "text/plain" ? Uint8Array : undefined;

type WhoOf<A extends Access> = A extends "public" ? null : Caller;

/** What a request is about, before anything of it is judged but who asks. */
export interface Asked<Params, Who = Caller> {
  readonly caller: Who;
  readonly params: Params;
  readonly request: Request;
}

/** What a handler sees of its request. `query` and `body` are judged when asked for, so a handler fixes their order. */
export interface Call<Params, Query, Body, Found, Who> extends Asked<Params, Who> {
  /** What the route's `find` gave before anything else was judged; what waits asks `find` again. */
  readonly found: Found;
  /** Finds it as it is now: it may have changed, or gone. Throws `not_found`. */
  find(): Found;
  /** The client's address, as the settings say it is to be found. */
  address(): string;
  /** Throws `invalid_request`. */
  query(): Query;
  /** Where the page of a list begins. Throws `invalid_request` for a cursor that is not of this list. */
  readonly startPage: StartPage;
  /** What the schema makes of the JSON; the bytes of a text. Throws `invalid_request` or `payload_too_large`. */
  body(): Promise<Body>;
}

interface Commits<Found> {
  /**
   * Runs the operation in the commit that the route names, with what is found there; resolves when it is on disk. `runId`
   * names the run whose events are the answer to a repetition.
   */
  commit<T>(operate: (found: Found) => T, runId?: (result: T) => string): Promise<T>;
}

/** What a change sees of its request, inside the commit. */
export interface Change<Params, Body, Found, Who> extends Asked<Params, Who> {
  readonly found: Found;
  readonly body: Body;
}

interface Described<
  Path extends string,
  A extends Access,
  Query extends z.ZodType | undefined,
  Body extends z.ZodType | "text/plain" | undefined,
> {
  method: Method;
  path: Path;
  /** What the API's description calls the operation, and clients their method: `listAgentMessages`. */
  name: string;
  /** Its section of the reference. */
  tag: Tag;
  /** One line for the reference. */
  summary: string;
  access: A;
  /** What one request may cost the host (bounds.ts). */
  bound: Bound;
  query?: Query;
  /** What it takes: JSON of this schema, or a text. Absent for a route that takes nothing; then `{}` is taken too. */
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
}

/**
 * What a route does. A change that is one step once the body is read is its `write`, in the commit. Everything else is its
 * `handle`: a read, a change that waits for something first, and one whose rule commits by itself.
 */
type Does<Params, Query, Body, Found, Who> =
  | { commit?: undefined; handle(call: Call<Params, Query, Body, Found, Who>): unknown }
  | { commit: CommitKind; handle(call: Call<Params, Query, Body, Found, Who> & Commits<Found>): unknown }
  | { commit: CommitKind; write(change: Change<Params, Body, Found, Who>): unknown };

export type RouteSpec<
  Path extends string,
  A extends Access,
  Query extends z.ZodType | undefined,
  Body extends z.ZodType | "text/plain" | undefined,
  Found,
> = Described<Path, A, Query, Body> & {
  /**
   * Finds what the request is about. It runs before the body is read, so that a request for what is not there is a 404
   * whatever it brings; and again in the commit, where it may be gone. Throws `not_found`.
   */
  find?: (asked: Asked<ParamsOf<Path>, WhoOf<A>>) => Found;
  /** Answers a replayed request from its run. */
  replay?: (call: Call<ParamsOf<Path>, Parsed<Query>, Parsed<Body>, Found, Caller>, runId: string) => unknown;
} & Does<ParamsOf<Path>, Parsed<Query>, Parsed<Body>, Found, WhoOf<A>>;

// biome-ignore-start lint/suspicious/noExplicitAny: the one place where routes of different shapes meet in a list
export type AnyCall = Call<any, any, any, any, any> & Commits<any>;
type AnyChange = Change<any, any, any, any>;
// biome-ignore-end lint/suspicious/noExplicitAny: the one place where routes of different shapes meet in a list

/** A route of any shape, as the server registers it. */
export type Route = Omit<
  Described<string, Access, z.ZodType | undefined, z.ZodType | "text/plain" | undefined>,
  "kept" | "reread"
> & {
  kept?: (result: unknown) => unknown;
  reread?: { by: Route; params: (result: unknown) => Record<string, string> };
  find?: (asked: Asked<Record<string, string>, Caller | null>) => unknown;
  commit?: CommitKind;
  replay?: (call: AnyCall, runId: string) => unknown;
  handle(call: AnyCall): unknown;
};

/** One entry of the route table: where it is, who may use it, what it takes and gives, and the way down. */
export function route<
  Path extends string,
  A extends Access,
  Query extends z.ZodType | undefined = undefined,
  Body extends z.ZodType | "text/plain" | undefined = undefined,
  Found = undefined,
>(spec: RouteSpec<Path, A, Query, Body, Found>): Route {
  const made = spec as unknown as Route & { write?: (change: AnyChange) => unknown };
  return made.write ? { ...made, handle: handleOf(made, made.write) } : made;
}

/** How a route does its `write`: one that takes nothing, and may not, waits for nothing either. */
function handleOf(route: Pick<Route, "access" | "method">, write: (change: AnyChange) => unknown) {
  const takesBody = bodyBytesOf(route) > 0;
  return ({ caller, params, request, body, commit }: AnyCall) => {
    const change = (body: unknown) => commit((found) => write({ caller, params, request, found, body }));
    return takesBody ? body().then(change) : change(undefined);
  };
}
