import { expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openFoundation } from "../../src/app/foundation.ts";
import { runBinary, startBinary } from "../support/binary.ts";
import { askAt, backup, startHost } from "./host.ts";

const AGENTS = 4;

test("a backup of a host that is being written to holds all that was acknowledged before it, and starts", async () => {
  await using host = await startHost();
  const { ask, instanceId, folder, dataDir, token } = host;
  const agents = `/v1/instances/${instanceId}/agents`;
  const ids: string[] = [];
  for (let at = 0; at < AGENTS; at++) ids.push((await ask("POST", agents, { name: `Agent ${at}` })).body.agentId);
  expect((await ask("POST", `/v1/instances/${instanceId}/secrets`, { secrets: { TOKEN: "s3cr3t" } })).status).toBe(201);

  /** By agent, the newest number that was acknowledged. */
  const acknowledged = ids.map(() => 0);
  let writing = true;
  const writers = ids.map(async (id, at) => {
    for (let number = 1; writing; number++) {
      const { status } = await ask("PUT", `${agents}/${id}/files/n.md`, String(number).padEnd(2_000, "."));
      if (status === 200 || status === 201) acknowledged[at] = number;
      else expect(status).toBe(429);
    }
  });
  while (acknowledged.some((number) => number < 5)) await ask("GET", agents);
  const before = [...acknowledged];
  const file = join(folder, "b.tar.zst");
  const made = await backup(["create", file, "--data", dataDir, "--include-key"]);
  writing = false;
  await Promise.all(writers);
  expect(made).toMatchObject({ code: 0 });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readdirSync(join(dataDir, "backups"))).toEqual([]);
  expect((await backup(["verify", file, "--data", dataDir])).output).toContain("Good");

  const restored = join(folder, "restored");
  expect(await backup(["restore", file, "--data", restored])).toMatchObject({ code: 0 });
  await using second = await startBinary({ dataDir: restored });
  const askSecond = askAt(second.url, () => token);
  for (const [at, id] of ids.entries()) {
    const { body } = await askSecond("GET", `${agents}/${id}/files/n.md`);
    expect(Number.parseInt(body, 10)).toBeGreaterThanOrEqual(before[at] ?? 0);
  }
  const { body } = await askSecond("GET", `/v1/instances/${instanceId}/secrets`);
  expect(body.data.map(({ key }: { key: string }) => key)).toEqual(["TOKEN"]);
  expect((await askSecond("PUT", `${agents}/${ids[0]}/files/n.md`, "after")).status).toBe(200);
  expect((await runBinary(["audit", "--verify", "--data", restored])).output).toContain("intact");
});

test("without --include-key no key leaves the host, and the restore says which to bring", async () => {
  await using host = await startHost();
  const { folder, dataDir } = host;
  const file = join(folder, "b.tar.zst");
  const { errors } = await backup(["create", file, "--data", dataDir]);
  expect(errors).toContain("keep copies of master.key, host-keys.json, wallet.json");
  const restored = join(folder, "restored");
  const { output } = await backup(["restore", file, "--data", restored]);
  expect(output).toContain("put master.key, host-keys.json, wallet.json there");
  // A host that has run for ten seconds has signed its audit log.
  const others = readdirSync(restored).filter((name) => !name.startsWith("roost.db") && name !== "audit-head.json");
  expect(others).toEqual([]);
  expect(statSync(restored).mode & 0o777).toBe(0o700);
});

test("files that the settings name may be there before a start and a restore, and a backup says that they are not in it", async () => {
  const folder = mkdtempSync(join(tmpdir(), "roost-named-"));
  await using _ = { [Symbol.asyncDispose]: async () => rmSync(folder, { recursive: true, force: true }) };
  const [dataDir, restored, bare] = [join(folder, "data"), join(folder, "restored"), join(folder, "bare")];
  const prepare = (at: string) => {
    mkdirSync(at, { mode: 0o700 });
    writeFileSync(join(at, "roost.toml"), 'model_prices = "prices.json"\nbackup_to = "kept/daily"\n', { mode: 0o600 });
    writeFileSync(join(at, "prices.json"), "{}");
    mkdirSync(join(at, "kept"));
  };
  prepare(dataDir);
  expect(await runBinary(["invite", "create", "--data", dataDir])).toMatchObject({ code: 0 });
  const [file, whole] = [join(folder, "b.tar.zst"), join(folder, "whole.tar.zst")];
  const { errors } = await backup(["create", file, "--data", dataDir]);
  expect(errors).toContain("What your settings name is not in it: keep copies of prices.json elsewhere.");
  expect(errors).toContain("keep copies of roost.toml elsewhere");
  prepare(restored);
  expect(await backup(["restore", file, "--data", restored])).toMatchObject({ code: 0 });
  expect(readdirSync(restored)).toEqual(expect.arrayContaining(["kept", "prices.json", "roost.db"]));
  await using server = await startBinary({ dataDir: restored });

  expect(await backup(["create", whole, "--data", dataDir, "--include-key"])).toMatchObject({ code: 0 });
  const without = await backup(["restore", whole, "--data", bare]);
  expect(without).toMatchObject({ code: 0 });
  expect(without.output).toContain("Restored");
  expect(without.errors).toMatch(/Its settings stop a start: ROOST_MODEL_PRICES is .*there is no such file/);
  expect(await server.stop()).toBe(0);
});

