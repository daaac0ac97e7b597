import { expect, test } from "bun:test";
import type { NetworkName } from "../../src/chain/networks.ts";
import { depthOf } from "../../src/payments/depth.ts";

const SMALL = 100_000_000n;
const LARGE = SMALL + 1n;

type Case = [NetworkName, number, bigint, bigint, boolean, number | "enough"];

test.each<Case>([
  ["base", 10, SMALL, 1n, false, 18],
  ["base", 10, SMALL, 9n, true, 2],
  ["base", 10, SMALL, 10n, false, "enough"],
  ["base", 10, LARGE, 9n, true, 2],
  ["base", 10, LARGE, 500n, false, 60],
  ["base", 10, LARGE, 10n, true, "enough"],
  // As good as final for nodes without the tag.
  ["base", 10, LARGE, 1_000n, false, "enough"],
  ["ethereum", 12, LARGE, 1n, false, 132],
  ["ethereum", 12, LARGE, 11n, true, 12],
  ["ethereum", 12, LARGE, 12n, false, "enough"],
  ["polygon", 128, LARGE, 1n, true, "enough"],
  ["polygon", 128, LARGE, 127n, false, 2],
  // Its blocks are final long before that.
  ["polygon", 128, LARGE, 1n, false, 10],
  ["polygon", 128, LARGE, 128n, false, "enough"],
])("on %s with %d confirmations required, %d micro-USDC at a depth of %d, final: %p, must wait %p s", (...args) => {
  const [network, atLeast, amount, confirmations, finalized, expected] = args;
  const mined = { blockNumber: 1n, blockHash: "0x", blockTimeMs: 0, transfers: [], confirmations, finalized };
  const depth = depthOf(network, atLeast, amount, mined);
  expect(depth.isEnough ? "enough" : depth.retryAfterSeconds).toBe(expected);
});
