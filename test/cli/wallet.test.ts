import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { privateKeyToAddress } from "viem/accounts";
import { openFoundation } from "../../src/app/foundation.ts";
import { NO_NODES } from "../support/no-nodes.ts";
import { type Home, makeHome, onTerminal, operate, startServer } from "./command-line.ts";

const CONFIGURED = `0x${"ab".repeat(20)}`;
let home: Home;
let wallet: { address: string; privateKey: `0x${string}` };
beforeAll(async () => {
  home = makeHome();
  const server = await startServer(home, { ROOST_NETWORKS: "polygon,base" });
  await server.stop();
  wallet = JSON.parse(readFileSync(join(home.dataDir, "wallet.json"), "utf8"));
});
afterAll(() => home.remove());

const exported = async () =>
  (await operate(home, ["audit", "--json"]))
    .json()
    .filter(({ action }: { action: string }) => action === "wallet.export");
const endOf = ({ address }: { address: string }) => address.slice(-6);

describe("roost wallet show", () => {
  test("shows the address, its networks and where its key is, but not the key", async () => {
    const env = { ROOST_NETWORKS: "polygon,base" };
    const keyFile = join(home.dataDir, "wallet.json");
    const { address } = wallet;
    const json = await operate(home, ["wallet", "show", "--json"], { env });
    expect(json.json()).toEqual({ address, networks: ["polygon", "base"], keyFile });
    const { output } = await operate(home, ["wallet", "show"], { env });
    expect(output).toBe(`Address   ${address}\nNetworks  polygon, base\nKey       ${keyFile}\n`);
    expect(json.output + output).not.toContain(wallet.privateKey.slice(2));
  });

  test("a configured address is shown, and has no key here", async () => {
    const env = { ROOST_WALLET: CONFIGURED };
    const { output } = await operate(home, ["wallet", "show", "--json"], { env });
    expect(JSON.parse(output)).toMatchObject({ address: CONFIGURED, keyFile: null });
    expect((await operate(home, ["wallet", "show"], { env })).output).toContain("not on this host");
  });

  test("before the first start there is none, and none is created", async () => {
    const other = makeHome();
    for (const words of ["show", "export"]) {
      const { code, errors } = await operate(other, ["wallet", words]);
      expect([code, errors]).toEqual([
        1,
        expect.stringMatching(/^roost: there is no Roost data in .* The first start creates it: roost serve --data /),
      ]);
    }
    expect(existsSync(join(other.dataDir, "wallet.json"))).toBe(false);
    other.remove();
  });
});

describe("roost wallet export", () => {
  test("prints only the key once the end of the address is typed, and records it in the audit log", async () => {
    const before = (await exported()).length;
    const { code, output, errors } = await operate(home, ["wallet", "export"], { input: `${endOf(wallet)}\n` });
    expect([code, output]).toEqual([0, `${wallet.privateKey}\n`]);
    expect(privateKeyToAddress(wallet.privateKey)).toBe(wallet.address as `0x${string}`);
    expect(errors).toContain(wallet.address);
    expect(errors).not.toContain(wallet.privateKey.slice(2));
    const rows = await exported();
    expect(rows).toHaveLength(before + 1);
    expect(JSON.stringify(rows)).toContain(wallet.address);
    expect(JSON.stringify(rows)).not.toContain(wallet.privateKey.slice(2));
    const json = await operate(home, ["wallet", "export", "--json"], { input: endOf(wallet).toLowerCase() });
    expect(json.json()).toEqual(wallet);
  });

  test("prints and records nothing for any other input", async () => {
    const before = (await exported()).length;
    for (const input of ["", "\n", "yes\n", `${endOf(wallet).slice(1)}\n`, `${wallet.address}\n`, "ffffffffff\n"]) {
      const { code, output, errors } = await operate(home, ["wallet", "export"], { input });
      expect([input, code, output]).toEqual([input, 1, ""]);
      expect(errors).not.toContain(wallet.privateKey.slice(2));
    }
    expect(await exported()).toHaveLength(before);
  });

  test("asks on a terminal", async () => {
    await using terminal = onTerminal(home, ["wallet", "export", "--data", home.dataDir]);
    await terminal.until(/Type the last 6 characters of the address: /);
    terminal.type(`${endOf(wallet)}\r`);
    expect(await terminal.exited).toBe(0);
    expect(terminal.screen()).toContain(wallet.privateKey);
  });

  test("has no key to print for a configured address", async () => {
    const input = `${CONFIGURED.slice(-6)}\n`;
    const { code, output, errors } = await operate(home, ["wallet", "export"], {
      input,
      env: { ROOST_WALLET: CONFIGURED },
    });
    expect([code, output]).toEqual([1, ""]);
    expect(errors).toContain("there is no private key here");
  });

  test("prints no key that does not match the address", async () => {
    const path = join(home.dataDir, "wallet.json");
    const kept = readFileSync(path);
    const input = `${CONFIGURED.slice(-6)}\n`;
    for (const broken of [JSON.stringify({ ...wallet, address: CONFIGURED }), "{}", "nonsense"]) {
      writeFileSync(path, broken);
      const { code, output } = await operate(home, ["wallet", "export"], { input });
      expect([code, output]).toEqual([1, ""]);
    }
    writeFileSync(path, kept);
  });
});

