import type { NetworkName } from "../../chain/networks.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Advertise } from "../invoices.ts";
import type { Authorizations } from "./authorizations.ts";
import type { Facilitator } from "./facilitator.ts";
import { ASKED, advertise, NOTHING_ADVERTISED, type Offer } from "./x402-protocol.ts";

export interface AdvertiserParts {
  clock: Clock;
  facilitator: Pick<Facilitator, "kinds">;
  authorizations: Pick<Authorizations, "isSettling">;
  networks: readonly NetworkName[];
  offer: () => Offer;
}

export const advertiseNothing: Advertise = async () => NOTHING_ADVERTISED;

const IN_STEPS = "A client of the x402 protocol pays 1.00 at a time, with POST /v1/billing/top-up and no amount";

export function createAdvertiser({ clock, facilitator, authorizations, networks, offer }: AdvertiserParts): Advertise {
  return async (accountId, least, reason) => {
    // These clients pay once, and most refuse to pay more: if one payment is not enough, they would pay for nothing.
    if (least > ASKED) return { ...NOTHING_ADVERTISED, hint: IN_STEPS };
    // An earlier payment may still arrive: nobody should pay twice because it is slow.
    if (authorizations.isSettling(accountId, clock.now())) return NOTHING_ADVERTISED;
    return advertise(networks, await facilitator.kinds(), offer(), reason);
  };
}
