import { existsSync } from "node:fs";
import { join } from "node:path";
import { readPrivateJson, writePrivateFile } from "../lib/private-file.ts";
import type { Address } from "./networks.ts";

/** A key pair that receives USDC. */
export interface Wallet {
  address: Address;
  privateKey: `0x${string}`;
}

export const walletFile = (dataDir: string): string => join(dataDir, "wallet.json");

/**
 * The address that receives USDC: the configured one, or that of a key pair created at the first start and kept in
 * `<data>/wallet.json`, mode 0600 (docs/contract/operations.md, Data folder). Loads viem only to create the pair.
 */
export async function openWallet(dataDir: string, configured: Address | null): Promise<Address> {
  if (configured !== null) return configured;
  const path = walletFile(dataDir);
  if (!existsSync(path)) {
    const { generatePrivateKey, privateKeyToAddress } = await import("viem/accounts");
    const privateKey = generatePrivateKey();
    writePrivateFile(path, JSON.stringify({ address: privateKeyToAddress(privateKey), privateKey }, null, 2));
  }
  return readWallet(dataDir).address;
}

/** The key pair of `<data>/wallet.json`. Throws, saying how to fix it, if the file holds none. */
export function readWallet(dataDir: string): Wallet {
  const path = walletFile(dataDir);
  const { address, privateKey } = Object(readPrivateJson(path)) as Partial<Wallet>;
  if (/^0x[0-9a-f]{40}$/i.test(`${address}`) && /^0x[0-9a-f]{64}$/i.test(`${privateKey}`)) {
    return { address, privateKey } as Wallet;
  }
  throw new Error(`${path} holds no key; restore it from a copy of the data folder that includes the keys`);
}

/** Whether this is the address's key, which gives access to what was paid there. */
export async function isKeyForAddress({ address, privateKey }: Wallet): Promise<boolean> {
  const { privateKeyToAddress } = await import("viem/accounts");
  try {
    return privateKeyToAddress(privateKey) === address;
  } catch {
    return false;
  }
}

/**
 * Whether an address passes its checksum, which reveals typing errors: mixed-case addresses carry one (EIP-55), those
 * in one case do not.
 */
export async function hasValidChecksum(address: Address): Promise<boolean> {
  const letters = address.slice(2);
  if (letters === letters.toLowerCase() || letters === letters.toUpperCase()) return true;
  const { getAddress } = await import("viem");
  return getAddress(address.toLowerCase() as Address) === address;
}
