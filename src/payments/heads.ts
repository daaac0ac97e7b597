import type { Chain } from "../chain/chain.ts";
import type { NetworkName } from "../chain/networks.ts";
import { withTimeout } from "../lib/concurrency.ts";

/** However many quotes there are, a network's nodes are asked for their head five times a second at most. */
const SPACING_MS = 200;
/** What a quote waits for, the time until the reading begins included. */
const LIMIT_MS = 1_500;

/** The networks' newest blocks, read for all who want them at the same moment. */
export interface Heads {
  /** The number of the newest block as it is now or later, never as it was before the call; null where no node tells in time. */
  of(network: NetworkName): Promise<bigint | null>;
  /** The numbers of all networks, of those that are known in time: JSON. */
  all(): Promise<string>;
}

/**
 * A head that was read for an earlier quote is not good for this one: a transfer that was mined in between would count as
 * made after the invoice, and might be a stranger's of the same amount (api.md section 7). A later head is good, for
 * nobody knows the amount before the quote is out. So those who come wait for the next reading, and share it.
 */
export function createHeads(
  chains: ReadonlyMap<NetworkName, Pick<Chain, "head">>,
  spacingMs: number = SPACING_MS,
): Heads {
  const readings = new Map(
    Array.from(chains, ([network, chain]) => [network, shareNext(() => chain.head(), spacingMs)]),
  );
  const of = async (network: NetworkName): Promise<bigint | null> => {
    const read = readings.get(network);
    return read === undefined ? null : await withTimeout(read(), LIMIT_MS);
  };
  return {
    of,
    async all() {
      const heads = await Promise.all(
        Array.from(chains.keys(), async (network) => ({ network, head: await of(network) })),
      );
      const known = heads.filter(({ head }) => head !== null);
      return JSON.stringify(Object.fromEntries(known.map(({ network, head }) => [network, String(head)])));
    },
  };
}

/** Each call gives what a reading says that begins after the call; one begins `spacingMs` after another at the earliest. */
function shareNext<T>(read: () => Promise<T>, spacingMs: number): () => Promise<T> {
  let next: Promise<T> | null = null;
  let earliest = 0;

  async function readSoon(): Promise<T> {
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, earliest - performance.now())));
    next = null;
    earliest = performance.now() + spacingMs;
    return await read();
  }

  return () => {
    next ??= readSoon();
    return next;
  };
}
