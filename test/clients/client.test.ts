import { afterAll, beforeAll, expect, test } from "bun:test";
import { createRoost, type RoostError, type RoostOptions } from "../../clients/typescript/src/index.ts";
import { startMockModelServer } from "../support/mock-model-server.ts";
import { type Person, startTestServer } from "../support/test-server.ts";

const tokens = Array.from({ length: 12 }, (_, index) => `word${index} `);
const mock = startMockModelServer({ record: false, answer: { kind: "text", tokens } });
const server = await startTestServer({ ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: mock.url });
let owner: Person;
let agent: { instanceId: string; agentId: string };
beforeAll(async () => {
  owner = await server.signUp();
  const { instanceId } = await clientWith().post("/v1/instances", { body: { name: "home" } });
  agent = await clientWith().post("/v1/instances/{instanceId}/agents", { path: { instanceId }, body: { name: "Ada" } });
});
afterAll(async () => {
  await server.stop();
  await mock.stop();
});

const clientWith = (options: RoostOptions = {}) =>
  createRoost({ url: server.url, credential: owner.token, ...options });

/** What this rejects with. */
const errorOf = (work: Promise<unknown>): Promise<RoostError> =>
  work.then(
    () => Promise.reject(new Error("it succeeded")),
    (error) => error,
  );

/** A network on which these requests, counted from 0, are carried out but not answered. */
function losing(...lost: number[]) {
  const sent: string[] = [];
  const send = async (url: string, init: RequestInit): Promise<Response> => {
    const answer = await fetch(url, init);
    if (lost.includes(sent.push(`${init.method} ${new URL(url).pathname}`) - 1)) throw new TypeError("no answer");
    return answer;
  };
  return { sent, fetch: send };
}

test("an answer that was lost is asked for again, and what it did is done once", async () => {
  const { sent, fetch } = losing(0);
  const { instanceId } = await clientWith({ fetch }).post("/v1/instances", { body: { name: "once" } });
  expect(sent).toEqual(["POST /v1/instances", "POST /v1/instances"]);
  const named = await Array.fromAsync(clientWith().all("/v1/instances"));
  expect(named.filter(({ name }) => name === "once").map((one) => one.instanceId)).toEqual([instanceId]);
});

test("what could be done twice is sent once", async () => {
  const { sent, fetch } = losing(0, 1, 2);
  const roost = clientWith({ fetch, credential: null });
  const body = { email: owner.email };
  expect(await errorOf(roost.post("/v1/auth/send-code", { body }))).toMatchObject({ code: "unreachable", status: 0 });
  const { instanceId } = agent;
  const change = clientWith({ fetch }).patch("/v1/instances/{instanceId}", {
    path: { instanceId },
    body: { name: "home" },
  });
  expect(await errorOf(change)).toMatchObject({ code: "unreachable" });
  expect(sent).toHaveLength(2);
});

test("a refusal that says when to come back is followed, for any method", async () => {
  let refused = 0;
  const roost = clientWith({
    async fetch(url, init) {
      if (refused++ > 0) return fetch(url, init);
      return Response.json(
        { error: { code: "rate_limited", message: "wait" } },
        { status: 429, headers: { "Retry-After": "0" } },
      );
    },
  });
  const { instanceId } = agent;
  const changed = await roost.patch("/v1/instances/{instanceId}", { path: { instanceId }, body: { name: "house" } });
  expect(changed.name).toBe("house");
});

test("a message to a stopped instance is refused at once: no waiting starts it", async () => {
  const { sent, fetch } = losing();
  const roost = clientWith({ fetch });
  const { instanceId } = await roost.post("/v1/instances", { body: { name: "stopped" } });
  const path = { instanceId };
  const { agentId } = await roost.post("/v1/instances/{instanceId}/agents", { path, body: { name: "Bea" } });
  await roost.post("/v1/instances/{instanceId}/stop", { path });
  const before = sent.length;
  const message = roost.post("/v1/instances/{instanceId}/agents/{agentId}/messages", {
    path: { instanceId, agentId },
    body: { message: "Hello" },
  });
  expect(await errorOf(message)).toMatchObject({ code: "instance_not_ready", status: 503 });
  expect(sent.length - before).toBe(1);
});

test("an error of the server has its code, status, message and request id", async () => {
  const instanceId = agent.instanceId.replaceAll(/[0-9a-f]{4}$/g, "0000");
  const error = await errorOf(clientWith().get("/v1/instances/{instanceId}", { path: { instanceId } }));
  expect(error).toMatchObject({ name: "RoostError", code: "not_found", status: 404, message: "instance not found" });
  expect(error.requestId).toMatch(/./);
  const wrong = await errorOf(clientWith({ credential: "rst_live_nonsense" }).get("/v1/auth/me"));
  expect(wrong).toMatchObject({ code: "unauthorized", status: 401, server: server.url.replace(/\/$/, "") });
});

