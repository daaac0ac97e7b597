import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLog } from "../../src/lib/log.ts";
import { type Audit, createAudit } from "../../src/storage/audit.ts";
import { type AuditCheckpoints, createAuditCheckpoints, readAuditHead } from "../../src/storage/audit-checkpoints.ts";
import { type AuditVerdict, findBreak, verifyAudit } from "../../src/storage/audit-verify.ts";
import { openStore, type Store } from "../../src/storage/store.ts";
import { DAY, type HandClock, HOUR, handClock } from "../lib/hand-clock.ts";

const log = await createLog("silent", "json");
const key = generateKeyPairSync("ed25519").privateKey;
const retention = { maxAgeMs: 400 * DAY, maxRows: 5_000 };
let dataDir: string;
let clock: HandClock;
let store: Store;
let audit: Audit;
let checkpoints: AuditCheckpoints;

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "roost-checkpoints-"));
  clock = handClock();
  store = openStore(dataDir);
  audit = createAudit(store, clock, () => true);
  checkpoints = signing(key);
});
afterEach(() => {
  store.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const signing = (by: KeyObject, folder = dataDir) =>
  createAuditCheckpoints({ store, clock, log, dataDir: folder, key: by, retention });
const append = (times: number) =>
  store.transaction(() => {
    for (let at = 0; at < times; at++) audit.append({ actor: "operator", action: "test", subject: `s${at}` });
  });
const verify = (): AuditVerdict => {
  const publicKey = () => createPublicKey(key);
  return verifyAudit({ store, nowMs: clock.now(), publicKey, head: readAuditHead(dataDir) });
};
const pruneSlice = () => store.transaction(() => checkpoints.prune(0, null, 1));
const prune = () => {
  while (pruneSlice().next !== null);
};
const signedRows = () => store.sqlite.query("SELECT audit_id FROM audit_checkpoints").values().flat();
const heldRows = () => store.sqlite.query("SELECT min(audit_id), max(audit_id) FROM audit").values()[0];
/** Changes the log as an attacker with the database could, without its triggers. */
const tamper = (sql: string) =>
  store.transaction(() => {
    const triggers = "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name LIKE 'audit%'";
    for (const [name] of store.sqlite.query(triggers).values()) store.sqlite.run(`DROP TRIGGER ${name}`);
    store.sqlite.run(sql);
  });

describe("a checkpoint is signed", () => {
  test("at once, then a day after the last one if there are new rows", async () => {
    await checkpoints.sign();
    expect(signedRows()).toEqual([]);
    append(3);
    await checkpoints.sign();
    append(2);
    await checkpoints.sign();
    clock.advance(DAY - HOUR);
    await checkpoints.sign();
    expect(signedRows()).toEqual([3]);
    clock.advance(HOUR);
    await checkpoints.sign();
    clock.advance(2 * DAY);
    await checkpoints.sign();
    expect(signedRows()).toEqual([3, 5]);
    expect(verify()).toMatchObject({ rows: 5, checkpoints: 2, finding: null });
    expect(readAuditHead(dataDir)?.auditId).toBe(5);
  });

  test("after every thousand rows, in slices of a thousand, however many came at once", async () => {
    append(2_500);
    const { commitSoon } = store;
    let commits = 0;
    store.commitSoon = (...work) => {
      commits += 1;
      return commitSoon(...work);
    };
    await checkpoints.sign();
    expect(signedRows()).toEqual([1_000, 2_000]);
    expect(commits).toBe(3);
    expect(verify()).toMatchObject({ rows: 2_500, checkpoints: 2, finding: null });
  });
});

describe("tampering with the log is found:", () => {
  const cases: [string, string, number, string][] = [
    ["a row in the middle that is missing", "DELETE FROM audit WHERE audit_id = 4", 5, "row 5 does not follow"],
    ["a row that was altered", "UPDATE audit SET subject = 'other' WHERE audit_id = 4", 4, "row 4 does not follow"],
    ["a row altered after the checkpoints", "UPDATE audit SET actor = 'x' WHERE audit_id = 9", 9, "row 9 does not"],
    [
      "a signed row that is missing",
      "DELETE FROM audit WHERE audit_id = 3",
      3,
      "row 3, for which a checkpoint was signed, is missing",
    ],
    ["a beginning that is missing", "DELETE FROM audit WHERE audit_id < 3", 3, "row 3 does not follow"],
    ["a signed beginning that is missing", "DELETE FROM audit WHERE audit_id <= 3", 3, "before they expired"],
    [
      "a checkpoint's altered hash",
      "UPDATE audit_checkpoints SET hash = zeroblob(32) WHERE audit_id = 3",
      3,
      "changed",
    ],
    ["a checkpoint's altered number", "UPDATE audit_checkpoints SET rows = 9 WHERE audit_id = 6", 6, "changed"],
    ["a checkpoint's altered time", "UPDATE audit_checkpoints SET created_at = 0 WHERE audit_id = 3", 3, "changed"],
    ["an invalid signature", "UPDATE audit_checkpoints SET signature = zeroblob(64)", 3, "was changed"],
    ["a checkpoint in another's place", "UPDATE audit_checkpoints SET audit_id = 4 WHERE audit_id = 3", 4, "changed"],
    [
      "a tail cut off before its checkpoint",
      "DELETE FROM audit WHERE audit_id > 4",
      6,
      "row 6, for which a checkpoint was signed, is missing",
    ],
    ["a tail cut off after it", "DELETE FROM audit WHERE audit_id > 7", 7, "row 9 was written"],
    ["everything missing", "DELETE FROM audit", 3, "row 3, for which a checkpoint was signed, is missing"],
    [
      "the newest checkpoint missing",
      "DELETE FROM audit_checkpoints WHERE audit_id = 6",
      6,
      "named in audit-head.json",
    ],
    ["all checkpoints missing", "DELETE FROM audit_checkpoints", 6, "named in audit-head.json"],
  ];
  test.each(cases)("%s", async (_, sql, brokenAt, finding) => {
    append(3);
    await checkpoints.sign();
    append(3);
    clock.advance(DAY);
    await checkpoints.sign();
    append(3);
    expect(verify()).toMatchObject({ rows: 9, checkpoints: 2, brokenAt: null, finding: null });
    tamper(sql);
    const verdict = verify();
    expect(verdict.brokenAt).toBe(brokenAt);
    expect(verdict.finding).toContain(finding);
  });

  test("a chain rewritten without signatures, or signed with another key", async () => {
    append(5);
    await checkpoints.sign();
    tamper("DELETE FROM audit_checkpoints");
    tamper("DELETE FROM audit");
    tamper("DELETE FROM sqlite_sequence");
    append(5);
    expect(findBreak(store)).toBeNull();
    expect(verify().finding).toContain("named in audit-head.json");
    // The host does not continue from anything that it has not signed.
    await expect(checkpoints.sign()).rejects.toThrow("the checkpoint at row 5 is missing");
    const forger = mkdtempSync(join(tmpdir(), "roost-forger-"));
    await signing(generateKeyPairSync("ed25519").privateKey, forger).sign();
    rmSync(forger, { recursive: true });
    expect(verify().finding).toContain("the checkpoint at row 5 was changed, or signed with another host-keys.json");
    append(1);
    await expect(checkpoints.sign()).rejects.toThrow("is not signed by this host");
  });

  test("checkpoints that cannot be verified are reported as such", async () => {
    append(1);
    await checkpoints.sign();
    const verdict = verifyAudit({ store, nowMs: clock.now(), publicKey: () => null, head: null });
    expect(verdict.finding).toContain("host-keys.json holds no key");
  });
});

describe("expired rows", () => {
  test("are removed after 400 days, up to a checkpoint; the rest is verified from there", async () => {
    for (let day = 0; day < 3; day++) {
      append(4);
      await checkpoints.sign();
      prune();
      clock.advance(DAY);
    }
    clock.advance(398 * DAY - 1);
    prune();
    expect(heldRows()).toEqual([5, 12]);
    expect(verify()).toMatchObject({ rows: 8, checkpoints: 3, finding: null });
    expect(findBreak(store)).toBeNull();
    clock.advance(400 * DAY);
    prune();
    // The newest checkpoint's rows stay until there is a newer one.
    expect(heldRows()).toEqual([9, 12]);
    append(1);
    await checkpoints.sign();
    prune();
    expect(heldRows()).toEqual([13, 13]);
    expect(verify()).toMatchObject({ rows: 1, checkpoints: 2, finding: null });
    expect(signedRows()).toEqual([12, 13]);
    append(2);
    expect(verify()).toMatchObject({ rows: 3, finding: null });
  });

  test("are removed beyond the maximum number, in slices of a thousand", async () => {
    append(7_600);
    await checkpoints.sign();
    const removed: number[] = [];
    for (let slice = pruneSlice(); slice.next !== null; slice = pruneSlice()) removed.push(slice.removed);
    expect(removed).toEqual([1_000, 1_000]);
    expect(heldRows()?.[0]).toBe(2_001);
    expect(verify()).toMatchObject({ rows: 5_600, checkpoints: 6, finding: null });
  });

  test("that the host has removed are accounted for, whatever the setting was then; what somebody else removed is not", async () => {
    for (let day = 0; day < 4; day++) {
      append(3);
      await checkpoints.sign();
      clock.advance(DAY);
    }
    const short = { maxAgeMs: 3 * DAY, maxRows: 5_000 };
    const shorter = createAuditCheckpoints({ store, clock, log, dataDir, key, retention: short });
    while (store.transaction(() => shorter.prune(0, null, 1)).next !== null);
    expect(heldRows()).toEqual([7, 12]);
    expect(verify()).toMatchObject({ rows: 6, checkpoints: 3, finding: null });
    tamper("DELETE FROM audit WHERE audit_id <= 9");
    expect(verify()).toMatchObject({ brokenAt: 9, finding: "the rows up to 9 were removed before they expired" });
    tamper("UPDATE audit_cut SET audit_id = 9");
    expect(verify()).toMatchObject({ brokenAt: 9 });
    tamper("DELETE FROM audit_cut");
    expect(verify()).toMatchObject({ brokenAt: 9 });
  });

  test("are not removed if they were altered", async () => {
    append(2);
    await checkpoints.sign();
    append(2);
    clock.advance(DAY);
    await checkpoints.sign();
    clock.advance(500 * DAY);
    tamper("UPDATE audit SET actor = 'x' WHERE audit_id = 2");
    expect(prune).toThrow("row 2 does not follow");
    expect(heldRows()).toEqual([1, 4]);
  });
});

test("an altered row is never signed", async () => {
  append(3);
  tamper("UPDATE audit SET actor = 'x' WHERE audit_id = 2");
  await expect(checkpoints.sign()).rejects.toThrow("row 2 does not follow");
  expect(signedRows()).toEqual([]);
});

describe("the database itself refuses", () => {
  beforeEach(async () => {
    append(3);
    await checkpoints.sign();
    append(3);
    clock.advance(DAY);
    await checkpoints.sign();
    append(3);
  });

  test.each([
    ["a row behind the newest checkpoint", "DELETE FROM audit WHERE audit_id = 8"],
    ["the newest checkpoint's own row", "DELETE FROM audit WHERE audit_id <= 6"],
    ["a row in the middle", "DELETE FROM audit WHERE audit_id = 4"],
    ["all rows", "DELETE FROM audit"],
    ["a change of a row", "UPDATE audit SET actor = 'x' WHERE audit_id = 1"],
    ["a change of a checkpoint", "UPDATE audit_checkpoints SET rows = 1"],
    ["the deletion of a checkpoint", "DELETE FROM audit_checkpoints WHERE audit_id = 3"],
  ])("%s", (_, sql) => {
    expect(() => store.transaction(() => store.sqlite.run(sql))).toThrow("append-only");
    expect(verify()).toMatchObject({ rows: 9, checkpoints: 2, finding: null });
  });

  test("deletions other than of rows before a checkpoint, oldest first", () => {
    store.transaction(() => store.sqlite.run("DELETE FROM audit WHERE audit_id <= 3"));
    expect(heldRows()).toEqual([4, 9]);
  });
});
