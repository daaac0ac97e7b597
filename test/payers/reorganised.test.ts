import { expect, test } from "bun:test";
import { handClock, SECOND } from "../lib/hand-clock.ts";
import type { Answer, Person } from "../support/test-server.ts";
import { balanceOf, launch, recipientOf, type Settling, signPayment, startSettling } from "./settling.ts";

/** A signed payment whose transaction, `raw`, was credited in its first block, and then removed by a reorganisation. */
async function reversed(settling: Settling, { clock }: { clock: ReturnType<typeof handClock> }) {
  const { base } = settling.chains;
  if (!base) throw new Error("no chain");
  const person = await settling.someone();
  const header = await signPayment(settling.payer("base"), await recipientOf(person));
  expect((await launch(person, header)).status).toBe(201);
  const raw = await base.rpc("eth_getRawTransactionByHash", [hashesOf(settling)[0]]);
  await base.reorg(1);
  while (statusOf(settling) !== "reversed") {
    clock.advance(10 * SECOND);
    await settling.server.app.payments.tick();
  }
  expect(await balanceOf(person)).toBe("0.000000");
  return { base, person, header, raw };
}

const column = ({ server }: Settling, query: string): unknown[] =>
  server.foundation.store.sqlite.query(query).values().flat();
const hashesOf = (settling: Settling) => column(settling, "SELECT tx_hash FROM payments ORDER BY payment_id");
const statusOf = (settling: Settling) => column(settling, "SELECT status FROM payments ORDER BY payment_id DESC").at(0);

async function entriesOf(person: Person): Promise<string[]> {
  const { body }: Answer = await person.ask("GET", "/v1/billing/transactions");
  return body.data.map(({ amount }: { amount: string }) => amount).reverse();
}

test("a signed payment that arrives in another transaction after a reorganisation is credited again, once", async () => {
  const clock = handClock();
  await using settling = await startSettling({ clock });
  const { base, person, header } = await reversed(settling, { clock });
  expect((await launch(person, header)).body.error.message).toContain("do not pay again");

  // With another number, it is another transaction.
  await base.rpc("anvil_setNonce", [base.accounts.at(-1)?.address, "0x10"]);
  const call = settling.facilitator.calls.find(({ path }) => path === "/settle")?.body;
  if (!call) throw new Error("nothing was settled");
  await settling.facilitator.send(call);
  expect((await launch(person, header)).status).toBe(201);
  expect((await launch(person, header)).status).toBe(201);
  expect(new Set(hashesOf(settling)).size).toBe(2);
  expect(await entriesOf(person)).toEqual(["1.000000", "-1.000000", "1.000000"]);
  expect(column(settling, "SELECT status FROM authorizations")).toEqual(["credited"]);
});

test("a signed payment whose own transaction is mined again is credited again, once, and looked for no longer", async () => {
  const clock = handClock();
  await using settling = await startSettling({ clock });
  const { base, person, header, raw } = await reversed(settling, { clock });
  await base.rpc("eth_sendRawTransaction", [raw]);
  await base.mine(1);
  // Found by the check of the transaction itself, before anybody presents it again.
  while (statusOf(settling) !== "credited") {
    clock.advance(10 * SECOND);
    await settling.server.app.payments.tick();
  }
  expect(column(settling, "SELECT status FROM authorizations")).toEqual(["credited"]);
  expect((await launch(person, header)).status).toBe(201);
  expect(hashesOf(settling)).toHaveLength(1);
  expect(await entriesOf(person)).toEqual(["1.000000", "-1.000000", "1.000000"]);
});
