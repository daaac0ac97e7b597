import { afterAll, beforeAll, expect, test } from "bun:test";
import OpenAI from "openai";
import { type Surface, startSurface } from "./surface.ts";

let it: Surface;
beforeAll(async () => {
  it = await startSurface();
});
afterAll(() => it.stop());

const EMBEDDING = "local:all-minilm-l6-v2";

test("the models are the account's agents and the embedding model, each with its name", async () => {
  const list = await it.client.models.list();
  expect(list.data).toMatchObject([
    { id: it.agent, object: "model", owned_by: "test", name: "Ada" } as never,
    { id: EMBEDDING, object: "model" },
  ]);
  expect(await it.client.models.retrieve(it.agent)).toEqual(list.data[0] as never);
});

test("a list of more than a page continues after its last model", async () => {
  const person = await it.server.signUp();
  const { key } = (await person.ask("POST", "/v1/auth/keys", {})).body;
  const made: string[] = [];
  for (const name of ["one", "two"]) {
    const { instanceId } = (await person.ask("POST", "/v1/instances", { name })).body;
    const ids: string[] = [];
    for (const name of ["Ada", "Bo", "Cy"]) {
      ids.push((await person.ask("POST", `/v1/instances/${instanceId}/agents`, { name })).body.agentId);
    }
    made.unshift(...ids);
  }
  const seen: string[] = [];
  for (let after = "", more = true; more; ) {
    const query = `limit=2${after === "" ? "" : `&after=${after}`}`;
    const { body } = await it.server.ask("GET", `/v1/models?${query}`, { key });
    seen.push(...body.data.map(({ id }: { id: string }) => id));
    [after, more] = [seen.at(-1) ?? "", body.has_more];
  }
  expect(seen).toEqual([...made, EMBEDDING]);
  expect((await it.server.ask("GET", `/v1/models?after=${EMBEDDING}`, { key })).body.data).toEqual([]);
  const client = new OpenAI({ apiKey: key, baseURL: it.baseURL });
  expect((await client.models.list()).data.map(({ id }) => id)).toEqual(seen);
  expect((await it.server.ask("GET", `/v1/models?after=${it.agent}`, { key })).status).toBe(400);
});

test("the embedding model answers nobody, and the error says what it is for", async () => {
  const asked = { model: EMBEDDING, messages: [{ role: "user" as const, content: "hi" }] };
  expect(await it.client.chat.completions.create(asked).catch((error: unknown) => error)).toMatchObject({
    status: 404,
    param: "model",
    message: expect.stringContaining(`${EMBEDDING} is for embeddings`),
  });
});

test("embeddings: what means the same is near, in both encodings, with the tokens counted", async () => {
  const input = ["A cat sat on the mat.", "A feline rested on a rug.", "Stocks fell sharply on Monday."];
  const { data, usage, model } = await it.client.embeddings.create({ model: EMBEDDING, input });
  expect(data.map(({ index, embedding }) => [index, embedding.length])).toEqual([
    [0, 384],
    [1, 384],
    [2, 384],
  ]);
  const [cat = [], feline = [], stocks = []] = data.map(({ embedding }) => embedding);
  const nearness = (a: number[], b: number[]) => a.reduce((sum, value, at) => sum + value * (b[at] ?? 0), 0);
  expect(nearness(cat, feline)).toBeGreaterThan(nearness(cat, stocks) + 0.3);
  expect(model).toBe(EMBEDDING);
  expect(usage.prompt_tokens).toBeGreaterThan(15);
  const plain = await it.client.embeddings.create({
    model: EMBEDDING,
    input: input[0] ?? "",
    encoding_format: "float",
  });
  expect(plain.data[0]?.embedding).toEqual(cat);
});

test.each([
  ["dimensions", { dimensions: 64 }],
  ["input", { input: [] }],
  ["input", { input: "" }],
  ["input.0", { input: [1, 2, 3] }],
  ["input", { input: Array.from({ length: 257 }, () => "x"), encoding_format: "float" }],
  ["input", { input: Array.from({ length: 2_049 }, () => "x"), encoding_format: "base64" }],
  ["encoding_format", { encoding_format: "hex" }],
])("an embedding that cannot be made is 400 about %s", async (param, body) => {
  const asked = { model: EMBEDDING, input: "hi", ...body } as never;
  expect(await it.client.embeddings.create(asked).catch((error: unknown) => error)).toMatchObject({
    status: 400,
    param,
  });
});

test("an account's requests for embeddings wait in line, and the tenth at once is 429", async () => {
  const ask = () =>
    it.client.embeddings.create({ model: EMBEDDING, input: Array.from({ length: 64 }, (_, at) => `text ${at}`) });
  let refused: unknown[] = [];
  // On a busy machine the first may be done before the last arrives.
  while (refused.length === 0) {
    const settled = await Promise.allSettled(Array.from({ length: 14 }, ask));
    refused = settled.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
    for (const error of refused) expect(error).toBeInstanceOf(OpenAI.RateLimitError);
    expect(settled.length - refused.length).toBeGreaterThanOrEqual(9);
  }
});

test("libraries that send texts by the thousand, and say how many dimensions they expect, get their vectors", async () => {
  const input = Array.from({ length: 2_048 }, (_, at) => `${at}`);
  const { data } = await it.client.embeddings.create({ model: EMBEDDING, input, dimensions: 384 });
  expect(data.map(({ embedding }) => embedding.length)).toEqual(input.map(() => 384));
  expect(data.at(-1)?.index).toBe(2_047);
}, 600_000);