test("what has to be paid is in the error's details", async () => {
  const poor = await server.signUp(undefined, "0.00");
  const body = { name: "mine" };
  const error = await errorOf(clientWith({ credential: poor.token }).post("/v1/instances", { body }));
  expect(error.code).toBe("payment_required");
  expect(error.details.x402?.amount).toMatch(/^\d+\.\d{6}$/);
});

test("a list is read a page at a time, as far as it is looked at", async () => {
  const { sent, fetch } = losing();
  const roost = clientWith({ fetch });
  const { instanceId } = await roost.post("/v1/instances", { body: { name: "many" } });
  const path = { instanceId };
  for (const name of ["A", "B", "C", "D", "E"])
    await roost.post("/v1/instances/{instanceId}/agents", { path, body: { name } });
  sent.length = 0;
  const names: string[] = [];
  const agents = roost.all("/v1/instances/{instanceId}/agents", { path, query: { limit: 2 } });
  for await (const { name } of agents) if (names.push(name) === 3) break;
  expect([names, sent.length]).toEqual([["A", "B", "C"], 2]);
  expect(
    await Array.fromAsync(roost.all("/v1/instances/{instanceId}/agents", { path, query: { limit: 2 } })),
  ).toHaveLength(5);
});

test.each(["../messages", "../../agt_0", "notes/../../x", ".", ".."])(
  "a file's name with dots for a folder, %j, is sent nowhere",
  async (file) => {
    const { sent, fetch } = losing();
    const path = "/v1/instances/{instanceId}/agents/{agentId}/files/{file}";
    const error = await errorOf(clientWith({ fetch }).delete(path, { path: { ...agent, file } }));
    expect([error.code, error.message]).toEqual(["invalid_request", expect.stringContaining("path.file: expected")]);
    expect(sent).toEqual([]);
  },
);

test("a file's name is sent as it is, folders and all, and its text and version come back", async () => {
  const path = { ...agent, file: "notes/to day.md" };
  const file = "/v1/instances/{instanceId}/agents/{agentId}/files/{file}";
  await clientWith().put(file, { path, body: "# Trains\n" });
  expect(await clientWith().get(file, { path })).toBe("# Trains\n");
  const etag = (await clientWith().open("get", file, { path })).headers.get("etag") ?? "";
  const stale = clientWith().put(file, { path, body: "", headers: { "If-Match": '"another"' } });
  expect((await errorOf(stale)).code).toBe("precondition_failed");
  await clientWith().put(file, { path, body: "new", headers: { "If-Match": etag } });
});

/** A network that breaks each of the first streams after this many events. */
function breaking(streams: number, events: number) {
  const asked: string[] = [];
  const send = async (url: string, init: RequestInit): Promise<Response> => {
    const answer = await fetch(url, init);
    if (!answer.headers.get("content-type")?.startsWith("text/event-stream") || answer.body === null) return answer;
    const { pathname, searchParams } = new URL(url);
    asked.push(`${init.method} ${pathname.split("/").at(-1)} ${searchParams.has("after")}`);
    if (asked.length > streams) return answer;
    let left = events;
    // The server asks for a wait of two seconds: nothing is to be waited for here.
    const cut = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        const frames = new TextDecoder()
          .decode(chunk)
          .replace("retry: 2000", "retry: 0")
          .split(/(?<=\n\n)/);
        for (const frame of frames) {
          controller.enqueue(new TextEncoder().encode(frame));
          if (frame.startsWith("id:") && --left === 0) return controller.terminate();
        }
      },
    });
    return new Response(answer.body.pipeThrough(cut), answer);
  };
  return { asked, fetch: send };
}

test("an answer over broken connections has every word once, and its message is stored once", async () => {
  const { asked, fetch } = breaking(3, 1);
  const roost = clientWith({ fetch });
  const written = roost.answer(agent, { message: "Count" });
  const deltas: string[] = [];
  let step = await written.next();
  for (; !step.done; step = await written.next()) deltas.push(step.value.delta);
  expect(deltas.join("").trim()).toBe(tokens.join("").trim());
  expect(step.value.message.trim()).toBe(tokens.join("").trim());
  expect(asked).toEqual(["POST messages false", ...Array(3).fill("GET events true")]);
  const path = "/v1/instances/{instanceId}/agents/{agentId}/messages";
  const stored = await Array.fromAsync(roost.all(path, { path: agent }));
  expect(stored.filter(({ message }) => message === "Count")).toHaveLength(1);
});

test("who follows a stream is told when it is connected, and when its connection broke", async () => {
  const { runId } = await clientWith().ask(agent, { message: "Hello" });
  const told: boolean[] = [];
  const connected = (is: boolean) => told.push(is);
  const roost = clientWith({ fetch: breaking(2, 1).fetch });
  await Array.fromAsync(roost.events(agent, { runId, connected }));
  expect(told).toEqual([true, false, true, false, true]);
});

