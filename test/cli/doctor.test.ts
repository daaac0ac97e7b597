import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { openFoundation } from "../../src/app/foundation.ts";
import { type Anvil, startAnvil } from "../support/anvil.ts";
import { startBinary } from "../support/binary.ts";
import { startFacilitator } from "../support/facilitator.ts";
import { startMockModelServer } from "../support/mock-model-server.ts";
import { canCutNetwork, OFFLINE } from "../support/offline.ts";
import { type Home, makeHome, operate, type RunOptions, startServer } from "./command-line.ts";

let chain: Anvil;
let home: Home;
beforeAll(async () => {
  chain = await startAnvil({ network: "base" });
  home = makeHome();
  const server = await startServer(home);
  await server.stop();
});
afterAll(async () => {
  home.remove();
  await chain.stop();
});

interface Finding {
  check: string;
  ok: boolean;
  detail: string;
  mend: string | null;
}

/** Payments on one network, whose node is here. */
const onChain = () => ({ ROOST_PORT: "0", ROOST_NETWORKS: "base", ROOST_BASE_RPC_URL: chain.url });

/** The doctor's findings; again if the node here was late: it has the product's deadline, which a busy machine may exceed. */
async function examine(of: Home, options?: RunOptions): Promise<{ code: number; failed: Finding[]; all: Finding[] }> {
  for (;;) {
    const ran = await operate(of, ["doctor", "--json"], { ...options, env: { ...onChain(), ...options?.env } });
    const all: Finding[] = ran.json();
    const failed = all.filter(({ ok }) => !ok);
    if (!failed.some(({ detail }) => detail.includes("does not answer within"))) return { code: ran.code, all, failed };
  }
}

test("a healthy host passes every check, with or without a running server", async () => {
  const { code, all } = await examine(home);
  expect(all.map(({ check }) => check)).toEqual([
    "database",
    "kept",
    "disk",
    "keys",
    "address",
    "sandbox",
    "model",
    "models",
    "mail",
    "rpc",
    "wallet",
    "facilitator",
    "backups",
    "clock",
  ]);
  expect(all.find(({ check }) => check === "kept")?.detail).toMatch(
    /^0 messages \(for ever\), 0 runs \(365 days\), 0 events \(7 days\), 0 days of usage \(730 days\), \d+ rows? of the audit/,
  );
  for (const finding of all) expect(finding).toMatchObject({ ok: true, detail: expect.any(String), mend: null });
  expect(code).toBe(0);
  expect((await operate(home, ["doctor"], { env: onChain() })).output).toMatch(/^ok {4}database/);
  const server = await startServer(home);
  expect((await examine(home)).failed).toEqual([]);
  await server.stop();
});

test("a default model that the host does not have is reported with those that it has", async () => {
  const { failed } = await examine(home, { env: { ROOST_MODEL: "local:qwen" } });
  const mend = "set ROOST_MODEL to one of local:smollm2-135m-instruct, or add it";
  expect(failed).toEqual([{ check: "model", ok: false, detail: "there is no model local:qwen", mend }]);
});

test("a data folder that does not exist yet passes, and is not created", async () => {
  const other = makeHome();
  rmSync(other.dataDir, { recursive: true });
  expect(await examine(other)).toMatchObject({ code: 0, failed: [] });
  expect(existsSync(other.dataDir)).toBe(false);
  other.remove();
});

test("an impossible data folder and a database that cannot be opened are reported with the fix", async () => {
  const other = makeHome();
  const failedAt = async (dataDir: string) => (await examine({ ...other, dataDir })).failed;
  const file = join(other.folder, "file");
  writeFileSync(file, "");
  expect(await failedAt(file)).toMatchObject([{ check: "disk", detail: `${file} is a file`, mend: MEND }]);
  expect(await failedAt(join(file, "below"))).toMatchObject([
    { check: "disk", detail: `${file}/below cannot be created: ${file} is a file`, mend: MEND },
  ]);
  const link = join(other.folder, "link");
  symlinkSync("/nowhere/disk", link);
  expect(await failedAt(link)).toMatchObject([
    {
      check: "disk",
      detail: `${link} cannot be created: ${link} is a symbolic link to /nowhere/disk, which does not exist`,
      mend: expect.stringContaining("mount its disk"),
    },
  ]);
  const database = join(other.dataDir, "roost.db");
  mkdirSync(database, { mode: 0o700 });
  expect((await failedAt(other.dataDir))[0]).toEqual({
    check: "database",
    ok: false,
    detail: `${database} cannot be opened: it is a folder`,
    mend: "move it elsewhere",
  });
  other.remove();
});

const MEND = "give another folder with --data";

test("files that others can read are reported, with the command that fixes it", async () => {
  const path = join(home.dataDir, "master.key");
  chmodSync(path, 0o644);
  const { code, failed } = await examine(home);
  chmodSync(path, 0o600);
  expect(code).toBe(1);
  expect(failed).toMatchObject([{ check: "disk", mend: `chmod go-rwx '${path}'` }]);
});

