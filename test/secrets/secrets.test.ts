import { expect, test } from "bun:test";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openMasterKey } from "../../src/secrets/master-key.ts";
import { createSecrets, MAX_SECRET_BYTES, MAX_SECRETS } from "../../src/secrets/secrets.ts";
import { findBreak } from "../../src/storage/audit-verify.ts";
import { type Ground, openGround } from "../support/route-harness.ts";

function openRoom(ground: Ground, masterKey = openMasterKey(ground.dataDir)) {
  const caller = ground.account();
  const { instanceId } = ground.instances.create(caller, "one");
  const secrets = createSecrets({ ...ground, masterKey });
  const set = (values: Record<string, string>, into = instanceId) =>
    secrets.set(caller.accountId, into, new Map(Object.entries(values)));
  return { caller, instanceId, secrets, set };
}

/** Every byte that the data folder holds. */
const onDisk = (folder: string): Buffer =>
  Buffer.concat(readdirSync(folder).map((name) => readFileSync(join(folder, name))));

test("a stored value comes back to the host, byte for byte", async () => {
  await using ground = openGround();
  const { instanceId, secrets, set } = openRoom(ground);
  set({ PLAIN: "abc", WIDE: "ключ 🔑 \u0000 end", LONG: "x".repeat(64 * 1024) });
  expect(secrets.read(instanceId, "PLAIN")).toBe("abc");
  expect(secrets.read(instanceId, "WIDE")).toBe("ключ 🔑 \u0000 end");
  expect(secrets.read(instanceId, "LONG")).toBe("x".repeat(64 * 1024));
  expect(secrets.read(instanceId, "ABSENT")).toBeUndefined();
});

test("no value is found on disk, in the database, its log or anywhere in the data folder", async () => {
  await using ground = openGround();
  const { instanceId, secrets, set } = openRoom(ground);
  const value = "correct-horse-battery-staple";
  set({ TOKEN: value });
  set({ TOKEN: `${value}-2` });
  secrets.read(instanceId, "TOKEN");
  const bytes = onDisk(ground.dataDir);
  expect(readdirSync(ground.dataDir)).toContain("roost.db-wal");
  expect(bytes.includes("TOKEN")).toBe(true);
  expect(bytes.includes(value)).toBe(false);
  expect(bytes.includes(Buffer.from(value).toString("base64").slice(0, 32))).toBe(false);
  expect(bytes.includes(Buffer.from(value).toString("hex"))).toBe(false);
});

test("equal values are sealed differently", async () => {
  await using ground = openGround();
  const { set } = openRoom(ground);
  set({ A: "same", B: "same" });
  const rows = ground.store.sqlite.query<{ sealed: Uint8Array }, []>("SELECT sealed FROM secrets").all();
  expect(new Set(rows.map(({ sealed }) => Buffer.from(sealed).toString("hex"))).size).toBe(2);
});

test("a value that was changed in the database does not open", async () => {
  await using ground = openGround();
  const { instanceId, secrets, set } = openRoom(ground);
  set({ TOKEN: "abcdef" });
  const { sealed } = ground.store.sqlite.query<{ sealed: Uint8Array }, []>("SELECT sealed FROM secrets").get() ?? {};
  if (!sealed) throw new Error("no row");
  const write = (bytes: Uint8Array) => ground.store.sqlite.run("UPDATE secrets SET sealed = ?", [bytes]);
  for (let at = 0; at < sealed.byteLength; at++) {
    const changed = Uint8Array.from(sealed);
    changed[at] = (changed[at] ?? 0) ^ 1;
    write(changed);
    expect(() => secrets.read(instanceId, "TOKEN")).toThrow("was changed in the database");
  }
  for (const shorter of [new Uint8Array(), sealed.slice(0, 27), sealed.slice(0, -1)]) {
    write(shorter);
    expect(() => secrets.read(instanceId, "TOKEN")).toThrow("was changed in the database");
  }
  write(sealed);
  expect(secrets.read(instanceId, "TOKEN")).toBe("abcdef");
});

test("a value that was moved to another name, instance or data key does not open", async () => {
  await using ground = openGround();
  const { caller, instanceId, secrets, set } = openRoom(ground);
  const other = ground.instances.create(caller, "two");
  set({ TOKEN: "abc" });
  ground.store.sqlite.run("INSERT INTO secrets SELECT instance_id, 'COPY', data_key_id, 0, 0, sealed FROM secrets");
  expect(() => secrets.read(instanceId, "COPY")).toThrow("the secret COPY");
  ground.store.sqlite.run(
    "INSERT INTO secrets SELECT ?, key, data_key_id, 0, 0, sealed FROM secrets WHERE key = 'TOKEN'",
    [other.instanceId],
  );
  expect(() => secrets.read(other.instanceId, "TOKEN")).toThrow("was changed in the database");
  ground.store.sqlite.run("INSERT INTO data_keys SELECT data_key_id + 1, wrapped, 0 FROM data_keys");
  ground.store.sqlite.run("UPDATE secrets SET data_key_id = data_key_id + 1 WHERE key = 'TOKEN'");
  expect(() => secrets.read(instanceId, "TOKEN")).toThrow("another master key");
});