test("what happens while a stream breaks before its first event comes with the next connection", async () => {
  let streams = 0;
  const roost = clientWith({
    async fetch(url, init) {
      const answer = await fetch(url, init);
      if (!answer.headers.get("content-type")?.startsWith("text/event-stream") || streams++ > 0) return answer;
      await answer.body?.cancel();
      await clientWith().ask(agent, { message: "Meanwhile" });
      return new Response("retry: 0\n\n", answer);
    },
  });
  const leaving = new AbortController();
  const { value: first } = await roost.events(agent, { signal: leaving.signal }).next();
  leaving.abort();
  expect(first).toMatchObject({ type: "run.queued", agentId: agent.agentId });
  const path = "/v1/instances/{instanceId}/agents/{agentId}/messages";
  const [newest] = (await clientWith().get(path, { path: agent, query: { order: "desc", limit: 1 } })).data;
  expect(first).toMatchObject({ runId: newest?.runId });
});

test("the events of a run are those of that run, from its first to its last", async () => {
  const { runId } = await clientWith().ask(agent, { message: "Hello" });
  const events = await Array.fromAsync(clientWith().events(agent, { runId }));
  const types = new Set<string>(events.map(({ type }) => type));
  expect([...types]).toEqual(["run.queued", "run.started", "message.delta", "message.completed", "run.completed"]);
  expect(events.every((event) => "runId" in event && event.runId === runId)).toBe(true);
});

test("a signal ends a call and a stream with its reason, at once", async () => {
  const leaving = new AbortController();
  const events = clientWith().events(agent, { after: 0, signal: leaving.signal });
  await events.next();
  const reason = new Error("left");
  leaving.abort(reason);
  expect(await errorOf(Array.fromAsync(events))).toBe(reason as RoostError);
  expect(await errorOf(clientWith().get("/v1/auth/me", { signal: leaving.signal }))).toBe(reason as RoostError);
});

/** A server that answers every request like this. */
async function withServer<T>(
  answer: () => Response | Promise<Response>,
  look: (url: string) => Promise<T>,
): Promise<T> {
  const other = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: answer });
  try {
    return await look(`http://127.0.0.1:${other.port}`);
  } finally {
    await other.stop(true);
  }
}

const failureAt = (url: string, options: RoostOptions = {}) =>
  errorOf(createRoost({ url, credential: "rst_live_secret", retries: 0, ...options }).get("/v1/auth/me"));

test("what is no answer of Roost's is told apart", async () => {
  const never = new Promise<Response>(() => undefined);
  expect(
    await withServer(
      () => never,
      (url) => failureAt(url, { deadlineMs: 20 }),
    ),
  ).toMatchObject({ code: "timeout" });
  expect(await withServer(() => new Response("<html>"), failureAt)).toMatchObject({ code: "unexpected_answer" });
  const gone = () => new Response("gone", { status: 404 });
  expect(await withServer(gone, failureAt)).toMatchObject({ code: "unexpected_answer", status: 404 });
  const down = () => new Response("bad gateway", { status: 502 });
  expect(await withServer(down, failureAt)).toMatchObject({ code: "unreachable", status: 502 });
  const long = () => Response.json({ text: "x".repeat(2_000) });
  expect(await withServer(long, (url) => failureAt(url, { maxAnswerBytes: 1_000 }))).toMatchObject({
    message: expect.stringContaining("answered too much"),
  });
});

test("a redirect is not followed: the credential stays with the server that it is for", async () => {
  let asked = 0;
  const follow = () => {
    asked++;
    return Response.json({});
  };
  const error = await withServer(follow, (other) => withServer(() => Response.redirect(other), failureAt));
  expect([error.code, asked]).toEqual(["redirected", 0]);
});

test("a run that fails throws its error, and one that begins again its text anew", async () => {
  const ids = {
    agentId: agent.agentId,
    runId: "run_x",
    conversationId: "conv_x",
    createdAt: "2026-11-22T10:00:00.000Z",
  };
  const stream = (...events: object[]) =>
    new Response(events.map((event, id) => `data: ${JSON.stringify({ id, ...ids, ...event })}\n\n`).join(""), {
      headers: { "Content-Type": "text/event-stream" },
    });
  const said = (delta: string) => ({ type: "message.delta", delta });
  const again = () =>
    stream(said("Hel"), { type: "run.restarted" }, said("Hallo"), {
      type: "run.failed",
      error: { code: "model_error", message: "the model is away" },
    });
  const texts: string[] = [];
  const error = await withServer(again, (url) =>
    errorOf(
      (async () => {
        for await (const { text } of createRoost({ url }).answer(agent, { message: "Hello" })) texts.push(text);
      })(),
    ),
  );
  expect(texts).toEqual(["Hel", "Hallo"]);
  expect(error).toMatchObject({ code: "model_error", message: "the model is away" });
});
