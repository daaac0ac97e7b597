/**
 * A model server, in a process of its own, that takes as much as it may: each answer reports a token for every three
 * characters of its prompt, and all of the tokens that it was allowed. `GET /taken` says how much that is of all requests
 * that have arrived. Messages that say `SLOWLY` are answered from `GET /release` until `GET /hold`, which it begins with.
 * `bun test/usage/greedy-model.ts` prints its URL.
 */
export interface Taken {
  tokens: number;
  calls: number;
  /** Requests at the same time, at most. */
  atOnce: number;
}

/** So that calls are in progress while others begin. */
const ANSWER_MS = 150;
export const SLOWLY = "Take your time";

if (import.meta.main) {
  const taken: Taken = { tokens: 0, calls: 0, atOnce: 0 };
  let now = 0;
  let released = Promise.withResolvers<void>();
  const frame = (chunk: object) => `data: ${JSON.stringify(chunk)}\n\n`;
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      if (pathname === "/taken") return Response.json(taken);
      if (pathname === "/release") released.resolve();
      if (pathname === "/hold") released = Promise.withResolvers<void>();
      if (request.method === "GET") return Response.json({ data: [] });
      const body = (await request.json()) as { messages: { content: string }[]; tools?: unknown; max_tokens: number };
      const prompt = JSON.stringify(body.messages.map(({ content }) => content)).length;
      const promptTokens = Math.ceil((prompt + JSON.stringify(body.tools ?? []).length) / 3);
      taken.calls++;
      taken.tokens += promptTokens + body.max_tokens;
      taken.atOnce = Math.max(taken.atOnce, ++now);
      await (body.messages.at(-1)?.content === SLOWLY ? released.promise : Bun.sleep(ANSWER_MS));
      now--;
      const usage = { prompt_tokens: promptTokens, completion_tokens: body.max_tokens };
      const choices = [{ index: 0, delta: { content: "all of it" }, finish_reason: "stop" }];
      return new Response(`${frame({ choices })}${frame({ choices: [], usage })}data: [DONE]\n\n`, {
        headers: { "Content-Type": "text/event-stream" },
      });
    },
  });
  console.log(`http://127.0.0.1:${server.port}`);
}
