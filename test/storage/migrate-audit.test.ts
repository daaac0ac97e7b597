import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createIdempotency } from "../../src/http/idempotency.ts";
import { migrate } from "../../src/storage/migrate.ts";
import firstLight from "../../src/storage/migrations/0001-first-light.sql" with { type: "text" };
import { openStore, type Store } from "../../src/storage/store.ts";
import { HOUR, handClock } from "../lib/hand-clock.ts";

const clock = handClock();
const hash = createHash("sha256").update('POST /v1/x\n{"value":"271828"}').digest();
let dataDir: string;
let store: Store;

/** A data folder as the first release left it: two accounts with answers that were stored an hour ago. */
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "roost-migrate-audit-"));
  using sqlite = new Database(join(dataDir, "roost.db"), { create: true, strict: true });
  migrate(sqlite, dataDir, [firstLight]);
  for (const accountId of ["acct_a", "acct_b"]) {
    const account = "INSERT INTO accounts (account_id, email, name, created_at) VALUES (?, ? || '@b', 'A', 0)";
    sqlite.run(account, [accountId, accountId]);
    for (const [at, key] of ["k1", "k2"].entries()) {
      const answer = "INSERT INTO idempotent_requests VALUES (?, ?, ?, 201, '{}', NULL, ?)";
      sqlite.run(answer, [accountId, key, hash, clock.now() - HOUR - at]);
    }
  }
  store = openStore(dataDir);
});
afterEach(() => {
  store.close();
  rmSync(dataDir, { recursive: true, force: true });
});

test("stored requests keep their keys, so that nothing is done twice, but not their guessable hashes", () => {
  const rows = store.sqlite.query("SELECT account_id, key, place, request_mac FROM idempotent_requests").values();
  expect(rows).toEqual([
    ["acct_a", "k1", 2, new Uint8Array()],
    ["acct_a", "k2", 1, new Uint8Array()],
    ["acct_b", "k1", 2, new Uint8Array()],
    ["acct_b", "k2", 1, new Uint8Array()],
  ]);
  const idempotency = createIdempotency(store, clock, randomBytes(32));
  const asked = {
    method: "POST",
    path: "/v1/x",
    limitedTo: null,
    payment: null,
    body: Buffer.from('{"value":"271828"}'),
  };
  expect(() => idempotency.begin("acct_a", "k1", asked)).toThrow("another request");
  const next = idempotency.begin("acct_a", "k3", asked);
  if (next.kind === "first") next.attempt.save({ status: 200, body: "{}" });
  clock.advance(23 * HOUR);
  expect(idempotency.begin("acct_a", "k1", asked).kind).toBe("first");
});

test("afterwards the plain hash is nowhere in the file", () => {
  store.sqlite.run("PRAGMA wal_checkpoint(TRUNCATE)");
  const held = ["roost.db", "roost.db-wal"].map((name) => readFileSync(join(dataDir, name)).includes(hash));
  expect(held).toEqual([false, false]);
});
