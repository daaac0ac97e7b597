/** A proxy in front of a node, which can fail instead of it. */
export interface RpcProxy {
  readonly url: string;
  /** Calls so far of one method, or of all. */
  calls(method?: string): number;
  /** Forwards everything, as it does at first. */
  pass(): void;
  /** Accepts requests and never answers; those that hang do so until their client disconnects. */
  hang(): void;
  /** Answers 500. */
  refuse(): void;
  /** Answers with this, whatever the request. */
  answer(make: (call: RpcCall) => Response | Promise<Response>): void;
  /** Forwards what `rewrite` makes of the node's result. If it throws, the answer is a JSON-RPC error. */
  lie(rewrite: (result: unknown, call: RpcCall) => unknown): void;
  /** Resolves when this many clients have disconnected before they got an answer. */
  left(count: number): Promise<void>;
  stop(): Promise<void>;
}

export interface RpcCall {
  id: unknown;
  method: string;
  params: unknown[];
  /** Aborted when its client has given it up. */
  signal: AbortSignal;
}

type Mode = (call: RpcCall, body: string) => Response | Promise<Response>;

/** A JSON-RPC proxy on a free port of the loopback, in front of the node at `target`. It does not accept batches. */
export function startRpcProxy(target: string): RpcProxy {
  const counted = new Map<string, number>();
  let left = 0;
  const waiting: { count: number; resolve: () => void }[] = [];

  const forward = (body: string) =>
    fetch(target, { method: "POST", headers: { "Content-Type": "application/json" }, body });
  const pass: Mode = async (_call, body) => new Response(await (await forward(body)).text(), JSON_ANSWER);
  let mode: Mode = pass;

  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    development: false,
    async fetch(request) {
      const body = await request.text();
      const call: RpcCall = { ...JSON.parse(body), signal: request.signal };
      counted.set(call.method, (counted.get(call.method) ?? 0) + 1);
      const leave = () => {
        left += 1;
        for (const { count, resolve } of waiting) if (left >= count) resolve();
      };
      if (request.signal.aborted) leave();
      else request.signal.addEventListener("abort", leave);
      return await mode(call, body);
    },
  });

  return {
    url: `http://127.0.0.1:${server.port}`,
    calls: (method) =>
      method === undefined ? counted.values().reduce((sum, one) => sum + one, 0) : (counted.get(method) ?? 0),
    pass() {
      mode = pass;
    },
    hang() {
      mode = () => new Promise(() => {});
    },
    refuse() {
      mode = () => new Response("out of order", { status: 500 });
    },
    answer(make) {
      mode = (call) => make(call);
    },
    lie(rewrite) {
      mode = async (call, body) => {
        const { id, result, error } = (await (await forward(body)).json()) as {
          id: unknown;
          result?: unknown;
          error?: unknown;
        };
        if (error !== undefined) return Response.json({ jsonrpc: "2.0", id, error });
        try {
          return Response.json({ jsonrpc: "2.0", id, result: rewrite(result, call) });
        } catch (thrown) {
          return Response.json({ jsonrpc: "2.0", id, error: { code: -32000, message: String(thrown) } });
        }
      };
    },
    left(count) {
      if (left >= count) return Promise.resolve();
      return new Promise((resolve) => waiting.push({ count, resolve }));
    },
    stop: () => server.stop(true),
  };
}

const JSON_ANSWER = { headers: { "Content-Type": "application/json" } };
