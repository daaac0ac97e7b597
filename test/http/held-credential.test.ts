import { expect, test } from "bun:test";
import { startTestServer } from "../support/test-server.ts";
import { hold } from "./held-request.ts";

test("a request whose body is held back until its key is revoked is refused, and does nothing", async () => {
  const server = await startTestServer();
  await using _ = { [Symbol.asyncDispose]: () => server.stop() };
  const { ask } = await server.signUp();
  const { key, keyId } = (await ask("POST", "/v1/auth/keys", { name: "stolen" })).body;
  const held = await hold(server.url, "POST", "/v1/instances", '{"name":"mine"}', { "X-API-Key": key });
  expect((await ask("DELETE", `/v1/auth/keys/${keyId}`)).status).toBe(200);
  expect(await held.release()).toEqual({ status: 401 });
  expect((await ask("GET", "/v1/instances")).body.data).toEqual([]);
});
