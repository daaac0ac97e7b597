import { expect, test } from "bun:test";
import type { Clock } from "../../src/lib/clock.ts";
import { createAuthorizations } from "../../src/payments/facilitator/authorizations.ts";
import { DAY, handClock, MINUTE } from "../lib/hand-clock.ts";
import { balanceOf, decode, launch, newNonce, recipientOf, signPayment, startSettling } from "./settling.ts";

/** By the server's clock, which stands still, in seconds. */
const inFiveMinutes = (clock: Clock) => Math.floor((clock.now() + 5 * MINUTE) / 1000);

test("a signed payment that never reached the chain ends with its validity, and only then another one is requested", async () => {
  const clock = handClock();
  await using settling = await startSettling({ clock });
  const person = await settling.someone();
  const header = await signPayment(settling.payer("base"), await recipientOf(person), {
    validBefore: inFiveMinutes(clock),
  });
  settling.facilitator.misbehave("/settle", () => new Response("gone", { status: 502 }));
  const offered = async () => (await launch(person)).body.accepts?.length ?? 0;
  const presented = async () => (await launch(person, header)).body.error.message;

  expect(await presented()).toContain("do not pay again");
  expect(await offered()).toBe(0);
  clock.advance(4 * MINUTE);
  expect(await offered()).toBe(0);
  // The chain would not accept it any more, but a node may still report that it did before.
  clock.advance(2 * MINUTE);
  expect(await offered()).toBe(1);
  expect(await presented()).toContain("is not in a block");
  clock.advance(10 * MINUTE);
  await settling.chains.base?.mine(1);
  await presented();
  expect(await presented()).toContain("never made");

  settling.facilitator.behave();
  const second = await signPayment(settling.payer("base"), await recipientOf(person), {
    validBefore: Math.floor(clock.now() / 1000) + 200,
  });
  expect((await launch(person, second)).status).toBe(201);
  expect(await balanceOf(person)).toBe("1.000000");
});

test("a signature that its payer used for another transfer meanwhile ends with its validity too", async () => {
  const clock = handClock();
  await using settling = await startSettling({ clock });
  const person = await settling.someone();
  const [payer, nonce] = [settling.payer("base"), newNonce()];
  const header = await signPayment(payer, await recipientOf(person), { nonce, validBefore: inFiveMinutes(clock) });
  const elsewhere = await signPayment(payer, "0x00000000000000000000000000000000000000A1", { nonce });
  settling.facilitator.misbehave("/settle", async () => {
    await settling.facilitator.send({
      x402Version: 1,
      paymentPayload: decode(elsewhere["X-PAYMENT"] ?? "") as never,
      paymentRequirements: { network: "base", asset: settling.chains.base?.usdc } as never,
    });
    return new Response("gone", { status: 502 });
  });
  const presented = async () => (await launch(person, header)).body.error.message;
  const open = () => createAuthorizations(settling.server.foundation.store).open(null, 10).length;

  expect(await presented()).toContain("recipient is not the one");
  clock.advance(14 * MINUTE);
  expect(await presented()).toContain("recipient is not the one");
  expect(open()).toBe(1);
  clock.advance(2 * MINUTE);
  await presented();
  expect(open()).toBe(0);
  expect(await presented()).toContain("never made");
  expect(await balanceOf(person)).toBe("0.000000");
});

test("credited payments are forgotten after a month, long after they expired; open ones are found by an index", async () => {
  const clock = handClock();
  await using settling = await startSettling({ clock });
  const person = await settling.someone();
  const header = await signPayment(settling.payer("base"), await recipientOf(person));
  expect((await launch(person, header)).status).toBe(201);
  const { store } = settling.server.foundation;
  const statuses = () =>
    store.sqlite.query<{ status: string }, []>("SELECT status FROM authorizations").values().flat();
  const authorizations = createAuthorizations(store);

  clock.advance(29 * DAY);
  authorizations.prune(clock.now(), 10);
  expect(statuses()).toEqual(["credited"]);
  clock.advance(2 * DAY);
  authorizations.prune(clock.now(), 10);
  expect(statuses()).toEqual([]);

  const plan = store.sqlite.query<{ detail: string }, []>(
    "EXPLAIN QUERY PLAN SELECT * FROM authorizations WHERE authorizations.status IN ('settling', 'failed') ORDER BY created_at",
  );
  expect(plan.all()[0]?.detail).toContain("open_authorizations");
});

test("a signed payment that does not arrive is looked up at most 300 times a minute, however often it is presented", async () => {
  const clock = handClock();
  await using settling = await startSettling({ clock });
  const person = await settling.someone();
  const header = await signPayment(settling.payer("base"), await recipientOf(person), {
    validBefore: inFiveMinutes(clock),
  });
  settling.facilitator.misbehave("/settle", () => new Response("gone", { status: 502 }));
  expect((await launch(person, header)).status).toBe(402);
  const statuses: number[] = [];
  for (let nth = 0; nth < 305; nth++) statuses.push((await launch(person, header)).status);
  expect(statuses).toEqual([...Array(300).fill(402), ...Array(5).fill(429)]);
  clock.advance(MINUTE);
  expect((await launch(person, header)).status).toBe(402);
});

test("an account with four payments at a slow facilitator is asked to wait, and another account is not", async () => {
  await using settling = await startSettling();
  const [pest, other] = [await settling.someone(), await settling.someone()];
  const recipient = await recipientOf(pest);
  const { promise: thought, resolve: think } = Promise.withResolvers<void>();
  settling.facilitator.misbehave("/verify", async () => {
    await thought;
    return Response.json({ isValid: false, invalidReason: "insufficient_funds" });
  });
  const pay = async (who: typeof pest) => await launch(who, await signPayment(settling.payer("base"), recipient));
  const thinking = Array.from({ length: 4 }, () => pay(pest));
  while (settling.facilitator.count("/verify") < 4) await Bun.sleep(5);
  const refused = await pay(pest);
  expect([refused.status, refused.headers.get("Retry-After")]).toEqual([402, "5"]);
  expect(refused.body.error.message).toContain("present it again");
  const others = pay(other);
  while (settling.facilitator.count("/verify") < 5) await Bun.sleep(5);
  think();
  for (const { body } of await Promise.all([...thinking, others])) {
    expect(body.error.message).toContain("insufficient_funds");
  }
  expect(settling.facilitator.count("/verify")).toBe(5);
});
