import type { Mined } from "../chain/chain.ts";
import type { NetworkName } from "../chain/networks.ts";
import { formatMoney, type Micros } from "../lib/money.ts";

/** Time between blocks: how long to wait for each missing confirmation. */
export const BLOCK_SECONDS: Record<NetworkName, number> = { base: 2, ethereum: 12, polygon: 2 };

export type Depth = { isEnough: true } | { isEnough: false; reason: string; retryAfterSeconds: number };

const SMALL: Micros = 100_000_000n;
const FINALITY_SECONDS = 60;
/** Polygon's blocks are final within seconds, long before they have 128 confirmations. */
const POLYGON_FINALITY_SECONDS = 10;
/** As good as final, for nodes without the `finalized` tag. */
const FINAL_CONFIRMATIONS = 1_000n;

/** Whether no reorganisation is expected to remove the block any more. */
export const isFinal = ({ finalized, confirmations }: Mined, atLeast: number): boolean =>
  (finalized && confirmations >= BigInt(atLeast)) || confirmations >= FINAL_CONFIRMATIONS;

/** Whether a transfer of `amount` has enough confirmations to be credited (docs/contract/billing.md, Depth). */
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
