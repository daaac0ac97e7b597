import { expect, test } from "bun:test";
import type { NetworkName } from "../../src/chain/networks.ts";
import { loadConfig } from "../../src/config.ts";
import { createFacilitator } from "../../src/payments/facilitator/facilitator.ts";
import { type HandClock, HOUR, handClock, SECOND } from "../lib/hand-clock.ts";
import type { Answer } from "../support/test-server.ts";
import { decode, launch, recipientOf, type Settling, signPayment, startSettling } from "./settling.ts";

const RECIPIENT = "0x00000000000000000000000000000000000000A1";

interface Advertised {
  first: { network: string; maxAmountRequired: string }[];
  second: { network: string; amount: string }[];
}

const advertisedIn = ({ body, headers }: Answer): Advertised => ({
  first: body.accepts ?? [],
  second: (headers.has("PAYMENT-REQUIRED")
    ? decode(headers.get("PAYMENT-REQUIRED")).accepts
    : []) as Advertised["second"],
});

async function quoteIn(settling: Settling): Promise<Answer> {
  const answer = await launch(await settling.someone());
  expect(answer.status).toBe(402);
  expect(answer.body.x402.options.length).toBeGreaterThan(0);
  return answer;
}

test("a 402 tells clients of each protocol version what to pay, beside our own quote", async () => {
  await using settling = await startSettling({ settings: { ROOST_WALLET: RECIPIENT } });
  const { body, headers } = await quoteIn(settling);
  expect(body.error).toMatchObject({ code: "payment_required", status: 402 });
  const shared = {
    scheme: "exact",
    payTo: RECIPIENT,
    asset: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
    maxTimeoutSeconds: 300,
    extra: { name: "USD Coin", version: "2" },
  };
  const about = { description: "1.00 USDC for the balance of the account", mimeType: "application/json" };
  const resource = `${settling.server.url}/v1/billing/top-up`;
  expect(body.x402Version).toBe(1);
  expect(body.accepts).toEqual([{ ...shared, network: "base", maxAmountRequired: "1000000", resource, ...about }]);
  const required = decode(headers.get("PAYMENT-REQUIRED"));
  // The message of our own quote is not for clients of the protocol's second version.
  expect(body.error.message).toStartWith(`${required.error}: pay exactly`);
  expect(required).toEqual({
    x402Version: 2,
    error: "the balance is 0.000000 USDC and this needs 0.500000",
    resource: { url: resource, ...about },
    accepts: [{ ...shared, network: "eip155:8453", amount: "1000000" }],
  });
});

test("ethereum is never offered in version 1: its client would fail at the name", async () => {
  await using settling = await startSettling({ networks: ["ethereum", "polygon", "base"] });
  const { first, second } = advertisedIn(await quoteIn(settling));
  expect(first.map(({ network }) => network)).toEqual(["polygon", "base"]);
  expect(second.map(({ network }) => network)).toEqual(["eip155:1", "eip155:137", "eip155:8453"]);
});

test.each<[string, NetworkName[], NetworkName[], string[]]>([
  ["configured and not settled", ["base", "polygon"], ["polygon"], ["polygon"]],
  ["none that is settled", ["base"], [], []],
])(
  "only networks that are configured and that the facilitator settles are offered: %s",
  async (_what, networks, settles, offered) => {
    await using settling = await startSettling({ networks, settles });
    const { first, second } = advertisedIn(await quoteIn(settling));
    expect(first.map(({ network }) => network)).toEqual(offered);
    expect(second).toHaveLength(offered.length);
  },
);

test("nothing is offered if one payment of 1.00 would not be enough", async () => {
  await using settling = await startSettling({ settings: { ROOST_MINIMUM_LAUNCH_BALANCE: "1.50" } });
  const person = await settling.someone();
  const quoted = await launch(person);
  expect(advertisedIn(quoted)).toEqual({ first: [], second: [] });
  expect(quoted.body.error.message).toContain(
    "pays 1.00 at a time, with POST /v1/billing/top-up and no amount. A person",
  );
  const asked = async (amount: string) => advertisedIn(await person.ask("POST", "/v1/billing/top-up", { amount }));
  expect(await asked("1.01")).toEqual({ first: [], second: [] });
  expect((await asked("1.00")).first).toHaveLength(1);
  expect(advertisedIn(await person.ask("POST", "/v1/billing/top-up", {})).first).toHaveLength(1);
  // Half of it is there, so less than 1.00 is missing now.
  const { ledger } = settling.server.foundation;
  ledger.post({ type: "credit", accountId: person.accountId, amount: 750_000n, against: "grants" });
  expect(advertisedIn(await launch(person)).first).toHaveLength(1);
});

