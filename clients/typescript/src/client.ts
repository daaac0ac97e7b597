import { RoostError } from "./error.ts";
import { type AgentEvent, endsRun, follow, type RunEvent } from "./follow.ts";
import type { Answer, Args, CallOptions, ItemOf, ListPath, Method, Operation, PathWith } from "./operations.ts";
import { createRequests, newKey, type Request, type RoostOptions } from "./requests.ts";
import type { components, operations } from "./schema.ts";

export type Message = components["schemas"]["Message"];
export type MessageInput = Omit<
  operations["createAgentMessage"]["requestBody"]["content"]["application/json"],
  "stream"
>;

/** An agent by its ids; a record of it will do. */
export interface AgentIds {
  instanceId: string;
  agentId: string;
}

export interface FollowOptions {
  /** The `id` of the last event that is known; 0 for the oldest that is kept. Without it, from now on. */
  after?: number | undefined;
  /** Only of this conversation. */
  conversationId?: string | undefined;
  /** Only of this run, from its first to its last. */
  runId?: string | undefined;
  signal?: AbortSignal | undefined;
  /** Called when the stream is connected, and when its connection broke and another is tried. */
  connected?: ((is: boolean) => void) | undefined;
}

export type SendOptions = Pick<CallOptions, "signal" | "idempotencyKey"> & Pick<FollowOptions, "connected">;

/** An answer as far as it is written. */
export interface Written {
  /** What has come since the last time. */
  delta: string;
  /** All of it. It begins anew if the host was restarted and the agent had to. */
  text: string;
}

type Call<M extends Method> = <P extends PathWith<M>>(
  path: P,
  ...options: Args<Operation<M, P>>
) => Promise<Answer<Operation<M, P>>>;

/** A client of one server, with one credential. Every method throws `RoostError`, or its signal's reason. */
export interface Roost {
  get: Call<"get">;
  post: Call<"post">;
  put: Call<"put">;
  patch: Call<"patch">;
  delete: Call<"delete">;
  /** The answer unread, for its status and headers: a file's `ETag`. */
  open<M extends Method, P extends PathWith<M>>(
    method: M,
    path: P,
    ...options: Args<Operation<M, P>>
  ): Promise<Response>;
  /** The version of the server, whoever asks. */
  version(): Promise<string>;
  /** Every item of a list, a page at a time as it is read. */
  all<P extends ListPath>(path: P, ...options: Args<Operation<"get", P>>): AsyncGenerator<ItemOf<Operation<"get", P>>>;
  /** What happens to an agent, also over broken connections: no event is lost, and none comes twice. */
  events(agent: AgentIds, options?: FollowOptions): AsyncGenerator<AgentEvent, undefined>;
  /** Sends a message, which is stored once however often it has to be sent, and yields its run's events to the last. */
  send(agent: AgentIds, message: MessageInput, options?: SendOptions): AsyncGenerator<RunEvent, undefined>;
  /** Sends a message and yields its answer while it is written. Returns the agent's message. Throws if the run fails. */
  answer(agent: AgentIds, message: MessageInput, options?: SendOptions): AsyncGenerator<Written, Message>;
  /** Sends a message and resolves with the agent's. Throws if the run fails. */
  ask(agent: AgentIds, message: MessageInput, options?: SendOptions): Promise<Message>;
}

const AGENT = "/v1/instances/{instanceId}/agents/{agentId}";
const PAGE = 100;
/** A million items: no list of Roost's is longer. */
const MAX_PAGES = 10_000;

interface Page {
  data: unknown[];
  nextCursor: string | null;
}

/** What `Args` is, to whoever does not know which operation it is for. */
type AnyOptions = CallOptions & { path?: Record<string, string>; query?: Record<string, unknown>; body?: unknown };

