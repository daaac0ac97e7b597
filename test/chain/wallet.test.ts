import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { privateKeyToAddress } from "viem/accounts";
import { openWallet, readWallet } from "../../src/chain/wallet.ts";

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