/** A quote that is open for an hour, to this address; "" is a quote from before addresses were recorded. */
function quote(home: Home, payTo = ""): void {
  const { store, accounts, clock } = openFoundation(home);
  const { accountId } = accounts.create({ email: "payer@example.org", name: "Payer", credit: 0n, note: "test" });
  store.sqlite.run(
    `INSERT INTO invoices (invoice_id, account_id, amount, status, created_at, expires_at, pay_to)
     VALUES ('inv_1', ?, 1000042, 'open', ?, ?, ?)`,
    [accountId, clock.now(), clock.now() + 3_600_000, payTo],
  );
  store.close();
}

const checkOf = async (home: Home, env: Record<string, string> = {}) =>
  (await operate(home, ["doctor", "--json"], { env: { ...NO_NODES, ...env } }))
    .json()
    .find(({ check }: { check: string }) => check === "wallet");

describe("open quotes that name another address", () => {
  const moved = makeHome();
  const other = { ROOST_WALLET: CONFIGURED };
  let own: string;
  beforeAll(async () => {
    await (await startServer(moved)).stop();
    own = JSON.parse(readFileSync(join(moved.dataDir, "wallet.json"), "utf8")).address;
    quote(moved, own);
  });
  afterAll(() => moved.remove());

  test("stop the start and are reported by doctor, with both ways to continue", async () => {
    const detail = `an open quote names the address ${own}, and payments would be looked for at ${CONFIGURED}`;
    const mend = "unset ROOST_WALLET until it is paid or over, within a day, or give it up: roost wallet give-up";
    expect(await checkOf(moved, other)).toMatchObject({ ok: false, detail, mend: expect.stringContaining(mend) });
    const { code, errors } = await operate(moved, ["serve", "--port", "0"], { env: other });
    expect([code, errors]).toEqual([1, expect.stringContaining(`roost: ${detail}; ${mend}`)]);
  });

  test("do not once the address is set again, in upper or lower case", async () => {
    expect(await checkOf(moved)).toMatchObject({ ok: true });
    await (await startServer(moved)).stop();
    await (await startServer(moved, { ROOST_WALLET: own.toLowerCase() })).stop();
    const refused = await operate(moved, ["wallet", "give-up"]);
    expect([refused.code, refused.errors]).toEqual([1, expect.stringContaining("no quote has to be given up")]);
  });

  test("do not once the quotes are given up", async () => {
    const given = await operate(moved, ["wallet", "give-up"], { env: other });
    expect(given.output).toBe(`Gave up one quote: from the next start on, payments go to ${CONFIGURED}.\n`);
    expect(await checkOf(moved, other)).toMatchObject({ ok: true });
    await (await startServer(moved, other)).stop();
  });

  test("are reported also if they were made before addresses were recorded", async () => {
    const { store } = openFoundation(moved);
    store.sqlite.run("UPDATE invoices SET status = 'open', pay_to = ''");
    store.close();
    await (await startServer(moved)).stop();
    expect((await operate(moved, ["serve", "--port", "0"], { env: other })).errors).toContain(own);
  });
});

describe("a wallet that is missing while quotes name its address", () => {
  const lost = makeHome();
  const path = join(lost.dataDir, "wallet.json");
  afterAll(() => lost.remove());
  const walletCheck = () => checkOf(lost);

  test("is fine before anybody got a quote: the next start creates one", async () => {
    await (await startServer(lost)).stop();
    rmSync(path);
    expect(await walletCheck()).toMatchObject({ ok: true, detail: "none yet: the next start creates one" });
    await (await startServer(lost)).stop();
    expect(existsSync(path)).toBe(true);
  });

  test("stops the start and is reported by doctor, each with the fix, until the file is back", async () => {
    const kept = readFileSync(path);
    const { address } = JSON.parse(kept.toString());
    quote(lost, address);
    expect(await walletCheck()).toMatchObject({ ok: true });
    rmSync(path);
    const detail = `${path} is missing, and an open quote names the address ${address}: what is paid there would be lost`;
    const mend = expect.stringMatching(
      /put the file back from a backup .* or give it up: roost wallet give-up( --data \S+)?$/,
    );
    expect(await walletCheck()).toMatchObject({ ok: false, detail, mend });
    const { code, errors } = await operate(lost, ["serve", "--port", "0"]);
    expect([code, errors]).toEqual([1, expect.stringContaining(`roost: ${detail}; put the file back `)]);
    expect(existsSync(path)).toBe(false);

    writeFileSync(path, kept, { mode: 0o600 });
    const refused = await operate(lost, ["wallet", "give-up"]);
    expect([refused.code, refused.errors]).toEqual([1, expect.stringContaining("no quote has to be given up")]);
    const server = await startServer(lost);
    rmSync(path);
    expect((await operate(lost, ["wallet", "give-up"])).errors).toContain("another roost is serving");
    await server.stop();
  });

  test("is replaced once the quotes are given up, which the audit log records", async () => {
    expect((await operate(lost, ["wallet", "give-up"])).output).toBe(
      "Gave up one quote: the next start creates a new wallet.\n",
    );
    const rows = (await operate(lost, ["audit", "--json"])).json();
    expect(rows.filter(({ action }: { action: string }) => action === "wallet.give-up")).toHaveLength(1);
    expect(await walletCheck()).toMatchObject({ ok: true });
    await (await startServer(lost)).stop();
    expect(existsSync(path)).toBe(true);
  });
});
