import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { startTestServer, type TestServer } from "../support/test-server.ts";

const OWN = `---
name: own
description: Asks the API.
metadata:
  requires-secrets: "TOKEN"
  requires-hosts: "api.example.com"
---
Ask it.
`;

async function withServer(use: (server: TestServer) => Promise<void>): Promise<void> {
  const server = await startTestServer();
  try {
    await use(server);
  } finally {
    await server.stop();
  }
}

test("a skill's missing secret is missing until it is stored, also after a restart, and no file contains its value", () =>
  withServer(async (server) => {
    const person = await server.signUp();
    const { body: instance } = await person.ask("POST", "/v1/instances", { name: "one" });
    const path = `/v1/instances/${instance.instanceId}`;
    const installed = await person.ask("POST", `${path}/skills`, { files: { "SKILL.md": OWN } });
    expect(installed.body.missingSecrets).toEqual(["TOKEN"]);
    await person.ask(
      "POST",
      `${path}/secrets`,
      { key: "TOKEN", value: "correct-horse-battery" },
      { "Idempotency-Key": "k" },
    );
    await server.restart();
    expect((await person.ask("GET", `${path}/skills`)).body.data).toEqual([{ ...installed.body, missingSecrets: [] }]);
    expect((await person.ask("GET", `${path}/secrets`)).body.data).toMatchObject([{ key: "TOKEN" }]);
    const files = readdirSync(server.dataDir, { recursive: true, withFileTypes: true }).filter((entry) =>
      entry.isFile(),
    );
    expect(files.map(({ name }) => name)).toContain("master.key");
    for (const { parentPath, name } of files) {
      expect(readFileSync(join(parentPath, name)).includes("correct-horse-battery")).toBe(false);
    }
  }));

test("a stranger and a key limited to another instance see neither skills nor secrets: 404", () =>
  withServer(async (server) => {
    const [owner, stranger] = [await server.signUp(), await server.signUp()];
    const { body: mine } = await owner.ask("POST", "/v1/instances", { name: "one" });
    const { body: other } = await owner.ask("POST", "/v1/instances", { name: "two" });
    const limited = (await owner.ask("POST", "/v1/auth/keys", { instanceId: other.instanceId })).body.key;
    for (const room of ["skills", "secrets"]) {
      const path = `/v1/instances/${mine.instanceId}/${room}`;
      for (const method of ["GET", "POST"]) {
        expect((await stranger.ask(method, path)).status).toBe(404);
        expect((await server.ask(method, path, { key: limited })).status).toBe(404);
      }
      expect((await stranger.ask("DELETE", `${path}/a`)).status).toBe(404);
      const own = await server.ask("GET", `/v1/instances/${other.instanceId}/${room}`, { key: limited });
      expect(own.status).toBe(200);
    }
  }));
