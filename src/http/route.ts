import type { z } from "zod";
import type { ErrorCode } from "../lib/app-error.ts";
import type { Access, Caller } from "../limits/caller.ts";
import type { ErrorForm } from "./answer.ts";
import { type Bound, bodyBytesOf } from "./bounds.ts";
import type { StartPage } from "./paging.ts";
import type { Tag } from "./tags.ts";

export type Method = "GET" | "POST" | "PATCH" | "PUT" | "DELETE";

/**
 * How a change is committed. Either way the request is answered once the change is on disk, and its answer is stored
 * with it if the request has an `Idempotency-Key`. If it throws, nothing has changed.
 *
 * - `shared`: at the end of the turn, in one commit with the other requests of the moment. Thousands of small changes
 *   cost one write to the disk, so this is the usual choice.
 * - `alone`: at once, in a transaction of its own, while everybody waits for its write to the disk. For what is rare
 *   and must hold for the very next request, even if many changes wait for their commit: a revoked key, a deleted
 *   instance.
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

/** Bodies that are not JSON: they are read as they are. */
export type BytesBody = "text/plain" | "application/gzip";

type Parsed<S> = S extends z.ZodType ? z.output<S> : S extends BytesBody ? Uint8Array : undefined;

type WhoOf<A extends Access> = A extends "public" ? null : Caller;

/** A request whose caller is known, before anything else is checked. */
export interface Asked<Params, Who = Caller> {
  readonly caller: Who;
  readonly params: Params;
  readonly request: Request;
}

/** A request to a route, made by another one. */
export interface AskedRoute {
  params?: Record<string, string>;
  query?: Record<string, string | undefined>;
  /** As JSON. */
  body?: unknown;
  headers?: Record<string, string>;
}

/**
 * What a handler sees of its request. `query` and `body` are checked when they are called, so the handler sets the
 * order.
 */
export interface Call<Params, Query, Body, Found, Who> extends Asked<Params, Who> {
  /** The result of the route's `find` before anything else was checked. After waiting, call `find` again. */
  readonly found: Found;
  /** Finds it as it is now: it may have changed or be gone. Throws `not_found`. */
  find(): Found;
  /** What the answer's `X-Request-Id` says. */
  readonly requestId: string;
  /** Notes the run that the request has caused, or decided about, for the log and the trace. */
  causedRun(runId: string): void;
  /**
   * Asks another route for the same caller, as if it had sent that request: scopes, limits and errors are the same. Returns
   * what the route answers, and that as JSON; a `Response` as it is. Throws `AppError`.
   */
  ask(route: Route, asked: AskedRoute): Promise<{ value: unknown; text: string }>;
  /** The client's address, from a trusted proxy if there is one. */
  address(): string;
  /** Throws `invalid_request`. */
  query(): Query;
  /** Where the page of a list begins. Throws `invalid_request` for a cursor of another list. */
  readonly startPage: StartPage;
  /** The JSON as parsed by the schema, or the bytes of a text. Throws `invalid_request` or `payload_too_large`. */
  body(): Promise<Body>;
}

interface Commits<Found> {
  /**
   * Runs the operation in the commit that the route names, with what `find` returns there; resolves when it is on disk.
   * `runId` returns the run whose result answers a repetition.
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
  Body extends z.ZodType | BytesBody | undefined,
> {
  method: Method;
  path: Path;
  /** The operation's name in the API's description, and of the method in clients: `listAgentMessages`. */
  name: string;
  /** Its section of the reference. */
  tag: Tag;
  /** One line for the reference. */
  summary: string;
  /** What the summary leaves open, in Markdown. */
  description?: string;
  access: A;
  /** What one request may cost the host (bounds.ts). */
  bound: Bound;
  query?: Query;
  /** The body: JSON of this schema, a text, or an archive. Absent for a route without a body, which accepts `{}` too. */
  body?: Body;
  /** A request's body, for the reference. */
  example?: Body extends z.ZodType ? z.input<Body> : string;
  /** The status of a success; 200 if absent. */
  status?: number;
  /** The JSON of a success, or the type of another answer. */
  answer: z.ZodType | "text/event-stream" | BytesBody;
  /** For an answer that is, or may be, an event stream of Roost's: the JSON in the `data` of each event. */
  events?: z.ZodType;
  /** For an answer that may be a stream of OpenAI's events: one, for the reference. */
  streamExample?: () => string;
  /** Error codes of this operation, besides those of every route. */
  errors?: ErrorCode[];
  /** Its answers, and errors beside the API's own, are those of JSON-RPC. */
  protocol?: "json-rpc";
  /** False for routes that are repeated on purpose: asking for a code, verifying one. */
  idempotent?: false;
  /** The form of its errors, if it is not that of the API's other routes. */
  errorForm?: ErrorForm;
  /** The part of a success that is stored for its replay, if that is not all of it. */
  kept?: (result: never) => unknown;
  /**
   * The GET that returns a success again if it is too large to be stored. Its path has this route's parameters, and `id`,
   * which is a member of the success.
   */
  reread?: { by: Route; id: string };
}

/**
 * What a route does. A change that is one step once the body has been read is its `write`, in the commit. Everything
 * else is its `handle`: a read, a change that waits for something first, or one whose rule commits by itself.
 */
type Does<Params, Query, Body, Found, Who> =
  | { commit?: undefined; handle(call: Call<Params, Query, Body, Found, Who>): unknown }
  | { commit: CommitKind; handle(call: Call<Params, Query, Body, Found, Who> & Commits<Found>): unknown }
  | { commit: CommitKind; write(change: Change<Params, Body, Found, Who>): unknown };

export type RouteSpec<
  Path extends string,
  A extends Access,
  Query extends z.ZodType | undefined,
  Body extends z.ZodType | BytesBody | undefined,
  Found,
> = Described<Path, A, Query, Body> & {
  /**
   * Finds what the request is about. It runs before the body is read, so that a request for something that does not
   * exist is a 404 whatever its body; and again in the commit, since it may be gone by then. Throws `not_found`.
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
  Described<string, Access, z.ZodType | undefined, z.ZodType | BytesBody | undefined>,
  "kept" | "example"
> & {
  example?: unknown;
  kept?: (result: unknown) => unknown;
  find?: (asked: Asked<Record<string, string>, Caller | null>) => unknown;
  commit?: CommitKind;
  replay?: (call: AnyCall, runId: string) => unknown;
  handle(call: AnyCall): unknown;
};

/** One entry of the route table: where it is, who may use it, what it takes and returns, and what it does. */
export function route<
  Path extends string,
  A extends Access,
  Query extends z.ZodType | undefined = undefined,
  Body extends z.ZodType | BytesBody | undefined = undefined,
  Found = undefined,
>(spec: RouteSpec<Path, A, Query, Body, Found>): Route {
  const made = spec as unknown as Route & { write?: (change: AnyChange) => unknown };
  return made.write ? { ...made, handle: handleOf(made, made.write) } : made;
}

/** Turns a route's `write` into its `handle`. If the route can have no body, nothing is waited for. */
function handleOf(route: Pick<Route, "access" | "method" | "body" | "bound">, write: (change: AnyChange) => unknown) {
  const takesBody = bodyBytesOf(route) > 0;
  return ({ caller, params, request, body, commit }: AnyCall) => {
    const change = (body: unknown) => commit((found) => write({ caller, params, request, found, body }));
    return takesBody ? body().then(change) : change(undefined);
  };
}
