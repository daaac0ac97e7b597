import { expect, test } from "bun:test";
import { startTestServer } from "../support/test-server.ts";

test("once a change was refused because the disk is full, the host says that it is not ready, and why", async () => {
  const server = await startTestServer();
  const person = await server.signUp("ada@example.com");
  expect(await server.ask("GET", "/readyz")).toMatchObject({ status: 200, body: { status: "ready" } });

  const { sqlite } = server.foundation.store;
  const pages = sqlite.query("PRAGMA page_count").values()[0]?.[0];
  sqlite.run(`PRAGMA max_page_count = ${pages}`);
  let status = 201;
  while (status === 201) ({ status } = await person.ask("POST", "/v1/auth/keys", { name: "x".repeat(60) }));
  expect(status).toBe(503);
  expect(await server.ask("GET", "/readyz")).toMatchObject({
    status: 503,
    body: { status: "read_only", reason: "the host's disk is full" },
  });
  expect((await server.ask("GET", "/healthz")).status).toBe(200);
  await server.stop();
});