export function createRoost(options: RoostOptions = {}): Roost {
  const requests = createRequests(options);
  const requestOf = (method: Method, path: string, { path: params, ...rest }: AnyOptions = {}): Request => ({
    method,
    path,
    params,
    ...rest,
  });
  const caller = (method: Method) =>
    ((path: string, given?: AnyOptions) => requests.call(requestOf(method, path, given))) as Call<never>;

  /** For an answer that is JSON, but not Roost's. */
  const unexpected = (what: string) =>
    new RoostError("unexpected_answer", `${requests.server} answered ${what}`, { server: requests.server });

  const openEvents = (agent: AgentIds, { runId, conversationId, signal }: FollowOptions, after: number | null) => {
    const query = { runId, conversationId, after: after ?? undefined };
    return requests.open({ method: "get", path: `${AGENT}/events`, params: { ...agent }, query, signal });
  };

  async function* all(path: string, { query, ...rest }: AnyOptions = {}): AsyncGenerator<unknown> {
    let after: string | undefined;
    for (let pages = 0; pages < MAX_PAGES; pages++) {
      const asked = { ...rest, query: { limit: PAGE, ...query, ...(after !== undefined && { after }) } };
      const page = (await requests.call(requestOf("get", path, asked))) as Partial<Page> | null;
      if (!Array.isArray(page?.data)) throw unexpected("without a list");
      yield* page.data;
      // A cursor that does not advance would loop forever.
      if (typeof page.nextCursor !== "string" || page.nextCursor === after) return;
      after = page.nextCursor;
    }
    throw unexpected("with an endless list");
  }

  async function* events(agent: AgentIds, given: FollowOptions = {}): AsyncGenerator<AgentEvent, undefined> {
    const { after = null, runId, signal, connected } = given;
    const open = (last: number | null) => openEvents(agent, given, last);
    for await (const event of follow(requests, open, after, signal, connected)) {
      yield event;
      if (runId !== undefined && endsRun(event)) return;
    }
  }

  async function* send(
    agent: AgentIds,
    message: MessageInput,
    { signal, connected, idempotencyKey = newKey() }: SendOptions = {},
  ): AsyncGenerator<RunEvent, undefined> {
    let runId: string | undefined;
    const open = (after: number | null) =>
      after === null
        ? requests.open({
            method: "post",
            path: `${AGENT}/messages`,
            params: { ...agent },
            body: { ...message, stream: true },
            idempotencyKey,
            signal,
          })
        : openEvents(agent, { runId, signal }, after);
    for await (const event of follow(requests, open, null, signal, connected)) {
      if (!("runId" in event)) continue;
      runId ??= event.runId;
      yield event;
      if (endsRun(event)) return;
    }
  }

  async function* answer(
    agent: AgentIds,
    message: MessageInput,
    given?: SendOptions,
  ): AsyncGenerator<Written, Message> {
    let text = "";
    let complete: Message | null = null;
    for await (const event of send(agent, message, given)) {
      if (event.type === "run.restarted") text = "";
      else if (event.type === "message.completed") complete = event.message;
      else if (event.type === "run.failed")
        throw new RoostError(event.error.code as "model_error", event.error.message);
      else if (event.type === "message.delta") {
        text += event.delta;
        yield { delta: event.delta, text };
      }
    }
    if (complete === null) throw new RoostError("cancelled", "the run was cancelled before it had answered");
    return complete;
  }

  return {
    get: caller("get"),
    post: caller("post"),
    put: caller("put"),
    patch: caller("patch"),
    delete: caller("delete"),
    open: (method, path, ...[given]) => requests.open(requestOf(method, path, given as AnyOptions)),
    async version() {
      const health = (await requests.call({ method: "get", path: "/healthz" })) as { version?: unknown } | null;
      if (typeof health?.version !== "string") throw unexpected("without a version");
      return health.version;
    },
    all: all as Roost["all"],
    events,
    send,
    answer,
    async ask(agent, message, given) {
      const written = answer(agent, message, given);
      for (;;) {
        const { done, value } = await written.next();
        if (done) return value;
      }
    },
  };
}
