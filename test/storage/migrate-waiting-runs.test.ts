import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { messageQueries } from "../../src/messages/queries.ts";
import { migrate } from "../../src/storage/migrate.ts";
import { openStore, type Store } from "../../src/storage/store.ts";

const MIGRATIONS = join(import.meta.dir, "../../src/storage/migrations");
const BEFORE = readdirSync(MIGRATIONS)
  .sort()
  .filter((name) => name < "0012")
  .map((name) => readFileSync(join(MIGRATIONS, name), "utf8"));
const STATUSES = ["queued", "running", "completed", "failed", "cancelled"];

let dataDir: string;
let store: Store;

/** A data folder as it was before runs could wait, with a run of each status that there was. */
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "roost-migrate-waiting-"));
  using sqlite = new Database(join(dataDir, "roost.db"), { create: true, strict: true });
  migrate(sqlite, dataDir, BEFORE);
  sqlite.run(
    `INSERT INTO agents (agent_id, instance_id, name, slug, display_name, created_at, updated_at)
     VALUES ('agt_a', 'inst_a', 'Ada', 'ada', 'Ada', 0, 0)`,
  );
  for (const status of STATUSES) {
    sqlite.run(
      `INSERT INTO runs (run_id, agent_id, instance_id, conversation_id, message_id, status, first_event_id, created_at)
       VALUES (?1, 'agt_a', 'inst_a', 'conv_a', 'msg_a', ?1, 1, 0)`,
      [status],
    );
  }
  store = openStore(dataDir);
});
afterEach(() => {
  store.close();
  rmSync(dataDir, { recursive: true, force: true });
});

test("runs of before wait for nothing", () => {
  const queries = messageQueries(store.db);
  for (const status of STATUSES) {
    expect(queries.run(status)).toMatchObject({ status, waitingKind: null, waitingId: null, journalUpTo: null });
  }
});

test("a run waits for something exactly while its status says so", () => {
  const set = (assignment: string) => () => store.transaction(() => store.sqlite.run(`UPDATE runs SET ${assignment}`));
  expect(set("status = 'waiting'")).toThrow("CHECK");
  expect(set("waiting_kind = 'approval', waiting_id = 'appr_a'")).toThrow("CHECK");
  expect(set("status = 'waiting', waiting_kind = 'approval'")).toThrow("CHECK");
  expect(set("status = 'waiting', waiting_kind = 'weather', waiting_id = 'x'")).toThrow("CHECK");
  expect(set("status = 'sleeping'")).toThrow("CHECK");
  expect(set("origin_type = 'weather'")).toThrow("CHECK");
  expect(set("journal = '[]'")).toThrow("CHECK");
  set("status = 'waiting', waiting_kind = 'approval', waiting_id = 'appr_a', journal = '[]', journal_up_to = 1")();
  expect(set("status = 'running'")).toThrow("CHECK");
});
