import { existsSync } from "node:fs";
import { readWallet, walletFile } from "../chain/wallet.ts";
import type { Db } from "../storage/store.ts";
import { invoiceQueries } from "./invoice-queries.ts";

/** Open quotes name an address that is no longer this host's: it does not look for payments there. */
export interface LostWallet {
  detail: string;
  mend: string;
}

interface Place {
  dataDir: string;
  /** The configured address. */
  wallet: string | null;
}

/** The address that payments go to from the next start on; null if that start creates one. */
export function nextAddress({ dataDir, wallet }: Place): string | null {
  if (wallet !== null) return wallet;
  return existsSync(walletFile(dataDir)) ? readWallet(dataDir).address : null;
}

/**
 * What is wrong if open quotes name an address other than `nextAddress`; null if none does. `now`: milliseconds since
 * 1970.
 */
export function findLostWallet(db: Db, now: number, place: Place): LostWallet | null {
  const path = walletFile(place.dataDir);
  const next = nextAddress(place);
  const open = invoiceQueries(db).openElsewhere(now, next);
  if (open.length === 0) return null;
  const isOne = open.length === 1;
  const addresses = [...new Set(open.map(({ payTo }) => payTo).filter((payTo) => payTo !== ""))];
  const [address = ""] = addresses;
  const quotes = isOne ? "an open quote names" : `${open.length} open quotes name`;
  const named =
    addresses.length === 0
      ? "an earlier address"
      : `the address${addresses.length > 1 ? "es" : ""} ${addresses.join(", ")}`;
  const giveUp = `give ${isOne ? "it" : "them"} up: roost wallet give-up`;
  if (next === null) {
    return {
      detail: `${path} is missing, and ${quotes} ${named}: what is paid there would be lost`,
      mend:
        `put the file back from a backup that has the keys (or set ROOST_WALLET=${address || "0x…"}, where its key is ` +
        `yours), or ${giveUp}`,
    };
  }
  const isFiled = existsSync(path) && isSameAddress(readWallet(place.dataDir).address, address);
  const putBack = isFiled ? "unset ROOST_WALLET" : `set ROOST_WALLET=${address}`;
  return {
    detail: `${quotes} ${named}, and payments would be looked for at ${next}`,
    mend: `${putBack} until ${isOne ? "it is" : "they are"} paid or over, within a day, or ${giveUp}`,
  };
}

/** Addresses may be written with or without the capital letters of their checksum. */
export const isSameAddress = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase();