test("a key file without a key is reported", async () => {
  const path = join(home.dataDir, "host-keys.json");
  copyFileSync(path, `${path}.kept`);
  writeFileSync(path, "nonsense");
  const { failed } = await examine(home);
  copyFileSync(`${path}.kept`, path);
  rmSync(`${path}.kept`);
  expect(failed).toMatchObject([{ check: "keys", detail: expect.stringContaining("host-keys.json") }]);
});

test("host keys that were lost are reported once somebody has used them, by doctor and by the start", async () => {
  const other = makeHome();
  await using first = await startBinary({ dataDir: other.dataDir });
  expect(JSON.stringify(first.logs)).not.toContain("host-keys.json");
  await first.stop();
  const { store, accounts } = openFoundation(other);
  accounts.create({ email: "ada@example.org", name: "Ada", credit: 0n, note: "test" });
  store.close();
  rmSync(join(other.dataDir, "host-keys.json"));
  expect((await examine(other)).failed).toMatchObject([
    { check: "keys", detail: expect.stringContaining("host-keys.json is missing") },
  ]);
  await using second = await startBinary({ dataDir: other.dataDir });
  expect(second.logs).toContainEqual(
    expect.objectContaining({ level: "warn", msg: expect.stringContaining("host-keys.json is missing") }),
  );
  await second.stop();
  other.remove();
});

test("a damaged database is reported, and nothing is changed", async () => {
  const other = makeHome();
  await operate(other, ["invite", "create"]);
  writeFileSync(join(other.dataDir, "roost.db"), "this is no database, though it is long enough to be read as one");
  const { code, failed } = await examine(other);
  expect(code).toBe(1);
  expect(failed[0]).toMatchObject({ check: "database", detail: expect.stringContaining("damaged") });
  other.remove();
});

test("a database that was emptied is reported, and not taken for that of a new host", async () => {
  const other = makeHome();
  const server = await startServer(other);
  await server.stop();
  writeFileSync(join(other.dataDir, "roost.db"), "");
  writeFileSync(join(other.dataDir, "audit-head.json"), "{}", { mode: 0o600 });
  const { code, failed } = await examine(other);
  expect([code, failed.length]).toEqual([1, 1]);
  expect(failed[0]).toMatchObject({
    check: "database",
    detail: expect.stringContaining(
      "is empty, though host-keys.json, audit-head.json, master.key, wallet.json beside it",
    ),
    mend: "restore the latest copy of the data folder, or remove roost.db and audit-head.json to begin anew",
  });
  expect((await operate(other, ["invite", "create"])).errors).toContain("is empty, though");
  expect(readFileSync(join(other.dataDir, "roost.db"))).toHaveLength(0);

  for (const name of ["roost.db", "audit-head.json"]) rmSync(join(other.dataDir, name));
  await (await startServer(other)).stop();
  expect((await examine(other)).failed).toEqual([]);
  other.remove();
});

test("a cached balance that is not the sum of its postings is reported", async () => {
  const other = makeHome();
  await operate(other, ["invite", "create"]);
  const { store, accounts } = openFoundation(other);
  const { accountId } = accounts.create({ email: "a@example.org", name: "A", credit: 1_000_000n, note: "test" });
  store.sqlite.run("UPDATE balances SET balance = 2000000 WHERE account_id = ?", [accountId]);
  store.close();
  const { failed } = await examine(other);
  expect(failed.filter(({ check }) => check === "database")).toMatchObject([
    { check: "database", detail: `the balance of ${accountId} is 2.000000, but its postings sum to 1.000000` },
  ]);
  other.remove();
});

test("a data folder of a newer Roost is reported", async () => {
  const other = makeHome();
  await operate(other, ["invite", "create"]);
  const { store } = openFoundation(other);
  store.sqlite.run("PRAGMA user_version = 999");
  store.close();
  expect((await examine(other)).failed).toMatchObject([{ check: "database", mend: expect.stringContaining("newer") }]);
  const refused = await operate(other, ["invite", "list"]);
  expect(refused.code).toBe(1);
  expect(refused.errors).toContain("newer Roost");
  other.remove();
});

test("a model server is asked for its models", async () => {
  const mock = startMockModelServer();
  const env = { ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: mock.url };
  expect((await examine(home, { env })).failed).toEqual([]);
  const other = await examine(home, { env: { ...env, ROOST_MODEL: "openai:other" } });
  expect(other.failed).toMatchObject([{ check: "model", mend: expect.stringContaining("mock") }]);
  await mock.stop();
  const gone = await examine(home, { env });
  expect(gone.failed).toMatchObject([{ check: "model", mend: expect.stringContaining("ROOST_OPENAI_BASE_URL") }]);
});

test("an unreachable mail server is reported, without the password", async () => {
  const env = { ROOST_SMTP_URL: "smtp://user:hush-hush@127.0.0.1:1", ROOST_MAIL_FROM: "roost@example.org" };
  const { failed } = await examine(home, { env });
  expect(failed).toMatchObject([{ check: "mail", detail: expect.stringContaining("127.0.0.1:1") }]);
  expect(JSON.stringify(failed)).not.toContain("hush-hush");
});

/** A port that nobody listens on. */
const NOBODY = "http://127.0.0.1:1/key-in-the-path";

