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
 * `<data>/wallet.json`, mode 0600 (docs/contract/operations.md, Data folder). Loads the libraries only to create the pair.
 */
export async function openWallet(dataDir: string, configured: Address | null): Promise<Address> {
  if (configured !== null) return configured;
  const path = walletFile(dataDir);
  if (!existsSync(path)) writePrivateFile(path, JSON.stringify(await createWallet(), null, 2));
  return readWallet(dataDir).address;
}

/** viem's own `privateKeyToAddress` first makes a table for thousands of keys, which takes as long as half a start. */
async function createWallet(): Promise<Wallet> {
  const [{ secp256k1 }, { publicKeyToAddress }] = await Promise.all([
    import("@noble/curves/secp256k1.js"),
    import("viem/accounts"),
  ]);
  secp256k1.Point.BASE.precompute(WINDOW_FOR_ONE_KEY);
  const privateKey = secp256k1.utils.randomSecretKey();
  const address = publicKeyToAddress(toHex(secp256k1.getPublicKey(privateKey, false)));
  return { address, privateKey: toHex(privateKey) };
}

/** The size of the window, in bits, with the fewest additions in all for a single multiplication. */
const WINDOW_FOR_ONE_KEY = 2;

const toHex = (bytes: Uint8Array) => `0x${bytes.toHex()}` as const;

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