test("a backup of a host that has no keys yet speaks of none", async () => {
  const folder = mkdtempSync(join(tmpdir(), "roost-keyless-"));
  await using _ = { [Symbol.asyncDispose]: async () => rmSync(folder, { recursive: true, force: true }) };
  const dataDir = join(folder, "data");
  mkdirSync(dataDir, { mode: 0o700 });
  await runBinary(["invite", "create", "--data", dataDir]);
  const { code, errors } = await backup(["create", join(folder, "b.tar.zst"), "--data", dataDir]);
  expect([code, errors.includes("keep copies")]).toEqual([0, false]);
});

test("a passphrase file encrypts, and nothing opens without it", async () => {
  await using host = await startHost();
  const { folder, dataDir } = host;
  const [file, pass] = [join(folder, "b.tar.zst.age"), join(folder, "pass")];
  writeFileSync(pass, "correct horse battery\nnot this line\n");
  const made = await backup(["create", file, "--data", dataDir, "--passphrase-file", pass, "--json"]);
  expect(JSON.parse(made.output)).toMatchObject({ encrypted: true, keys: [] });
  expect((await backup(["verify", file, "--data", dataDir])).errors).toContain("--passphrase-file");
  const settings = { ROOST_BACKUP_PASSPHRASE_FILE: pass };
  expect(await backup(["verify", file, "--data", dataDir], settings)).toMatchObject({ code: 0 });
  writeFileSync(pass, "\n");
  expect((await backup(["verify", file, "--data", dataDir], settings)).errors).toContain("begins with an empty line");
});

test("a restore touches no folder that has something in it, and a refused one leaves nothing", async () => {
  await using host = await startHost();
  const { folder, dataDir } = host;
  const file = join(folder, "b.tar.zst");
  await backup(["create", file, "--data", dataDir]);
  const other = join(folder, "other");
  mkdirSync(other);
  writeFileSync(join(other, "notes.txt"), "mine");
  expect((await backup(["restore", file, "--data", other])).errors).toContain("is not empty: it has notes.txt");
  expect(readdirSync(other)).toEqual(["notes.txt"]);
  expect((await backup(["restore", file, "--data", dataDir])).errors).toContain("is not empty");

  const cut = join(folder, "cut.tar.zst");
  writeFileSync(cut, Buffer.from(await Bun.file(file).bytes()).subarray(0, -200));
  const fresh = join(folder, "fresh");
  expect(await backup(["restore", cut, "--data", fresh])).toMatchObject({ code: 1 });
  expect(readdirSync(fresh)).toEqual([]);
  expect((await backup(["verify", cut, "--data", dataDir])).code).toBe(1);
});

test("what cannot be done is said with the next step", async () => {
  await using host = await startHost();
  const { folder, dataDir } = host;
  const file = join(folder, "b.tar.zst");
  await backup(["create", file, "--data", dataDir]);
  expect((await backup(["create", file, "--data", dataDir])).errors).toContain("exists already, and is left as it is");
  expect((await backup(["create", join(folder, "x"), "--data", join(folder, "none")])).errors).toContain(
    "there is no Roost data",
  );
  expect((await backup(["verify", join(folder, "none"), "--data", dataDir])).errors).toContain("backup list");
  const bad = await backup(["create", join(folder, "y"), "--data", dataDir, "--passphrase-file", join(folder, "none")]);
  expect(bad.errors).toContain("passphrase file");
  expect(existsSync(join(folder, "y"))).toBe(false);
  expect((await backup(["create", join(folder, "no/such/z"), "--data", dataDir])).code).toBe(0);
  for (const words of ["create", "verify", "restore"]) {
    const { code, errors } = await backup([words, `${join(folder, "kept")}/`, "--data", dataDir]);
    expect([code > 0, errors]).toEqual([
      true,
      expect.stringMatching(/kept\/" names no file; |there is no backup \S+kept/),
    ]);
  }
  const there = await backup(["create", join(folder, "no/such"), "--data", dataDir]);
  expect([there.code, there.errors]).toEqual([1, `roost: ${folder}/no/such is a folder; name a file in it\n`]);
  expect(readdirSync(folder).includes("kept")).toBe(false);
});

test("one file is one file", async () => {
  const folder = mkdtempSync(join(tmpdir(), "roost-one-"));
  const dataDir = join(folder, "data");
  openFoundation({ dataDir }).store.close();
  const file = join(folder, "b.tar.zst");
  await backup(["create", file, "--data", dataDir]);
  expect((await backup(["verify", file, "--data", dataDir])).output).toContain(", with 1 file (");
  rmSync(folder, { recursive: true });
});
