import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fillYear } from "../../bench/year-data.ts";
import { createAging } from "../../src/messages/aging.ts";
import { createRetention } from "../../src/storage/retention.ts";
import { openStore, type Store } from "../../src/storage/store.ts";
import { DAY } from "../lib/hand-clock.ts";

const AGENT = `agt_${"0".repeat(31)}a`;
const EXCHANGES = 20_000;

function newFolder(): string {
  const dataDir = mkdtempSync(join(tmpdir(), "roost-prune-"));
  const store = openStore(dataDir);
  const { sqlite } = store;
  sqlite.run("INSERT INTO accounts (account_id, email, name, created_at) VALUES ('acct_x', 'a@b.c', 'A', 0)");
  sqlite.run(
    "INSERT INTO instances (instance_id, account_id, name, status, created_at) VALUES ('inst_x', 'acct_x', 'x', 'stopped', 0)",
  );
  sqlite.run(
    `INSERT INTO agents (agent_id, instance_id, name, slug, display_name, created_at, updated_at)
     VALUES ('${AGENT}', 'inst_x', 'x', 'x', 'x', 0, 0)`,
  );
  store.close();
  fillYear(dataDir, AGENT, { exchanges: EXCHANGES, neighbours: 0, runsWithEvents: 10 });
  return dataDir;
}

const one = ({ sqlite }: Store, sql: string) => sqlite.query(sql).values()[0]?.[0] as number;

/** What is counted is what is there, and nobody has lost a part of what he said. */
function checkWhole(store: Store): void {
  expect(one(store, "SELECT message_count FROM conversations")).toBe(one(store, "SELECT count(*) FROM messages"));
  expect(one(store, "SELECT history_bytes FROM account_usage")).toBe(
    one(
      store,
      `SELECT sum(512 + octet_length(text) + octet_length(sender_type) + octet_length(sender_id)
         + octet_length(sender_name)) FROM messages`,
    ),
  );
  expect(store.sqlite.query("PRAGMA integrity_check").values()).toEqual([["ok"]]);
  // All that is left is newer than all that has gone.
  const { first, last, rows } = store.sqlite
    .query<{ first: number; last: number; rows: number }, []>(
      "SELECT min(message_seq) AS first, max(message_seq) AS last, count(*) AS rows FROM messages",
    )
    .get() ?? { first: 0, last: 0, rows: 0 };
  expect([last, rows]).toEqual([2 * EXCHANGES, last - first + 1]);
}

test("a process that is killed while it prunes leaves a consistent database, and the next one goes on", async () => {
  const dataDir = newFolder();
  try {
    const left: number[] = [];
    for (const slices of [1, 5, 12]) {
      const child = Bun.spawn([process.execPath, resolve(import.meta.dir, "prune-and-die.ts"), dataDir], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      let seen = "";
      const decoder = new TextDecoder();
      for await (const bytes of child.stdout) {
        seen += decoder.decode(bytes);
        if (seen.split("\n").length > slices) child.kill("SIGKILL");
      }
      await child.exited;
      const store = openStore(dataDir);
      checkWhole(store);
      left.push(one(store, "SELECT count(*) FROM messages"));
      store.close();
    }
    expect(left).toEqual(left.toSorted((a, b) => b - a));
    expect(left[0]).toBeLessThan(2 * EXCHANGES);
    const store = openStore(dataDir);
    const { messages } = createAging(
      store,
      () => {},
      () => {},
    );
    await createRetention(store, { now: () => Date.now() }, async () => {}).prune({
      kind: "messages",
      keptMs: DAY,
      slice: messages,
    });
    checkWhole(store);
    expect(one(store, `SELECT count(*) FROM messages WHERE created_at < ${Date.now() - 2 * DAY}`)).toBe(0);
    expect(one(store, "SELECT count(*) FROM messages")).toBeGreaterThan(0);
    store.close();
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
});
