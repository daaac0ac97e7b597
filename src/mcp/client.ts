import { AsyncLocalStorage } from "node:async_hooks";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/client/validators/cf-worker";
import { isObject } from "../lib/is-object.ts";
import { OUTGOING } from "../limits/outgoing.ts";
import { createTokenBuckets } from "../limits/token-buckets.ts";
import { textOfAnswer } from "./answer.ts";
import { failureOf, STREAM_ENDED } from "./failure.ts";
import type { ToolDefinition } from "./schema.ts";
import { ServerError } from "./server-error.ts";
import { LISTEN, type ServerFetch } from "./server-fetch.ts";

const { deadlineMs, callMs } = OUTGOING.mcp;
/** docs/contract/api.md, MCP servers */
const REVISIONS = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"];
/** Pages of a list of tools, and tools of all of them: a few more than are kept, to say how many are left out. */
const MAX_PAGES = 32;
const MAX_LISTED = 1_024;
/** Requests of the server that a connection answers: nothing is offered to it, so these are pings, or are refused. */
const ANSWERED = { burst: 64, perSecond: 1 };
/** How often a stream of notices that has ended is opened again after a use, and the pause before each opening. */
const MAX_REOPENED = 30;
const REOPEN_MS = 2_000;
/** How long a server may take to end a session; nobody waits for that. */
const END_MS = 5_000;

/** A tool as the server lists it; nothing of it has been checked. */
export interface ListedTool {
  name?: unknown;
  description?: unknown;
  inputSchema?: unknown;
}

/** An open client of one server. Its methods throw `ServerError`. */
export interface McpClient {
  readonly protocolVersion: string | null;
  listTools(signal: AbortSignal): Promise<unknown[]>;
  callTool(tool: ToolDefinition, input: Record<string, unknown>, signal: AbortSignal): Promise<ToolAnswer>;
  /** Ends what is under way at once, and then has the server forget the session, if there is one. Rejects if it does not. */
  close(): Promise<void>;
}

export interface ToolAnswer {
  text: string;
  /** Whether the tool says that it has failed. */
  isError: boolean;
}

export interface ClientParts {
  url: URL;
  fetch: ServerFetch;
  /** The server says that its tools have changed. */
  onChanged(): void;
  /** The pause before a stream that has ended is opened again. */
  reopenMs?: number | undefined;
}

/** Connects by Streamable HTTP, in the newest revision that the server has. Throws `ServerError`. */
export async function openClient(parts: ClientParts, signal: AbortSignal): Promise<McpClient> {
  const { url, onChanged, reopenMs = REOPEN_MS } = parts;
  const client = new Client(
    { name: "roost", title: "Roost", version: "1" },
    {
      supportedProtocolVersions: REVISIONS,
      versionNegotiation: { mode: "auto", probe: { timeoutMs: deadlineMs } },
      // The default compiles a stranger's schema into code.
      jsonSchemaValidator: new CfWorkerJsonSchemaValidator(),
      // A server that asks for more is told no, and its call is not made again.
      inputRequired: { autoFulfill: false },
      listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged } },
    },
  );
  client.onerror = () => {};
  let reopened = 0;
  const transport: BoundedTransport = new BoundedTransport(url, {
    fetch: (address, init) => {
      const id = asking.getStore();
      return parts.fetch(address, init, (why) => id !== undefined && transport.leave(id, why.message));
    },
    reconnectionScheduler(reconnect, delayMs) {
      // That of a call is opened until its deadline.
      if (asking.getStore() === undefined && ++reopened > MAX_REOPENED) return;
      const timer = setTimeout(reconnect, Math.max(delayMs, reopenMs));
      return () => clearTimeout(timer);
    },
  });
  const within = { timeout: deadlineMs, signal };
  function inOurWords<T>(work: Promise<T>): Promise<T> {
    reopened = 0;
    return work.catch((thrown: unknown) => {
      throw failureOf(thrown);
    });
  }
  await inOurWords(client.connect(transport, within));
  const deliver = transport.onmessage;
  transport.onmessage = (message) => {
    const isOfCall = "result" in message && message.id === asking.getStore();
    deliver?.(isOfCall ? { ...message, result: wrapped(message.result) } : message);
  };
  return {
    protocolVersion: client.getNegotiatedProtocolVersion() ?? null,
    async listTools(listing) {
      if (!client.getServerCapabilities()?.tools) return [];
      const tools: unknown[] = [];
      const cursors = new Set<string>();
      let cursor: string | undefined;
      for (let pages = 0; pages < MAX_PAGES && tools.length < MAX_LISTED; pages++) {
        const params = cursor === undefined ? {} : { cursor };
        const asked = client.request({ method: "tools/list", params }, { ...within, signal: listing });
        const page = unwrapped(await inOurWords(asked));
        if (!Array.isArray(page.tools)) throw new ServerError("refused", "its list of tools is none");
        tools.push(...page.tools);
        cursor = typeof page.nextCursor === "string" ? page.nextCursor : undefined;
        // One that comes again would never end.
        if (cursor === undefined || cursors.has(cursor)) break;
        cursors.add(cursor);
      }
      return tools.slice(0, MAX_LISTED);
    },
    async callTool({ name, inputSchema }, input, calling) {
      const asked = client.callTool(
        { name, arguments: input },
        // Its definition alone, so that nothing is listed, checked or sent again on its way.
        {
          toolDefinition: { name, inputSchema: { ...inputSchema, type: "object" } },
          timeout: callMs,
          maxTotalTimeout: callMs,
          signal: calling,
        },
      );
      const result = unwrapped(await inOurWords(asked));
      return { text: textOfAnswer(result), isError: result.isError === true };
    },
    async close() {
      const { sessionId, protocolVersion } = transport;
      await client.close();
      if (sessionId === undefined) return;
      const headers = new Headers({ "Mcp-Session-Id": sessionId });
      if (protocolVersion !== undefined) headers.set("MCP-Protocol-Version", protocolVersion);
      const answer = await parts.fetch(url, { method: "DELETE", headers, signal: AbortSignal.timeout(END_MS) });
      await answer.body?.cancel();
    },
  };
}

