import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Appliance, startAppliance } from "../support/appliance.ts";

const OWN = `---
name: own
description: Asks the API.
metadata:
  requires-secrets: "TOKEN"
  requires-hosts: "api.example.com"
---
Ask it.
`;

async function withAppliance(use: (appliance: Appliance) => Promise<void>): Promise<void> {
  const appliance = await startAppliance();
  try {
    await use(appliance);
  } finally {
    await appliance.stop();
  }
}

test("a skill's missing secret is missing until it is stored, across a restart, and no file holds its value", () =>
  withAppliance(async (appliance) => {
    const person = await appliance.signUp();
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
    await appliance.restart();
    expect((await person.ask("GET", `${path}/skills`)).body.data).toEqual([{ ...installed.body, missingSecrets: [] }]);
    expect((await person.ask("GET", `${path}/secrets`)).body.data).toMatchObject([{ key: "TOKEN" }]);
    const files = readdirSync(appliance.dataDir, { recursive: true, withFileTypes: true }).filter((entry) =>
      entry.isFile(),
    );
    expect(files.map(({ name }) => name)).toContain("master.key");
    for (const { parentPath, name } of files) {
      expect(readFileSync(join(parentPath, name)).includes("correct-horse-battery")).toBe(false);
    }
  }));

test("a stranger and a key limited to another instance find neither skills nor secrets: 404", () =>
  withAppliance(async (appliance) => {
    const [owner, stranger] = [await appliance.signUp(), await appliance.signUp()];
    const { body: mine } = await owner.ask("POST", "/v1/instances", { name: "one" });
    const { body: other } = await owner.ask("POST", "/v1/instances", { name: "two" });
    const limited = (await owner.ask("POST", "/v1/auth/keys", { instanceId: other.instanceId })).body.key;
    for (const room of ["skills", "secrets"]) {
      const path = `/v1/instances/${mine.instanceId}/${room}`;
      for (const method of ["GET", "POST"]) {
        expect((await stranger.ask(method, path)).status).toBe(404);
        expect((await appliance.ask(method, path, { key: limited })).status).toBe(404);
      }
      expect((await stranger.ask("DELETE", `${path}/a`)).status).toBe(404);
      const own = await appliance.ask("GET", `/v1/instances/${other.instanceId}/${room}`, { key: limited });
      expect(own.status).toBe(200);
    }
  }));
