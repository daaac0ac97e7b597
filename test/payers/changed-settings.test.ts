import { expect, test } from "bun:test";
import type { Config } from "../../src/config.ts";
import { balanceOf, launch, recipientOf, type Settling, signPayment, startSettling } from "./settling.ts";

/** Somebody whose signed payment the facilitator has, and sends when it is called. */
async function payLate(settling: Settling) {
  const person = await settling.someone();
  const header = await signPayment(settling.payer("base"), await recipientOf(person));
  settling.facilitator.misbehave("/settle", () => new Response("gone", { status: 502 }));
  expect((await launch(person, header)).body.error.message).toContain("do not pay again");
  return {
    person,
    header,
    async arrive() {
      const call = settling.facilitator.calls.findLast(({ path }) => path === "/settle")?.body;
      if (call) await settling.facilitator.send(call);
    },
  };
}

/** Starts the server again, after the operator has changed these settings. */
const restartWith = ({ server }: Settling, changes: Partial<Config>): Promise<void> =>
  server.restart(() => Object.assign(server.config, changes));

test.each<[string, Partial<Config>]>([
  ["has no facilitator any more", { facilitatorUrl: null }],
  ["accepts other networks now", { networks: ["polygon"] }],
])(
  "a signed payment on its way is credited when it arrives at a host that %s, without any request",
  async (...[, changes]) => {
    await using settling = await startSettling();
    const { person, arrive } = await payLate(settling);
    await arrive();
    await restartWith(settling, changes);
    while ((await balanceOf(person)) !== "1.000000") await Bun.sleep(5);
  },
);

test.each<[string, Partial<Config>, string]>([
  ["has no facilitator any more", { facilitatorUrl: null }, "this host has no facilitator"],
  ["accepts other networks now", { networks: ["polygon"] }, "version 1 on polygon"],
])(
  "presented to a host that %s, a payment on its way is recognised, and a new one refused",
  async (...[, changes, why]) => {
    await using settling = await startSettling();
    const { person, header, arrive } = await payLate(settling);
    await restartWith(settling, changes);
    expect((await launch(person, header)).body.error.message).toContain("do not pay again");
    const another = await launch(person, await signPayment(settling.payer("base"), await recipientOf(person)));
    expect([another.status, another.body.error.message]).toEqual([400, expect.stringContaining(why)]);
    await arrive();
    expect((await launch(person, header)).status).toBe(201);
    expect(await balanceOf(person)).toBe("1.000000");
  },
);

test("a transfer that waits for its confirmations is credited although its network is no longer accepted", async () => {
  await using settling = await startSettling({ settings: { ROOST_BASE_CONFIRMATIONS: "3" } });
  const person = await settling.someone();
  const { recipient, amount } = (await launch(person)).body.x402;
  const base = settling.chains.base;
  if (!base) throw new Error("no chain");
  const txHash = await base.transfer({ to: recipient, amount: BigInt(amount.replace(".", "")) });
  const proof = { "X-PAYMENT": JSON.stringify({ txHash, network: "base" }) };
  expect((await launch(person, proof)).body.error.message).toContain("1 of 3 confirmations");
  await restartWith(settling, { networks: ["polygon"] });
  await base.mine(2);
  while ((await balanceOf(person)) !== amount) await Bun.sleep(5);
});
