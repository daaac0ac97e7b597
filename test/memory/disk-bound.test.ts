import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Person, startTestServer, type TestServer } from "../support/test-server.ts";

const FILES = 40;

let server: TestServer;
let ada: Person;
beforeAll(async () => {
  server = await startTestServer({ ROOST_MAX_WORKSPACE_BYTES: "400000" });
  ada = await server.signUp();
});
afterAll(() => server.stop());

test("beyond what an account's indexes may take together, those used longest ago are given up, and built when searched", async () => {
  const { instanceId } = (await ada.ask("POST", "/v1/instances", { name: "home" })).body;
  const agents = `/v1/instances/${instanceId}/agents`;
  const ids: string[] = [];
  for (const name of ["First", "Second", "Third"]) {
    const { agentId } = (await ada.ask("POST", agents, { name })).body;
    ids.push(agentId);
    for (let file = 0; file < FILES; file++) {
      const text = `The ${name} note ${file}. ${"Words about the harbour and the ledger. ".repeat(30)}`;
      expect((await ada.ask("PUT", `${agents}/${agentId}/files/${file}.md`, text)).status).toBeLessThan(300);
    }
  }
  const search = async (agentId = "") => {
    await ada.ask("GET", `${agents}/${agentId}/memory?query=harbour`);
    await server.app.settled();
    return (await ada.ask("GET", `${agents}/${agentId}/memory?query=harbour`)).body.items.length;
  };
  const kept = () => ids.filter((id) => existsSync(join(server.dataDir, "memory", `${id}.db`)));
  const [first = "", , third = ""] = ids;
  for (const id of ids) expect(await search(id)).toBeGreaterThan(0);
  expect(kept()).not.toContain(first);
  expect(kept()).toContain(third);
  expect(await search(first)).toBeGreaterThan(0);
  expect(kept()).toContain(first);
});
