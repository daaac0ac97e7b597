import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Address } from "../../chain/networks.ts";
import { openWallet } from "../../chain/wallet.ts";
import { Failure } from "../failure.ts";
import { printJson } from "../output.ts";
import { type DataOptions, readConfig } from "./data-folder.ts";

/** `roost wallet show`: the address that receives USDC, never its private key. */
export async function showWallet(options: DataOptions & { json?: true }): Promise<void> {
  const { config } = readConfig(options);
  if (config.wallet === null && !existsSync(join(config.dataDir, "wallet.json"))) {
    throw new Failure(`there is no wallet in ${config.dataDir}`, "the first `roost serve` makes one");
  }
  const address = await openWallet(config.dataDir, config.wallet as Address | null);
  if (options.json) printJson({ address });
  else console.log(address);
}
