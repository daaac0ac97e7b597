import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { copyFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { openHostKeys } from "../../src/accounts/host-keys.ts";
import { openFoundation } from "../../src/app/foundation.ts";
import { createLog } from "../../src/lib/log.ts";
import { createAuditCheckpoints } from "../../src/storage/audit-checkpoints.ts";
import { startBinary } from "../support/binary.ts";
import { canMount, readOnly } from "../support/mounted.ts";
import { NO_NODES } from "../support/no-nodes.ts";
import { BINARY, type Home, makeHome, operate, run, signIn } from "./command-line.ts";

let home: Home;
beforeEach(() => {
  home = makeHome();
});
afterEach(() => home.remove());

const path = (name: string) => join(home.dataDir, name);

/** What the doctor says of one thing. */
const finding = async (check: string): Promise<object | undefined> =>
  (await operate(home, ["doctor", "--json"])).json().find((one: { check: string }) => one.check === check);

test("days of usage are counted once, however many instances ran", async () => {
  await operate(home, ["invite", "create"]);
  const sqlite = new Database(path("roost.db"));
  for (const day of ["2026-11-01", "2026-11-02"]) {
    for (const instance of ["inst_a", "inst_b"]) {
      sqlite.run("INSERT INTO usage_days VALUES ('acct_a', ?, ?, 1, 0)", [day, instance]);
    }
  }
  sqlite.close();
  expect(await finding("kept")).toMatchObject({ detail: expect.stringContaining(" 2 days of usage ") });
});

test("an audit log signed with other host keys is reported with what helps: to put the earlier ones back", async () => {
  await operate(home, ["invite", "create"]);
  const { store, clock } = openFoundation(home);
  const log = await createLog("silent", "json");
  const key = openHostKeys(home.dataDir).auditKey;
  await createAuditCheckpoints({ store, clock, log, dataDir: home.dataDir, key }).sign();
  store.close();
  renameSync(path("host-keys.json"), path("earlier.json"));
  const mend = expect.stringContaining("put the earlier host-keys.json back");
  const unknown = expect.stringContaining("the audit log cannot be verified: host-keys.json holds no key");
  expect(await finding("database")).toMatchObject({ ok: false, detail: unknown, mend });
  openHostKeys(home.dataDir);
  const detail =
    "the audit log cannot be verified: the checkpoint at row 1 was changed, or signed with another host-keys.json";
  expect(await finding("database")).toMatchObject({ ok: false, detail, mend });
  expect((await operate(home, ["audit", "--verify"])).errors).toBe(`roost: ${detail}\n`);
  copyFileSync(path("earlier.json"), path("host-keys.json"));
  expect(await finding("database")).toMatchObject({ ok: true });
});

test("secrets that were stored with another master key are counted, with what helps", async () => {
  const first = await startBinary({ dataDir: home.dataDir });
  expect((await signIn(home, first.url, "ada@example.org")).code).toBe(0);
  await run(home, ["instance", "create", "home"]);
  for (const name of ["ONE", "TWO"]) await run(home, ["secret", "set", "home", name], { input: "value" });
  expect(await finding("keys")).toMatchObject({ ok: true, detail: "complete" });
  await first.stop();
  renameSync(path("master.key"), path("earlier.key"));
  expect(await finding("keys")).toMatchObject({ ok: false, detail: expect.stringContaining("master.key is missing") });
  await (await startBinary({ dataDir: home.dataDir })).stop();
  expect(await finding("keys")).toMatchObject({
    ok: false,
    detail: "2 secrets were stored with another master.key, and cannot be opened",
    mend: expect.stringContaining("put the earlier master.key back"),
  });
  copyFileSync(path("earlier.key"), path("master.key"));
  expect(await finding("keys")).toMatchObject({ ok: true });
});

test.skipIf(!canMount)(
  "a read-only file system is reported as what it is, and nothing is said of what cannot be read",
  async () => {
    await operate(home, ["invite", "create"]);
    const child = Bun.spawn([...readOnly(home.dataDir), BINARY, "doctor", "--json", "--data", home.dataDir], {
      env: { ...home.env, ...NO_NODES },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const all: { check: string }[] = JSON.parse(await new Response(child.stdout).text());
    const found = (name: string) => all.find(({ check }) => check === name);
    expect(found("database")).toMatchObject({
      ok: false,
      detail: expect.stringContaining("its file system is read-only"),
    });
    expect(found("kept")).toMatchObject({ ok: true, detail: "unknown: the database cannot be read" });
    expect(found("disk")).toMatchObject({
      ok: false,
      detail: `${home.dataDir} is on a file system that is read-only`,
      mend: expect.stringContaining("mount it for writing"),
    });
    expect(found("keys")).toMatchObject({
      ok: true,
      detail: expect.stringMatching(/^unknown: .*host-keys\.json, master\.key/),
    });
  },
);
