import { expect, test } from "bun:test";
import { createAuthorizations } from "../../src/payments/facilitator/authorizations.ts";
import { DAY, handClock, MINUTE } from "../lib/hand-clock.ts";
import type { Person } from "../support/test-server.ts";
import { balanceOf, launch, recipientOf, type Settling, signPayment, startSettling } from "./settling.ts";

/** How far the node is behind: more blocks than one search covers. */
const BEHIND = 2_500;

const chainOf = ({ chains, proxies }: Settling) => {
  if (!chains.base || !proxies.base) throw new Error("no chain");
  return { anvil: chains.base, node: proxies.base };
};

/** The node answers as one that got no further than this block, and finds nothing. */
function stickAt({ node }: ReturnType<typeof chainOf>, head: bigint): void {
  node.lie((result, { method }) => {
    if (method === "eth_getLogs") return [];
    return method === "eth_blockNumber" ? `0x${head.toString(16)}` : result;
  });
}

/** Somebody who has signed a payment that the node does not see. */
async function payAtStuckNode(settling: Settling) {
  const person = await settling.someone();
  const recipient = await recipientOf(person);
  const chain = chainOf(settling);
  stickAt(chain, await chain.anvil.head());
  return { person, chain, header: await signPayment(settling.payer("base"), recipient) };
}

/** Somebody who signs a payment while the node is far behind the chain. */
async function payAtBehindNode(settling: Settling) {
  const paying = await payAtStuckNode(settling);
  await paying.chain.anvil.mine(BEHIND);
  return paying;
}

/** Each time, the search goes on by a part of the blocks. */
async function presentUntilCredited(person: Person, header: Record<string, string>): Promise<void> {
  const answer = async () => (await launch(person, header)).status;
  for (let left = 20; left > 0 && (await answer()) !== 201; left--);
  expect(await balanceOf(person)).toBe("1.000000");
}

test("a payment made while the node was thousands of blocks behind is credited once the node has caught up", async () => {
  await using settling = await startSettling();
  const { person, header, chain } = await payAtBehindNode(settling);
  // The chain shows the transaction that the facilitator names, but not that it used this signature.
  expect((await launch(person, header)).body.error.message).toContain("do not pay again");
  chain.node.pass();
  await presentUntilCredited(person, header);
});

test("a payment is not given up while the search for it catches up with a node that was behind for a day", async () => {
  const clock = handClock();
  await using settling = await startSettling({ clock });
  const { person, header, chain } = await payAtBehindNode(settling);
  expect((await launch(person, header)).body.error.message).toContain("do not pay again");
  // A session ends within the day.
  const { key: token } = (await person.ask("POST", "/v1/auth/keys", {})).body;
  const ask: Person["ask"] = (method, path, body, headers = {}) =>
    settling.server.ask(method, path, { token, body, headers });
  clock.advance(DAY + 6 * MINUTE);
  chain.node.pass();
  await presentUntilCredited({ ...person, ask }, header);
});

test("a node that got no further than it was at the start is not believed that a payment was never made", async () => {
  const clock = handClock();
  await using settling = await startSettling({ clock });
  const { person, chain, header } = await payAtStuckNode(settling);
  const presented = async () => (await launch(person, header)).body.error.message;

  expect(await presented()).toContain("do not pay again");
  clock.advance(2 * 60 * MINUTE);
  expect(await presented()).toContain("do not pay again");
  expect(await presented()).toContain("do not pay again");
  chain.node.pass();
  expect((await launch(person, header)).status).toBe(201);
  expect(await balanceOf(person)).toBe("1.000000");
});

test("a payment is no longer looked for a day after its expiry, although the node has got no further", async () => {
  const clock = handClock();
  await using settling = await startSettling({ clock });
  const { person, header } = await payAtStuckNode(settling);
  expect((await launch(person, header)).status).toBe(402);
  clock.advance(DAY + 30 * MINUTE);
  await settling.server.restart();
  const open = () => createAuthorizations(settling.server.foundation.store).open(null, 10).length;
  while (open() > 0) await Bun.sleep(5);
});
