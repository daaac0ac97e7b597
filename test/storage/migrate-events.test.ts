import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createEventReader } from "../../src/messages/events/event-reader.ts";
import { migrate } from "../../src/storage/migrate.ts";
import { openStore } from "../../src/storage/store.ts";

const MIGRATIONS = join(import.meta.dir, "../../src/storage/migrations");
const BEFORE = readdirSync(MIGRATIONS)
  .sort()
  .filter((name) => name < "0015")
  .map((name) => readFileSync(join(MIGRATIONS, name), "utf8"));
const AGENTS = ["agt_a", "agt_b"];

test("events of before are found as they were, and still count in their agent's bytes", () => {
  const dataDir = mkdtempSync(join(tmpdir(), "roost-migrate-events-"));
  using _ = { [Symbol.dispose]: () => rmSync(dataDir, { recursive: true, force: true }) };
  {
    using sqlite = new Database(join(dataDir, "roost.db"), { create: true, strict: true });
    migrate(sqlite, dataDir, BEFORE);
    for (const agent of AGENTS) {
      sqlite.run(
        `INSERT INTO agents (agent_id, instance_id, name, slug, display_name, last_event_id, event_bytes, created_at, updated_at)
         VALUES (?1, 'inst', 'A', ?1, 'A', 3, 1000, 0, 0)`,
        [agent],
      );
    }
    for (const id of [3, 1, 2]) {
      for (const agent of AGENTS) {
        sqlite.run("INSERT INTO events VALUES (?1, ?2, 'run', ?3, 'message.delta', ?4, ?2)", [
          agent,
          id,
          id === 2 ? `conv of ${agent}` : null,
          `{"delta":"${agent} ${id}"}`,
        ]);
      }
    }
  }
  const store = openStore(dataDir);
  try {
    const { follow } = createEventReader(store.db);
    const found = (agent: string, conversation: string | null) =>
      follow(agent, 0, { rows: 10, bytes: 10_000 }, conversation)?.rows.map(({ data }) => data);
    for (const agent of AGENTS) {
      expect(found(agent, null)).toEqual([1, 2, 3].map((id) => `{"delta":"${agent} ${id}"}`));
      expect(found(agent, `conv of ${agent}`)).toEqual([`{"delta":"${agent} 2"}`]);
    }
    store.transaction(() => store.sqlite.run("DELETE FROM events WHERE agent_id = 'agt_a' AND event_id = 1"));
    const bytes = store.sqlite.query("SELECT event_bytes AS bytes FROM agents ORDER BY agent_id").all();
    expect(bytes).toEqual([{ bytes: 1000 - 128 - '{"delta":"agt_a 1"}'.length }, { bytes: 1000 }]);
  } finally {
    store.close();
  }
});
