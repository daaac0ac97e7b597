import type { NetworkName } from "../../chain/networks.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Advertise } from "../invoices.ts";
import type { Authorizations } from "./authorizations.ts";
import type { Facilitator } from "./facilitator.ts";
import { ASKED, advertise, NOTHING_ADVERTISED, type Offer } from "./x402-protocol.ts";

export interface AdvertisingParts {
  clock: Clock;
  facilitator: Pick<Facilitator, "kinds">;
  authorizations: Pick<Authorizations, "isSettling">;
  networks: readonly NetworkName[];
  offer: () => Offer;
}

export const advertiseNothing: Advertise = async () => NOTHING_ADVERTISED;

export function createAdvertising({
  clock,
  facilitator,
  authorizations,
  networks,
  offer,
}: AdvertisingParts): Advertise {
  return async (accountId, least, reason) => {
    // These clients pay once and expect their answer. Where one payment is not enough they would have paid for nothing;
    // and a larger one most of them refuse.
    if (least > ASKED) return NOTHING_ADVERTISED;
    // The payment before may arrive any moment: nobody is to pay twice because it is slow.
    if (authorizations.isSettling(accountId, clock.now())) return NOTHING_ADVERTISED;
    return advertise(networks, await facilitator.kinds(), offer(), reason);
  };
}
