import type { Mined } from "../chain/chain.ts";
import type { NetworkName } from "../chain/networks.ts";
import { formatMoney, type Micros } from "../lib/money.ts";

/** How long a network takes for a block: what a presenter is told to wait for each that is missing. */
export const BLOCK_SECONDS: Record<NetworkName, number> = { base: 2, ethereum: 12, polygon: 2 };

export type Depth = { isEnough: true } | { isEnough: false; reason: string; retryAfterSeconds: number };

const SMALL: Micros = 100_000_000n;
const FINALITY_SECONDS = 60;
/** Polygon's blocks are final seconds after they are made, long before they are 128 deep. */
const POLYGON_FINALITY_SECONDS = 10;
/** As good as final on a chain whose nodes have no such tag. */
const BURIED = 1_000n;

/** Whether nothing is expected to remove the block any more. */
export const isFinal = ({ finalized, confirmations }: Mined, atLeast: number): boolean =>
  (finalized && confirmations >= BigInt(atLeast)) || confirmations >= BURIED;

/** Whether a transfer of `amount` lies deep enough to be credited (billing.md, x402 3). */
export function depthOf(network: NetworkName, atLeast: number, amount: Micros, mined: Mined): Depth {
  const { confirmations, finalized } = mined;
  if (network === "polygon" && finalized) return { isEnough: true };
  const missing = BigInt(atLeast) - confirmations;
  if (missing > 0n) {
    return {
      isEnough: false,
      reason: `the transfer has ${confirmations} of ${atLeast} confirmations; present it again then`,
      retryAfterSeconds:
        network === "polygon"
          ? Math.min(Number(missing) * BLOCK_SECONDS.polygon, POLYGON_FINALITY_SECONDS)
          : Number(missing) * BLOCK_SECONDS[network],
    };
  }
  if (network !== "base" || amount <= SMALL || isFinal(mined, atLeast)) return { isEnough: true };
  return {
    isEnough: false,
    reason: `the transfer has ${confirmations} confirmations, and over ${formatMoney(SMALL)} its block must be final on ${network}; present it again then`,
    retryAfterSeconds: FINALITY_SECONDS,
  };
}
