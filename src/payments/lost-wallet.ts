import { existsSync } from "node:fs";
import { walletFile } from "../chain/wallet.ts";
import type { Db } from "../storage/store.ts";
import { invoiceQueries } from "./invoice-queries.ts";

/** Open quotes name an address whose key is missing: payments to it would be lost. */
export interface LostWallet {
  detail: string;
  mend: string;
}

/**
 * Finds out whether the next start would create another address than open quotes name; null if not. `wallet` is the
 * configured address, `now` in milliseconds since 1970.
 */
export function findLostWallet(
  db: Db,
  now: number,
  { dataDir, wallet }: { dataDir: string; wallet: string | null },
): LostWallet | null {
  const path = walletFile(dataDir);
  if (wallet !== null || existsSync(path)) return null;
  const open = invoiceQueries(db).countOpen(now);
  if (open === 0) return null;
  const quotes = open === 1 ? "an open quote names its address" : `${open} open quotes name its address`;
  return {
    detail: `${path} is missing, and ${quotes}: with a new wallet, what is paid there is lost`,
    mend:
      "restore the file from a backup that includes the keys (or set ROOST_WALLET to the address, if you have its key), " +
      "or give up those quotes: roost wallet give-up",
  };
}
