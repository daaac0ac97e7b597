import { afterAll, expect, test } from "bun:test";
import { findOllama } from "../../src/models/ollama.ts";

let body = "";
const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response(body) });
afterAll(() => server.stop(true));
const url = `http://127.0.0.1:${server.port}`;

test("an Ollama is found with the names of its models, and none that a shell would take for more", async () => {
  body = JSON.stringify({ models: [{ name: "llama3.1:latest" }, { name: "x; rm -rf ~" }, null] });
  expect(await findOllama(url)).toEqual({ baseUrl: `${url}/v1`, models: ["llama3.1:latest"] });
});

test.each(["<html>", "[]", '{"data": []}', "x".repeat(2_000_000)])(
  "another server on the port is none",
  async (text) => {
    body = text;
    expect(await findOllama(url)).toBeNull();
  },
);

test("where nothing answers there is none", async () => {
  expect(await findOllama("http://127.0.0.1:1")).toBeNull();
});
