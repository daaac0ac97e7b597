import { expect, test } from "bun:test";
import { existsSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { pino } from "pino";
import { startTestServer } from "../support/test-server.ts";

test("a start with an older database leaves the workspaces that it does not know, and says so", async () => {
  const lines: string[] = [];
  const log = pino({ level: "warn" }, { write: (line: string) => void lines.push(line) });
  const server = await startTestServer({}, { log });
  const owner = await server.signUp();
  const database = join(server.dataDir, "roost.db");
  const older = `${database}.older`;
  const newer = `${database}.newer`;
  // With what SQLite keeps beside a database.
  const move = (from: string, to: string) => {
    for (const suffix of ["", "-wal", "-shm"]) if (existsSync(from + suffix)) renameSync(from + suffix, to + suffix);
  };
  server.foundation.store.sqlite.run("VACUUM INTO ?", [older]);

  const { instanceId } = (await owner.ask("POST", "/v1/instances", { name: "one" })).body;
  const empty = (await owner.ask("POST", "/v1/instances", { name: "two" })).body.instanceId;
  const agents = `/v1/instances/${instanceId}/agents`;
  const { agentId, slug } = (await owner.ask("POST", agents, { name: "Ada", files: { "notes.md": "kept" } })).body;
  const folderOf = (id: string) => join(server.dataDir, "instances", id);
  await server.restart(() => {
    move(database, newer);
    move(older, database);
  });
  await server.app.settled();
  expect(readFileSync(join(folderOf(instanceId), "agents", slug, "notes.md"), "utf8")).toBe("kept");
  expect(existsSync(folderOf(empty))).toBe(false);
  expect(lines.join("")).toContain(`"first":"${instanceId}","msg":"the database does not know some instances`);

  await server.restart(() => {
    move(database, older);
    move(newer, database);
  });
  await server.app.settled();
  const agent = (await owner.ask("GET", `${agents}/${agentId}`)).body;
  expect(agent.files["notes.md"]).toBe("kept");
  // The folder of an instance without agents is made again when one comes.
  const added = await owner.ask("POST", `/v1/instances/${empty}/agents`, { name: "Bob" });
  expect(added.status).toBe(201);
  await server.stop();
});