test("with another master key reading says so, names can be listed, and a value stored again can be read", async () => {
  await using ground = openGround();
  const right = openMasterKey(ground.dataDir);
  const { instanceId, set } = openRoom(ground, right);
  set({ OLD: "old", KEPT: "kept" });
  const wrong = createSecrets({ ...ground, masterKey: Buffer.alloc(32, 7) });
  expect(() => wrong.read(instanceId, "OLD")).toThrow("was stored with another master key; restore that key");
  expect(wrong.names(instanceId)).toEqual(["KEPT", "OLD"]);
  expect(wrong.countLocked()).toBe(2);
  wrong.set("acct_person-1", instanceId, new Map([["OLD", "new"]]));
  expect(wrong.read(instanceId, "OLD")).toBe("new");
  expect(wrong.countLocked()).toBe(1);
  const again = createSecrets({ ...ground, masterKey: right });
  expect(again.read(instanceId, "KEPT")).toBe("kept");
  expect(again.countLocked()).toBe(1);
});

test("of a set that exceeds the limit nothing is stored", async () => {
  await using ground = openGround();
  const { instanceId, secrets, set } = openRoom(ground);
  const named = (from: number, to: number) =>
    Object.fromEntries(Array.from({ length: to - from }, (_, index) => [`N${from + index}`, "v"]));
  set(named(0, MAX_SECRETS - 1));
  const before = ground.audit.read(0, 100).length;
  expect(() => set({ N0: "changed", ...named(MAX_SECRETS - 1, MAX_SECRETS + 1) })).toThrow(
    "secrets: expected at most 100 for an instance; this would make it 101",
  );
  expect(secrets.names(instanceId)).toHaveLength(MAX_SECRETS - 1);
  expect(secrets.read(instanceId, "N0")).toBe("v");
  expect(ground.audit.read(0, 100)).toHaveLength(before + 1);
  set({ N0: "changed", ...named(MAX_SECRETS - 1, MAX_SECRETS) });
  expect(secrets.names(instanceId)).toHaveLength(MAX_SECRETS);
  set({ N0: "a full instance may still change a value" });
  expect(secrets.read(instanceId, "N0")).toBe("a full instance may still change a value");
});

test("of a set beyond the total size nothing is stored, and what an earlier build took beyond it may become less", async () => {
  await using ground = openGround();
  const { instanceId, secrets, set } = openRoom(ground);
  const half = "v".repeat(MAX_SECRET_BYTES / 2);
  set({ A: half, B: half });
  expect(() => set({ A: "v", C: `${half}v` })).toThrow(
    "bytes of secrets: expected at most 524288 for an instance; this would make it 524290",
  );
  expect(secrets.names(instanceId)).toEqual(["A", "B"]);
  expect(secrets.read(instanceId, "A")).toBe(half);

  ground.store.sqlite.run("UPDATE secrets SET sealed = zeroblob(octet_length(sealed) + 1000)");
  expect(() => set({ C: "v" })).toThrow("bytes of secrets");
  set({ A: `${half}v` });
  expect(secrets.read(instanceId, "A")).toBe(`${half}v`);
});

test("writing, using and deleting are in the audit log by name, never by value", async () => {
  await using ground = openGround();
  const { caller, instanceId, secrets, set } = openRoom(ground);
  set({ B: "hush-1", A: "hush-2" });
  secrets.read(instanceId, "A");
  secrets.remove(caller.accountId, instanceId, "B");
  const told = ground.audit.read(0, 10).map(({ actor, action, subject, detail }) => [actor, action, subject, detail]);
  expect(told).toEqual([
    [caller.accountId, "secret.set", instanceId, '{"keys":"B A"}'],
    [caller.accountId, "secret.use", instanceId, '{"key":"A"}'],
    [caller.accountId, "secret.delete", instanceId, '{"key":"B"}'],
  ]);
  expect(JSON.stringify(told)).not.toContain("hush");
  expect(findBreak(ground.store)).toBeNull();
});

test("the master key is 32 bytes that only their owner can read, the same at the next start", async () => {
  await using ground = openGround();
  const key = openMasterKey(ground.dataDir);
  const path = join(ground.dataDir, "master.key");
  expect(key.byteLength).toBe(32);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(openMasterKey(ground.dataDir)).toEqual(key);
  expect(openMasterKey(ground.dataDir, join(ground.dataDir, "elsewhere.key"))).not.toEqual(key);
});

test("a master key file of another size is refused with its path and the fix", async () => {
  await using ground = openGround();
  const path = join(ground.dataDir, "master.key");
  writeFileSync(path, "short");
  expect(() => openMasterKey(ground.dataDir)).toThrow(`the master key ${path} holds 5 bytes, expected 32`);
  expect(readFileSync(path, "utf8")).toBe("short");
});
