import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Audit, createAudit } from "../../src/storage/audit.ts";
import { findBreak } from "../../src/storage/audit-verify.ts";
import { openStore, type Store } from "../../src/storage/store.ts";
import { handClock } from "../lib/hand-clock.ts";

let dataDir: string;
let store: Store;
let audit: Audit;

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "roost-audit-"));
  store = openStore(dataDir);
  audit = createAudit(store, handClock(), () => true);
});
afterEach(() => {
  store.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const append = (times: number) => {
  for (let at = 0; at < times; at++)
    audit.append({ actor: "operator", action: "test", subject: `s${at}`, detail: { at } });
};
/** Changes the log as an attacker with the file could, without its triggers. */
const tamper = (sql: string) => {
  store.sqlite.run("DROP TRIGGER audit_is_append_only_update");
  store.sqlite.run("DROP TRIGGER audit_is_append_only_delete");
  store.sqlite.run(sql);
};

test("an untouched chain is intact: empty, short, or read in several slices", () => {
  expect(findBreak(store)).toBeNull();
  append(3);
  expect(findBreak(store)).toBeNull();
  store.transaction(() => append(2_100));
  expect(findBreak(store)).toBeNull();
});

test.each([
  ["an actor", "UPDATE audit SET actor = 'somebody' WHERE audit_id = 3", 3],
  ["an action", "UPDATE audit SET action = 'other' WHERE audit_id = 3", 3],
  ["a subject", "UPDATE audit SET subject = 'other' WHERE audit_id = 1", 1],
  ["a detail", "UPDATE audit SET detail = '{}' WHERE audit_id = 5", 5],
  ["a time", "UPDATE audit SET created_at = created_at - 1 WHERE audit_id = 2", 2],
  ["a hash", "UPDATE audit SET hash = zeroblob(32) WHERE audit_id = 4", 4],
  ["a missing row", "DELETE FROM audit WHERE audit_id = 3", 4],
  ["a missing beginning", "DELETE FROM audit WHERE audit_id = 1", 2],
])("%s that was changed breaks the chain there", (_, sql, at) => {
  append(6);
  tamper(sql);
  expect(findBreak(store)).toBe(at);
});

test("an entry is committed or rolled back with its transaction", () => {
  expect(() =>
    store.transaction(() => {
      append(1);
      throw new Error("refused");
    }),
  ).toThrow("refused");
  expect(audit.read(0, 10)).toEqual([]);
  append(1);
  expect(findBreak(store)).toBeNull();
});

test("it is read oldest first, after a row", () => {
  append(5);
  expect(audit.read(0, 2).map(({ subject }) => subject)).toEqual(["s0", "s1"]);
  expect(audit.read(2, 10).map(({ subject }) => subject)).toEqual(["s2", "s3", "s4"]);
});

test.each([
  "UPDATE audit SET actor = 'x'",
  "DELETE FROM audit",
  "UPDATE journal_entries SET note = 'x'",
  "DELETE FROM journal_entries",
  "UPDATE postings SET amount = 5",
  "DELETE FROM postings",
])("the database itself refuses %s", (sql) => {
  append(1);
  store.sqlite.run("INSERT INTO accounts (account_id, email, name, created_at) VALUES ('a', 'a@b', 'a', 0)");
  store.sqlite.run(
    "INSERT INTO journal_entries (entry_id, transaction_id, type, account_id, balance_after, created_at) VALUES (1, 't', 'credit', 'a', 5, 0)",
  );
  store.sqlite.run("INSERT INTO postings VALUES (1, 'customer:a', 5)");
  expect(() => store.sqlite.run(sql)).toThrow("append-only");
});
