import { afterAll, beforeAll, expect, test } from "bun:test";
import { openFoundation } from "../../src/app/foundation.ts";
import { makeHome, operate, run } from "./command-line.ts";

const home = makeHome();
const ADA = "ada@example.org";
beforeAll(() => {
  const { store, accounts } = openFoundation(home);
  accounts.create({ email: ADA, name: "Ada", credit: 0n, note: "test" });
  store.close();
});
afterAll(() => home.remove());

const limitsOf = async (...words: string[]) =>
  (await operate(home, ["account", "limit", ADA, ...words, "--json"])).json().limits;
const DEFAULTS = {
  reads: { value: 5_000, isDefault: true },
  writes: { value: 200, isDefault: true },
  streams: { value: 1_000, isDefault: true },
  instances: { value: 100, isDefault: true },
  agents: { value: 1_000, isDefault: true },
  workspaceBytes: { value: 1024 ** 3, isDefault: true },
  tokensPerDay: { value: null, isDefault: true },
  tokensPerMonth: { value: null, isDefault: true },
};

test("an account's limits are shown, changed and reset one by one", async () => {
  expect(await limitsOf()).toEqual({ monthlyLimit: null, ...DEFAULTS });
  const changed = {
    ...DEFAULTS,
    instances: { value: 3, isDefault: false },
    workspaceBytes: { value: 2 ** 40, isDefault: false },
    reads: { value: 5_000, isDefault: false },
  };
  const words = ["--instances", "3", "--workspace-bytes", String(2 ** 40), "--reads", "5000"];
  expect(await limitsOf(...words)).toEqual({ monthlyLimit: null, ...changed });
  expect((await operate(home, ["account", "show", ADA, "--json"])).json().limits).toMatchObject(changed);
  expect((await operate(home, ["account", "show", ADA])).output).toMatch(
    /Limits +reads 5000, instances 3, workspace-bytes 1099511627776\n/,
  );
  const { output } = await operate(home, ["account", "limit", ADA]);
  expect(output).toMatch(/instances +3 +this account\n/);
  expect(output).toMatch(/agents +1000 +every account\n/);
  expect(await limitsOf("--workspace-bytes", "default", "--reads", "default", "--agents", "0")).toMatchObject({
    ...DEFAULTS,
    instances: { value: 3, isDefault: false },
    agents: { value: 0, isDefault: false },
  });
});

test("default is the host's own limit, from its settings", async () => {
  const ran = await operate(home, ["account", "limit", ADA, "--json"], { env: { ROOST_MAX_STREAMS: "7" } });
  expect(ran.json().limits.streams).toEqual({ value: 7, isDefault: true });
});

test("tokens of models are limited, above or below what the host's settings say", async () => {
  const env = { ROOST_TOKENS_PER_DAY: "1000" };
  const limited = async (...words: string[]) =>
    (await operate(home, ["account", "limit", ADA, ...words, "--json"], { env })).json().limits;
  expect(await limited("--tokens-per-month", "50000")).toMatchObject({
    tokensPerDay: { value: 1_000, isDefault: true },
    tokensPerMonth: { value: 50_000, isDefault: false },
  });
  expect(await limited("--tokens-per-day", "9000000000000")).toMatchObject({
    tokensPerDay: { value: 9e12, isDefault: false },
  });
  expect(await limited("--tokens-per-day", "none")).toMatchObject({ tokensPerDay: { value: null, isDefault: false } });
  expect((await operate(home, ["account", "limit", ADA], { env })).output).toMatch(
    /tokens-per-day +none +this account/,
  );
  expect((await operate(home, ["account", "show", ADA], { env })).output).toMatch(/Limits .*tokens-per-day none/);
  await limited("--tokens-per-day", "9000000000000");
  const { output } = await operate(home, ["account", "limit", ADA], { env });
  expect(output).toMatch(/tokens-per-day +9000000000000 +this account\n/);
  expect(output).toMatch(/tokens-per-month +50000 +this account\n/);
  expect(await limited("--tokens-per-day", "default", "--tokens-per-month", "default")).toMatchObject({
    tokensPerDay: { value: 1_000, isDefault: true },
    tokensPerMonth: { value: null, isDefault: true },
  });
});

test("the audit log records changes, and not looking", async () => {
  const rows = async () =>
    (await operate(home, ["audit", "--json"]))
      .json()
      .filter(({ action }: { action: string }) => action === "account.limit");
  const before = (await rows()).length;
  await limitsOf("--writes", "9", "--streams", "default");
  await limitsOf();
  const all = await rows();
  expect(all.length).toBe(before + 1);
  expect(all).toContainEqual(expect.objectContaining({ actor: "operator", detail: { writes: 9, streams: "default" } }));
});

test("an invalid limit is wrong usage, and an unknown account a failure", async () => {
  for (const words of [
    ["--instances", "-1"],
    ["--instances", "1.5"],
    ["--instances", ""],
    ["--reads", "0"],
    ["--agents", "1000001"],
    ["--tokens", "1"],
    ["--instances", "none"],
    ["--tokens-per-day", "-1"],
    ["--tokens-per-month", "many"],
  ]) {
    expect((await operate(home, ["account", "limit", ADA, ...words])).code).toBe(2);
  }
  expect(await operate(home, ["account", "limit", "nobody@example.org"])).toMatchObject({ code: 1, output: "" });
  expect((await run(home, ["account", "limit", "--help"])).output).toContain("--workspace-bytes <n>");
});