test("unreachable nodes are reported with what it means for payments, and without their URLs' paths", async () => {
  const gone = await examine(home, { env: { ROOST_BASE_RPC_URL: NOBODY } });
  expect(gone.code).toBe(1);
  expect(gone.failed).toMatchObject([
    {
      check: "rpc",
      detail: expect.stringMatching(/^base: http:\/\/127\.0\.0\.1:1 .*no payment on base is credited/),
      mend: expect.stringContaining("ROOST_BASE_RPC_URL"),
    },
  ]);
  expect(JSON.stringify(gone.failed)).not.toContain("key-in-the-path");
  const half = await examine(home, { env: { ROOST_BASE_RPC_URL: `${chain.url},${NOBODY}` } });
  expect(half.failed[0]?.detail).toContain("no payment on base is credited");
  const most = await examine(home, { env: { ROOST_BASE_RPC_URL: `${chain.url},${chain.url}/?2,${NOBODY}` } });
  expect(most.failed[0]?.detail).toContain("Payments still work");
});

test.skipIf(!canCutNetwork)("a host without internet access passes if no nodes are configured", () => {
  const words = [process.execPath, join(import.meta.dir, "../../src/main.ts"), "doctor", "--json"];
  const { stdout, exitCode } = Bun.spawnSync([...OFFLINE, ...words, "--data", home.dataDir], {
    env: { ...home.env, PATH: process.env.PATH ?? "" },
  });
  const rpc = (JSON.parse(stdout.toString()) as Finding[]).find(({ check }) => check === "rpc");
  expect([exitCode, rpc?.ok, rpc?.detail]).toEqual([
    0,
    true,
    expect.stringContaining("quotes still go out and say so"),
  ]);
});

test("a facilitator is shown with what it settles here, and reported if it does not answer", async () => {
  await using facilitator = startFacilitator([chain]);
  const asked = async (url: string, more = {}) => {
    const { all } = await examine(home, { env: { ROOST_FACILITATOR_URL: url, ...more } });
    return all.find(({ check }) => check === "facilitator");
  };
  /** It has a second and a half to answer, which a busy machine may exceed. */
  const answered = async (more = {}) => {
    for (;;) {
      const finding = await asked(facilitator.url, more);
      if (finding?.ok !== false) return finding;
    }
  };
  const finding = await answered();
  expect(finding).toMatchObject({
    ok: true,
    detail: `${new URL(facilitator.url).origin} settles payments on base`,
  });
  expect((await answered({ ROOST_MINIMUM_LAUNCH_BALANCE: "2" }))?.detail).toEndWith(
    "on base, 1.00 at a time: before an instance, which needs 2.00 here, x402 clients top up in steps",
  );
  expect(await asked("http://127.0.0.1:1/secret")).toMatchObject({
    ok: false,
    detail: "http://127.0.0.1:1 does not say what it settles",
    mend: expect.stringContaining("ROOST_FACILITATOR_URL"),
  });
});

test("a node of another chain is reported", async () => {
  const env = { ROOST_NETWORKS: "polygon", ROOST_POLYGON_RPC_URL: chain.url };
  expect((await examine(home, { env })).failed).toMatchObject([
    { check: "rpc", detail: expect.stringContaining("answers for chain 8453 instead of 137") },
  ]);
});

test("a wallet file whose key does not match its address is reported", async () => {
  const path = join(home.dataDir, "wallet.json");
  const kept = readFileSync(path, "utf8");
  const { address, privateKey } = JSON.parse(kept);
  writeFileSync(path, JSON.stringify({ address, privateKey: `0x${"11".repeat(32)}` }));
  const { failed } = await examine(home);
  writeFileSync(path, kept);
  expect(failed).toMatchObject([{ check: "wallet", detail: expect.stringContaining(address) }]);
  expect(JSON.stringify(failed)).not.toContain("1111");
  expect((await examine(home)).all.find(({ check }) => check === "wallet")?.detail).not.toContain(privateKey.slice(2));
});

test("an address that the server could not listen on is reported, unless the server is on it", async () => {
  const server = await startServer(home);
  const env = { ROOST_PORT: new URL(server.url).port };
  expect((await examine(home, { env })).failed).toEqual([]);
  const other = makeHome();
  expect((await examine(other, { env })).failed).toEqual([
    {
      check: "address",
      ok: false,
      detail: `port ${env.ROOST_PORT} of 127.0.0.1 is in use`,
      mend: "choose another with --port or ROOST_PORT, 0 picks a free one",
    },
  ]);
  other.remove();
  await server.stop();
});

test("a configured address with a wrong checksum is reported; one without a checksum is accepted", async () => {
  const good = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
  const mistyped = good.replace("5aAe", "5aae");
  for (const address of [good, good.toLowerCase(), `0x${good.slice(2).toUpperCase()}`]) {
    expect((await examine(home, { env: { ROOST_WALLET: address } })).failed).toEqual([]);
  }
  expect((await examine(home, { env: { ROOST_WALLET: mistyped } })).failed).toMatchObject([
    { check: "wallet", mend: expect.stringContaining("ROOST_WALLET") },
  ]);
});
