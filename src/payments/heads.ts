import type { Chain } from "../chain/chain.ts";
import type { NetworkName } from "../chain/networks.ts";
import { withTimeout } from "../lib/concurrency.ts";

/** A network's nodes are asked for their head at most five times a second, regardless of the number of quotes. */
const SPACING_MS = 200;
/** How long a quote waits, including the time until the next reading begins. */
const TIMEOUT_MS = 1_500;

/** The networks' newest blocks. Concurrent callers share one reading. */
export interface Heads {
  /** The number of the newest block, read after the call; null if no node answers in time. */
  of(network: NetworkName): Promise<bigint | null>;
  /** The numbers for all networks that answer in time, as JSON. */
  all(): Promise<string>;
}

/**
 * A head read for an earlier quote must not be reused: a transfer mined in between would count as made after the
 * invoice, and might be a stranger's of the same amount (docs/contract/billing.md, Proofs). A later head is fine, since
 * nobody knows the amount before the quote is sent. So callers wait for the next reading and share it.
 */
export function createHeads(
  chains: ReadonlyMap<NetworkName, Pick<Chain, "head">>,
  { spacingMs = SPACING_MS, timeoutMs = TIMEOUT_MS }: { spacingMs?: number; timeoutMs?: number | undefined } = {},
): Heads {
  const readings = new Map(
    Array.from(chains, ([network, chain]) => [network, shareNext(() => chain.head(), spacingMs)]),
  );
  const of = async (network: NetworkName): Promise<bigint | null> => {
    const read = readings.get(network);
    return read === undefined ? null : await withTimeout(read(), timeoutMs);
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

/** Each call gets a reading that begins after the call; readings begin at least `spacingMs` apart. */
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