const GIVEN = "given";

/**
 * A result that the package takes, with what was given inside: the package would refuse a whole list, or a whole answer, for
 * one part that is not as it should be. Each part is judged where it is read.
 */
const wrapped = (given: unknown) => ({
  ...{ resultType: "complete", tools: [], content: [], ttlMs: 0, cacheScope: "private" as const },
  _meta: { [GIVEN]: given },
});

/** Throws `ServerError` for a result that is only a question. */
function unwrapped({ _meta }: { _meta?: Record<string, unknown> | undefined }): Record<string, unknown> {
  const given = _meta?.[GIVEN];
  if (!isObject(given)) throw new ServerError("unknown", "its answer cannot be read");
  if (given.resultType != null && given.resultType !== "complete") {
    throw new ServerError("refused", "it asks for more, which Roost does not answer");
  }
  return given;
}

/** The id of the request for which something is done: also when its stream is opened again. */
const asking = new AsyncLocalStorage<string | number>();

/** Requests whose exchange ends with them, if they are cancelled. */
const MAX_REMEMBERED = 64;

/**
 * Answers what a server asks only so often; ends the exchange of a request that is cancelled; and knows that a
 * request has no answer once the stream has ended that should have brought it: the package's own would wait for its deadline.
 */
class BoundedTransport extends StreamableHTTPClientTransport {
  readonly #answered = createTokenBuckets(() => performance.now() / 1_000);
  /** By the ids of requests. */
  readonly #exchanges = new Map<unknown, AbortController>();

  override async send(...[message, options]: Parameters<StreamableHTTPClientTransport["send"]>): Promise<void> {
    if (Array.isArray(message)) return await super.send(message, options);
    if (!("method" in message)) {
      if (this.#answered.take("all", ANSWERED) === 0) await super.send(message, options);
      return;
    }
    if (!("id" in message)) {
      await super.send(message, options);
      if (message.method === "notifications/cancelled") this.#exchanges.get(message.params?.requestId)?.abort();
      return;
    }
    const { id } = message;
    const exchange = new AbortController();
    this.#exchanges.set(id, exchange);
    const [oldest] = this.#exchanges.keys();
    if (this.#exchanges.size > MAX_REMEMBERED) this.#exchanges.delete(oldest);
    const own = options?.requestSignal;
    const sent = {
      onRequestStreamEnd: () => this.#tellEnd(id, "the connection ended before its answer"),
      ...options,
      requestSignal: own === undefined ? exchange.signal : AbortSignal.any([own, exchange.signal]),
    };
    if (message.method === LISTEN) await super.send(message, sent);
    else await asking.run(id, () => super.send(message, sent));
  }

  /** Takes no answer to this request any more, and asks for none again. */
  leave(id: string | number, why: string): void {
    this.#tellEnd(id, why);
    this.#exchanges.get(id)?.abort();
  }

  #tellEnd(id: string | number, message: string): void {
    this.onmessage?.({ jsonrpc: "2.0", id, error: { code: STREAM_ENDED, message } });
  }
}
