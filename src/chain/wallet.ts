import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { writePrivateFile } from "../lib/private-file.ts";
import type { Address } from "./networks.ts";

/**
 * The address that receives USDC: the configured one, else a key pair made at first start and kept in
 * `<data>/wallet.json`, mode 0600 (operations.md). viem is loaded only when the pair is made.
 */
export async function openWallet(dataDir: string, configured: Address | null): Promise<Address> {
  if (configured !== null) return configured;
  const path = join(dataDir, "wallet.json");
  if (!existsSync(path)) {
    const { generatePrivateKey, privateKeyToAddress } = await import("viem/accounts");
    const privateKey = generatePrivateKey();
    writePrivateFile(path, JSON.stringify({ address: privateKeyToAddress(privateKey), privateKey }, null, 2));
  }
  return (JSON.parse(readFileSync(path, "utf8")) as { address: Address }).address;
}
