import { afterEach, beforeEach, expect, test } from "bun:test";
import { createPublicKey, sign, verify } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openHostKeys, readAuditKey } from "../../src/accounts/host-keys.ts";

let dataDir: string;
const path = () => join(dataDir, "host-keys.json");
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "roost-host-keys-"));
});
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

test("a new host's keys are created once, readable by their owner only, and stay the same", () => {
  const keys = openHostKeys(dataDir);
  expect(statSync(path()).mode & 0o777).toBe(0o600);
  const written = readFileSync(path(), "utf8");
  const { auditKey, ...others } = openHostKeys(dataDir);
  expect(others).toEqual({
    pepper: keys.pepper,
    tokenKeys: keys.tokenKeys,
    requestKey: keys.requestKey,
    cursorKey: keys.cursorKey,
  });
  expect(createPublicKey(auditKey).equals(createPublicKey(keys.auditKey))).toBe(true);
  expect(readFileSync(path(), "utf8")).toBe(written);
});

test("keys in an older file stay, above all the pepper: codes that were sent still work", () => {
  const old = {
    pepper: Buffer.alloc(32, 1).toString("base64"),
    tokenKeys: [{ kid: "k", secret: Buffer.alloc(32, 2).toString("base64") }],
    ofAnotherRelease: { kept: true },
  };
  writeFileSync(path(), JSON.stringify(old), { mode: 0o600 });
  expect(readAuditKey(dataDir)).toBeNull();
  const keys = openHostKeys(dataDir);
  expect(keys.pepper).toEqual(Buffer.alloc(32, 1));
  expect(keys.tokenKeys).toEqual([{ kid: "k", secret: Buffer.alloc(32, 2) }]);
  expect(JSON.parse(readFileSync(path(), "utf8"))).toEqual({ ...old, auditKey: expect.any(String) });
});

test("each purpose has a key of its own", () => {
  const { pepper, requestKey, cursorKey, tokenKeys } = openHostKeys(dataDir);
  const all = [pepper, requestKey, cursorKey, ...tokenKeys.map(({ secret }) => secret)];
  expect(new Set(all.map((key) => key.toString("hex"))).size).toBe(4);
  for (const key of all) expect(key.byteLength).toBe(32);
});

test("verifying reads the public half, and creates no file", () => {
  expect(readAuditKey(dataDir)).toBeNull();
  expect(statSync(path(), { throwIfNoEntry: false })).toBeUndefined();
  const { auditKey } = openHostKeys(dataDir);
  const publicKey = readAuditKey(dataDir);
  const text = Buffer.from("checkpoint");
  expect(publicKey?.type).toBe("public");
  expect(publicKey && verify(null, text, publicKey, sign(null, text, auditKey))).toBe(true);
});
