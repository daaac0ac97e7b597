import { type HostKeys, hasHostKeys, openHostKeys } from "../accounts/host-keys.ts";
import type { Address } from "../chain/networks.ts";
import { openWallet } from "../chain/wallet.ts";
import type { Config } from "../config.ts";
import type { Log } from "../lib/log.ts";
import { invoiceQueries } from "../payments/invoice-queries.ts";
import { findLostWallet, nextAddress } from "../payments/lost-wallet.ts";
import type { Foundation } from "./foundation.ts";

const LOST_KEYS =
  "host-keys.json is missing, and is created anew: everybody has to sign in again, and earlier signatures of the audit log " +
  "cannot be verified; if a copy of the data folder has the file, stop the server and put it back";
const LOST_WALLET =
  "wallet.json is missing, and is created anew: payments are received at another address now; if a copy of the data folder " +
  "has the file, stop the server and put it back";

/** By what a host is known: the keys that sign for it, and the address at which it is paid. */
export interface Identity {
  hostKeys: HostKeys;
  recipient: Address;
}

/**
 * Opens both, or creates them at the first start; says so where a host that has accounts gets others. Throws if payments
 * are still expected at an address that is lost.
 */
export async function openIdentity(
  { store, audit, accounts, clock }: Pick<Foundation, "store" | "audit" | "accounts" | "clock">,
  config: Config,
  log: Log,
): Promise<Identity> {
  const { dataDir } = config;
  const isFirstStart = accounts.list(null, 1).length === 0;
  if (!hasHostKeys(dataDir) && !isFirstStart) log.warn(LOST_KEYS);
  const hostKeys = openHostKeys(dataDir);
  const lost = findLostWallet(store.db, clock.now(), config);
  if (lost !== null) throw new Error(`${lost.detail}; ${lost.mend}`);
  const hasWallet = nextAddress(config) !== null;
  const recipient = await openWallet(dataDir, config.wallet as Address | null);
  if (!hasWallet && !isFirstStart) {
    log.warn(LOST_WALLET);
    audit.append({ actor: "host", action: "wallet.create", subject: recipient });
  }
  store.transaction(() => invoiceQueries(store.db).noteAddress(recipient));
  return { hostKeys, recipient };
}
