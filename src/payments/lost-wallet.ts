import { existsSync } from "node:fs";
import { walletFile } from "../chain/wallet.ts";
import type { Db } from "../storage/store.ts";
import { invoiceQueries } from "./invoice-queries.ts";

/** Open quotes name an address whose key is gone from here: what is paid there cannot be had, and is not looked for. */
export interface LostWallet {
  detail: string;
  mend: string;
}

/**
 * Whether the next start would make another address than the open quotes name; null where it would not. `wallet`: the
 * configured address; `now`: milliseconds since 1970.
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
    detail: `${path} is gone, and ${quotes}: with a new one, what is paid there is lost`,
    mend:
      "put the file back from a backup that has the keys (or set ROOST_WALLET to the address, where its key is yours), " +
      "or give those quotes up: roost wallet give-up",
  };
}