test("a minimum top-up above what a facilitator settles stops the start", () => {
  const settings = { ROOST_FACILITATOR_URL: "http://127.0.0.1:9", ROOST_DATA_DIR: "/nonexistent" };
  expect(() => loadConfig({ ...settings, ROOST_MINIMUM_TOP_UP: "1.01" })).toThrow("ROOST_MINIMUM_TOP_UP");
  expect(loadConfig({ ...settings, ROOST_MINIMUM_TOP_UP: "1" }).config.facilitatorUrl).toBe("http://127.0.0.1:9");
  expect(() => loadConfig({ ...settings, ROOST_FACILITATOR_URL: "x402.org" })).toThrow("ROOST_FACILITATOR_URL");
});

test("without a facilitator nothing is advertised, and a signed payment is refused with a clear message", async () => {
  await using settling = await startSettling({ settings: { ROOST_FACILITATOR_URL: "" } });
  const answer = await quoteIn(settling);
  expect(advertisedIn(answer)).toEqual({ first: [], second: [] });
  expect(answer.body).not.toHaveProperty("x402Version");
  const person = await settling.someone();
  const recipient = await recipientOf(person);
  for (const version of [1, 2] as const) {
    const refused = await launch(person, await signPayment(settling.payer("base"), recipient, { version }));
    expect(refused.status).toBe(400);
    expect(refused.body.error.message).toContain("no facilitator");
  }
  const malformed = await launch(person, { "X-PAYMENT": '{"txHash":"0x12","network":"base"}' });
  expect(malformed.body.error.message).toContain("txHash");
  expect(settling.facilitator.calls).toEqual([]);
});

test.each<[string, () => Response | Promise<Response>]>([
  ["hangs", () => new Promise<Response>(() => {})],
  ["is out of order", () => new Response("", { status: 503 })],
  ["talks of something else", () => Response.json({ kinds: "all of them" })],
])("while the facilitator %s nothing is offered, and the 402 still comes", async (_what, answer) => {
  // A clock that stands still: after ten seconds it would be asked again.
  await using settling = await startSettling({ hangs: true, clock: handClock() });
  settling.facilitator.misbehave("/supported", answer);
  expect(advertisedIn(await quoteIn(settling))).toEqual({ first: [], second: [] });
  // The next one does not wait again.
  expect(advertisedIn(await quoteIn(settling))).toEqual({ first: [], second: [] });
  expect(settling.facilitator.count("/supported")).toBe(1);
});

test("the facilitator is asked once an hour what it settles, or every ten seconds while it does not answer", async () => {
  const clock: HandClock = handClock();
  let isUp = true;
  let asked = 0;
  using server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch() {
      asked += 1;
      const kinds = [{ x402Version: 1, scheme: "exact", network: "base", extra: { of: "no interest" } }];
      return isUp ? Response.json({ kinds }) : new Response("", { status: 500 });
    },
  });
  const facilitator = createFacilitator({ url: `http://127.0.0.1:${server.port}`, clock, deadlineMs: 60_000 });
  const kindsAfter = async (ms: number) => {
    clock.advance(ms);
    const [kinds] = await Promise.all([facilitator.kinds(), facilitator.kinds(), facilitator.kinds()]);
    return [kinds.length, asked];
  };
  expect(await kindsAfter(0)).toEqual([1, 1]);
  expect(await kindsAfter(HOUR - 1)).toEqual([1, 1]);
  isUp = false;
  expect(await kindsAfter(1)).toEqual([0, 2]);
  isUp = true;
  expect(await kindsAfter(9 * SECOND)).toEqual([0, 2]);
  expect(await kindsAfter(SECOND)).toEqual([1, 3]);
});

test("a facilitator that hangs, before or during its answer, is abandoned at its deadline", async () => {
  const [arrived, left] = [new Set<string>(), new Set<string>()];
  using server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      const { pathname } = new URL(request.url);
      arrived.add(pathname);
      request.signal.addEventListener("abort", () => left.add(pathname));
      if (pathname === "/verify") return new Promise<Response>(() => {});
      return new Response(new ReadableStream({ start: (stream) => stream.enqueue(Buffer.from('{"success":')) }));
    },
  });
  const url = `http://127.0.0.1:${server.port}`;
  const facilitator = createFacilitator({ url, deadlineMs: 50 });
  const request = { x402Version: 1, paymentPayload: {}, paymentRequirements: {} } as const;
  const asks = { "/verify": () => facilitator.verify(request), "/settle": () => facilitator.settle(request) };
  for (const [path, ask] of Object.entries(asks)) {
    // On a busy machine a call may be over before its request has arrived.
    do expect(await ask()).toEqual({ kind: "silent" });
    while (!arrived.has(path));
    while (!left.has(path)) await Bun.sleep(5);
  }
  expect([...left]).toEqual(["/verify", "/settle"]);
});
