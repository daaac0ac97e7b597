import { expect, test } from "bun:test";
import { quoteFor, startPaying, topUp, verified } from "./paying.ts";

test("with a key that was used, another payment is not taken for a repetition: it is refused, and credited when presented alone", async () => {
  await using paying = await startPaying();
  const person = await paying.someone();
  const [first, second] = [
    await paying.pay((await quoteFor(person)).amount),
    await paying.pay((await quoteFor(person)).amount),
  ];
  const topUpOnce = (txHash?: string) => {
    const payment = txHash === undefined ? {} : { "X-PAYMENT": JSON.stringify({ txHash, network: "base" }) };
    return verified(() => person.ask("POST", "/v1/billing/top-up", {}, { "Idempotency-Key": "once", ...payment }));
  };
  const paid = await topUpOnce(first);
  expect(paid.status).toBe(201);
  for (const again of [await topUpOnce(first), await topUpOnce()]) {
    expect([again.status, again.body.transactionId]).toEqual([201, paid.body.transactionId]);
  }
  expect((await topUpOnce(second)).status).toBe(409);
  expect((await topUp(person, {}, second)).status).toBe(201);
});
