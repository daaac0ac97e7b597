import type { paths } from "./schema.ts";

export type Method = "get" | "post" | "put" | "patch" | "delete";

/** The paths of the API that have this method. */
export type PathWith<M extends Method> = {
  [P in keyof paths]: paths[P] extends Record<M, object> ? P : never;
}[keyof paths];

export type Operation<M extends Method, P extends PathWith<M>> = paths[P][M];

type PathOf<O> = O extends { parameters: { path: infer Path } } ? Path : never;
type QueryOf<O> = O extends { parameters: { query?: infer Query } } ? NonNullable<Query> : never;
/** An archive is passed as its bytes. */
type Given<Content> = Content extends { "application/gzip": unknown }
  ? Blob | Uint8Array<ArrayBuffer>
  : Content[keyof Content];
type BodyOf<O> = O extends { requestBody?: { content: infer Content } } ? Given<Content> : never;

/** The same, with undefined for what may be left out. */
type Loose<T> = T extends object ? { [K in keyof T]: T[K] | (object extends Pick<T, K> ? undefined : never) } : T;

type Needed<Name extends string, T> = [T] extends [never] ? unknown : { [K in Name]: T };
type Possible<Name extends string, T> = [T] extends [never] ? unknown : { [K in Name]?: Loose<T> | undefined };
type Body<O> = O extends { requestBody: object } ? { body: Loose<BodyOf<O>> } : Possible<"body", BodyOf<O>>;

/** What a call of an operation takes. */
export type Input<O> = Needed<"path", PathOf<O>> & Possible<"query", QueryOf<O>> & Body<O>;

/** The parameters of a call: none if everything may be left out. */
export type Args<O> = object extends Input<O> ? [options?: Input<O> & CallOptions] : [options: Input<O> & CallOptions];

type Successes<R> = { [S in keyof R & (200 | 201 | 202)]: R[S] }[keyof R & (200 | 201 | 202)];
type ContentOf<R> = R extends { content: infer Content } ? Content : never;
type Parsed<C> = C extends { "application/json": infer Json }
  ? Json
  : C extends { "text/plain": infer Text }
    ? Text
    : never;

/** What a call of an operation resolves with: the JSON of a success, or a file's text. */
export type Answer<O> = O extends { responses: infer R } ? Parsed<ContentOf<Successes<R>>> : never;

/** An item of a list. */
export type ItemOf<O> = Answer<O> extends { data: (infer Item)[]; nextCursor: string | null } ? Item : never;

/** The lists of the API, which come in pages. */
export type ListPath = {
  [P in PathWith<"get">]: Answer<Operation<"get", P>> extends { data: unknown[]; nextCursor: string | null }
    ? P
    : never;
}[PathWith<"get">];

export interface CallOptions {
  signal?: AbortSignal | undefined;
  /** Besides the client's own: `Prefer`, `If-Match`, `X-PAYMENT` … */
  headers?: Record<string, string> | undefined;
  /** For a POST: a repetition within 24 hours gets the first answer again. A new one for each call if absent. */
  idempotencyKey?: string | undefined;
  /** Instead of the client's. */
  deadlineMs?: number | undefined;
  /** Instead of the client's. */
  retries?: number | undefined;
}
