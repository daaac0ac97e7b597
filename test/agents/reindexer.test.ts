import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { createReindexer } from "../../src/agents/reindexer.ts";
import { createWorkspaceFiles } from "../../src/agents/workspace-files.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { openStore } from "../../src/storage/store.ts";
import { openJail } from "../../src/workspace/jail.ts";

test("workspaces are compared once the database can be read again, and until then the log says why they are not", async () => {
  const folder = mkdtempSync(join(tmpdir(), "roost-reindexer-"));
  writeFileSync(join(folder, "notes.md"), "found");
  const store = openStore(folder);
  store.sqlite.run("PRAGMA foreign_keys = OFF");
  store.sqlite.run(
    `INSERT INTO agents (agent_id, instance_id, name, slug, display_name, created_at, updated_at)
     VALUES ('agt_a', 'inst_a', 'Ada', 'ada', 'Ada', 0, 0)`,
  );
  const failed = Promise.withResolvers<string>();
  const log = pino({}, { write: (line: string) => failed.resolve(line) });
  const index = createWorkspaceFiles(store.db);
  const reindexer = createReindexer({ store, clock: systemClock, log, index, jailOf: () => openJail(folder) }, 5);

  store.sqlite.run("ALTER TABLE agents RENAME TO elsewhere");
  reindexer.run();
  expect(await failed.promise).toContain("no such table: agents");
  store.sqlite.run("ALTER TABLE elsewhere RENAME TO agents");
  await reindexer.ready([{ agentId: "agt_a", indexedAt: null }]);
  await reindexer.settled();
  expect(index.find("agt_a", "notes.md")).toBeDefined();
  await reindexer.stop();
  store.close();
  rmSync(folder, { recursive: true });
});
