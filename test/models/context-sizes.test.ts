import { afterEach, expect, test } from "bun:test";
import { createContextSizes } from "../../src/models/openai/context-sizes.ts";

let stop: () => Promise<void> = async () => {};
afterEach(() => stop());

/** A model server that answers `/v1/models` like this; returns its base URL, and how often it was asked. */
function serve(answer: (request: Request) => Response | Promise<Response>) {
  const asked: { path: string; authorization: string | null }[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      asked.push({ path: new URL(request.url).pathname, authorization: request.headers.get("Authorization") });
      return answer(request);
    },
  });
  stop = () => server.stop(true);
  return { baseUrl: `http://127.0.0.1:${server.port}/v1/`, asked };
}
const list = (...data: unknown[]) => Response.json({ object: "list", data });

/** Waits longer for the list than the product, for a busy machine. */
const open = (options: Parameters<typeof createContextSizes>[0]) =>
  createContextSizes({ deadlineMs: 60_000, ...options });

async function read(sizes: ReturnType<typeof createContextSizes>, model: string): Promise<number | null> {
  sizes.of(model);
  await sizes.settled();
  return sizes.of(model);
}

test("each server's own word for the size is understood, and nonsense is none", async () => {
  const { baseUrl, asked } = serve(() =>
    list(
      { id: "vllm", max_model_len: 8_192 },
      { id: "router", context_length: 200_000 },
      { id: "llama", meta: { n_ctx: 4_096 } },
      { id: "silly", max_model_len: -1, context_length: "9", meta: [] },
      { id: 7 },
      null,
    ),
  );
  const sizes = open({ baseUrl, apiKey: "k" });
  expect(await read(sizes, "vllm")).toBe(8_192);
  expect(["router", "llama", "silly", "other"].map(sizes.of)).toEqual([200_000, 4_096, null, null]);
  expect(asked).toEqual([{ path: "/v1/models", authorization: "Bearer k" }]);
});

test("however large a context a server states, prompts are no longer than of a million tokens", async () => {
  const { baseUrl } = serve(() =>
    list({ id: "vast", context_length: 90_000_000 }, { id: "odd", max_model_len: 1e300 }),
  );
  const sizes = open({ baseUrl });
  expect(await read(sizes, "vast")).toBe(1_048_576);
  expect(sizes.of("odd")).toBeNull();
});

test("one request answers many questions, and after ten minutes the server is asked again", async () => {
  let size = 1_000;
  let now = 0;
  const { baseUrl, asked } = serve(() => list({ id: "m", max_model_len: size }));
  const sizes = open({ baseUrl, now: () => now });
  for (let count = 0; count < 10; count++) sizes.of("m");
  expect(await read(sizes, "m")).toBe(1_000);
  size = 2_000;
  now = 9 * 60_000;
  expect(await read(sizes, "m")).toBe(1_000);
  now = 10 * 60_000;
  expect(await read(sizes, "m")).toBe(2_000);
  expect(asked).toHaveLength(2);
});

test("a server that fails, redirects, babbles or sends too much keeps what was known, and is left alone for a minute", async () => {
  let now = 0;
  let answer = (): Response => list({ id: "m", max_model_len: 1_000 });
  const { baseUrl, asked } = serve(() => answer());
  const sizes = open({ baseUrl, now: () => now });
  expect(await read(sizes, "m")).toBe(1_000);
  now = 10 * 60_000;
  for (const broken of [
    () => new Response("no", { status: 500 }),
    () => new Response("<html>"),
    () => Response.json({ data: "none" }),
    () => Response.redirect("http://127.0.0.1:9/v1/models"),
    () => list({ id: "m", max_model_len: 2_000, more: "x".repeat(1024 * 1024) }),
  ]) {
    answer = broken;
    const before = asked.length;
    expect(await read(sizes, "m")).toBe(1_000);
    expect(await read(sizes, "m")).toBe(1_000);
    expect(asked).toHaveLength(before + 1);
    now += 60_000;
  }
});
