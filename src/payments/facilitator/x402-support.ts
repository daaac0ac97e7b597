import type { Chain } from "../../chain/chain.ts";
import type { NetworkName } from "../../chain/networks.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { Store } from "../../storage/store.ts";
import type { Heads } from "../heads.ts";
import type { Advertise } from "../invoices.ts";
import type { Payments } from "../payments.ts";
import { advertiseNothing, createAdvertiser } from "./advertiser.ts";
import { createArrivals } from "./arrivals.ts";
import { createAuthorizations } from "./authorizations.ts";
import { createFacilitatedPayments, type FacilitatedPayments } from "./facilitated-payments.ts";
import { createFacilitator } from "./facilitator.ts";
import type { Offer } from "./x402-protocol.ts";

export interface X402SupportParts {
  /** The facilitator's URL; null for none. */
  url: string | null;
  /** For each call to it, in place of its own. */
  deadlineMs?: number | undefined;
  store: Store;
  clock: Clock;
  log: Log;
  /** The networks that payments are accepted on. */
  networks: readonly NetworkName[];
  chains: ReadonlyMap<NetworkName, Chain>;
  heads: Pick<Heads, "of">;
  offer: () => Offer;
}

/** What x402 clients need: the advertisement in a 402, then their signed payments. */
export interface X402Support {
  advertise: Advertise;
  collect(creditSettled: Payments["creditSettled"]): FacilitatedPayments;
}

/**
 * Without a facilitator nothing is advertised, and new signed payments are refused (docs/contract/billing.md, Clients of
 * the x402 protocol).
 */
export function createX402Support(parts: X402SupportParts): X402Support {
  const { url, deadlineMs, store, clock, log, networks, chains, heads, offer } = parts;
  const facilitator = url === null ? null : createFacilitator({ url, clock, deadlineMs });
  const authorizations = createAuthorizations(store);
  return {
    advertise: facilitator
      ? createAdvertiser({ clock, facilitator, authorizations, networks, offer })
      : advertiseNothing,
    collect(creditSettled) {
      const arrivals = createArrivals({ clock, log, authorizations, chains, creditSettled });
      const headOf = heads.of;
      return createFacilitatedPayments({ clock, log, facilitator, authorizations, arrivals, networks, headOf, offer });
    },
  };
}
