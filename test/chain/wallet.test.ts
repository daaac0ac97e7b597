import { expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pino from "pino";
import { privateKeyToAddress } from "viem/accounts";
import { openWallet, readWallet, walletFile } from "../../src/chain/wallet.ts";
import { startTestServer } from "../support/test-server.ts";

test("a new data folder gets a key pair of its own, whose address is that of the key, and keeps it", async () => {
  const folder = mkdtempSync(join(tmpdir(), "roost-wallet-"));
  using _ = { [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) };
  const wallets = Array.from({ length: 20 }, () => mkdtempSync(join(folder, "data-")));
  const addresses: string[] = [];
  for (const dataDir of wallets) {
    const address = await openWallet(dataDir, null);
    expect(readWallet(dataDir).address).toBe(privateKeyToAddress(readWallet(dataDir).privateKey));
    expect(await openWallet(dataDir, null)).toBe(address);
    addresses.push(address);
  }
  expect(new Set(addresses).size).toBe(wallets.length);
});

test("a host that has accounts does not get another address without a word: the log and the audit log have it", async () => {
  const lines: string[] = [];
  const log = pino({ level: "warn" }, { write: (line: string) => void lines.push(JSON.parse(line).msg) });
  const server = await startTestServer({}, { log });
  await using _ = { [Symbol.asyncDispose]: () => server.stop() };
  const told = () => lines.filter((line) => line.startsWith("wallet.json is missing, and is created anew"));
  const created = () =>
    server.foundation.store.sqlite.query("SELECT subject FROM audit WHERE action = 'wallet.create'").all();
  await server.signUp();
  await server.restart();
  expect([told(), created()]).toEqual([[], []]);
  await server.restart(() => rmSync(walletFile(server.dataDir)));
  expect(existsSync(walletFile(server.dataDir))).toBe(true);
  expect(told()).toHaveLength(1);
  expect(created()).toEqual([{ subject: readWallet(server.dataDir).address }]);
});
