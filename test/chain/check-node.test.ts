import { expect, test } from "bun:test";
import { checkNode } from "../../src/chain/check-node.ts";
import { handClock, MINUTE, SECOND } from "../lib/hand-clock.ts";
import { startAnvil } from "../support/anvil.ts";
import { startRpcProxy } from "../support/rpc-proxy.ts";

/** Only ends what hangs. */
const deadlineMs = 60_000;

test("a node of the right chain that is up to date and knows USDC is healthy", async () => {
  await using anvil = await startAnvil({ network: "base" });
  expect(await checkNode(anvil.url, "base", { deadlineMs })).toEqual({
    ok: true,
    detail: `${anvil.url} is at block 1`,
  });
});

test("a node of another chain, one that is behind, one without USDC and one that cannot be reached are not healthy", async () => {
  await using anvil = await startAnvil({ network: "base" });
  expect(await checkNode(anvil.url, "polygon", { deadlineMs })).toEqual({
    ok: false,
    detail: `${anvil.url} answers for chain 8453 instead of 137`,
  });

  const newest = (await anvil.rpc("eth_getBlockByNumber", ["latest", false])) as { timestamp: string };
  const clock = handClock(Number(newest.timestamp) * SECOND + 12 * MINUTE);
  expect(await checkNode(anvil.url, "base", { clock, deadlineMs })).toEqual({
    ok: false,
    detail: `${anvil.url} is behind: its newest block is 12 minutes old`,
  });

  await anvil.rpc("anvil_setCode", [anvil.usdc, "0x"]);
  expect(await checkNode(anvil.url, "base", { deadlineMs })).toEqual({
    ok: false,
    detail: `${anvil.url} does not know the USDC of base`,
  });

  const gone = startRpcProxy(anvil.url);
  await gone.stop();
  expect(await checkNode(`${gone.url}/s3cret`, "base", { deadlineMs })).toEqual({
    ok: false,
    detail: `${gone.url} cannot be reached, or gives an invalid answer`,
  });
});
