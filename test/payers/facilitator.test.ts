import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { newId } from "../../src/lib/id.ts";
import type { Answer, Person } from "../support/test-server.ts";
import {
  balanceOf,
  type Changes,
  decode,
  encode,
  launch,
  recipientOf,
  type Settling,
  signPayment,
  startSettling,
} from "./settling.ts";

let settling: Settling;
let person: Person;
let recipient: string;

beforeAll(async () => {
  settling = await startSettling({ networks: ["base", "polygon"] });
});
afterAll(() => settling[Symbol.asyncDispose]());
beforeEach(async () => {
  settling.facilitator.behave();
  settling.proxies.base?.pass();
  person = await settling.someone();
  recipient = await recipientOf(person);
});

const sign = (changes: Changes = {}) => signPayment(settling.payer(changes.network ?? "base"), recipient, changes);
const base = () => {
  const anvil = settling.chains.base;
  if (!anvil) throw new Error("no chain");
  return anvil;
};
const settledTimes = () => settling.facilitator.count("/settle");
const topUps = async (who: Person): Promise<number> =>
  (await who.ask("GET", "/v1/billing/transactions")).body.data.filter(({ type }: { type: string }) => type === "top_up")
    .length;

describe("a signed payment is credited once", () => {
  test.each([1, 2] as const)(
    "presented again, version %i, it is recognised, and the request proceeds with the balance there is",
    async (version) => {
      const header = await sign({ version });
      const before = settledTimes();
      expect((await launch(person, header)).status).toBe(201);
      expect((await launch(person, header)).status).toBe(201);
      expect(await balanceOf(person)).toBe("1.000000");
      expect(settledTimes()).toBe(before + 1);
      const again = await person.ask("POST", "/v1/billing/top-up", {}, header);
      expect(again.status).toBe(402);
      expect(again.body.error.message).toContain("already credited");
    },
  );

  test("presented by eight connections at once it is settled once, and serves them all", async () => {
    const header = await sign();
    const before = settledTimes();
    const answers = await Promise.all(Array.from({ length: 8 }, () => launch(person, header)));
    expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(201));
    expect(settledTimes()).toBe(before + 1);
    expect(await balanceOf(person)).toBe("1.000000");
    expect(await topUps(person)).toBe(1);
  });

  test("presented by another account, at once and later, it is refused there", async () => {
    const thief = await settling.someone();
    const header = await sign();
    const [first, second] = await Promise.all([launch(person, header), launch(thief, header)]);
    const [own, other] = first.status === 201 ? [first, second] : [second, first];
    expect([own.status, other.status]).toEqual([201, 402]);
    expect(other.body.error.message).toContain("presented before");
    const loser = first.status === 201 ? thief : person;
    const later = await launch(loser, header);
    expect(later.status).toBe(402);
    expect(await balanceOf(loser)).toBe("0.000000");
  });

  test("settled elsewhere before it is presented here, it is credited to nobody", async () => {
    const header = await sign();
    const payload = decode(header["X-PAYMENT"] ?? "");
    settling.facilitator.misbehave("/verify", () => Response.json({ isValid: true }));
    settling.facilitator.misbehave("/settle", () => Response.json({ success: true, transaction: hash }));
    const hash = await settling.facilitator.send({
      x402Version: 1,
      paymentPayload: payload as never,
      paymentRequirements: { network: "base", asset: base().usdc } as never,
    });
    const answer = await launch(person, header);
    expect(answer.status).toBe(402);
    expect(await balanceOf(person)).toBe("0.000000");
  });
});

test("no signed payment is settled to start an instance that does not exist", async () => {
  const before = settling.facilitator.calls.length;
  const start = await person.ask("POST", `/v1/instances/${newId("inst")}/start`, undefined, await sign());
  expect(start.status).toBe(404);
  expect(settling.facilitator.calls.length).toBe(before);
});

describe("a payment that differs from what was asked for is refused before the facilitator sees it", () => {
  const now = Math.floor(Date.now() / 1000);
  test.each<[string, Changes, string]>([
    ["another amount", { value: "1000001" }, "amount"],
    ["less", { value: "999999" }, "amount"],
    ["another recipient", { to: "0x00000000000000000000000000000000000000A1" }, "recipient"],
    ["another recipient, version 2", { version: 2, to: "0x00000000000000000000000000000000000000A1" }, "recipient"],
    ["another token", { version: 2, asset: "0x00000000000000000000000000000000000000A2" }, "USDC"],
    ["another scheme", { scheme: "upto" }, "scheme"],
    ["one that is over", { validBefore: now - 1 }, "expired"],
    ["one that begins tomorrow", { validAfter: now + 86_400 }, "not valid yet"],
    ["one that holds for a year", { validBefore: now + 31_536_000 }, "longer"],
  ])("%s", async (_what, changes, reason) => {
    const before = settling.facilitator.calls.length;
    const answer = await launch(person, await sign(changes));
    expect(answer.status).toBe(402);
    expect(answer.body.error.message).toContain(reason);
    expect(answer.body.accepts).toHaveLength(2);
    expect(answer.body.x402.amount).toMatch(/^1\.00\d{4}$/);
    expect(settling.facilitator.calls.length).toBe(before);
  });

  test.each<[string, () => Record<string, string> | Promise<Record<string, string>>]>([
    ["no base64", () => ({ "X-PAYMENT": "%%%" })],
    ["an empty signature", () => ({ "PAYMENT-SIGNATURE": "" })],
    ["base64 of no JSON", () => ({ "X-PAYMENT": Buffer.from("hello").toString("base64") })],
    ["base64 of null", () => ({ "PAYMENT-SIGNATURE": encode(null) })],
    [
      "no authorization",
      () => ({ "X-PAYMENT": encode({ x402Version: 1, scheme: "exact", network: "base", payload: {} }) }),
    ],
    ["version 1 in the header of version 2", async () => ({ "PAYMENT-SIGNATURE": (await sign())["X-PAYMENT"] ?? "" })],
    [
      "version 2 in the header of version 1",
      async () => ({ "X-PAYMENT": (await sign({ version: 2 }))["PAYMENT-SIGNATURE"] ?? "" }),
    ],
    [
      "ethereum in version 1",
      () => sign({ network: "base" }).then((header) => changed(header, { network: "ethereum" })),
    ],
    ["a network that is not configured", () => sign().then((header) => changed(header, { network: "avalanche" }))],
    ["two payments", async () => ({ ...(await sign()), ...(await sign({ version: 2 })) })],
    ["more than a header holds", () => ({ "X-PAYMENT": encode({ x402Version: 1, padding: "x".repeat(9_000) }) })],
  ])("malformed: %s", async (_what, header) => {
    const before = settling.facilitator.calls.length;
    const answer = await launch(person, await header());
    expect(answer.status).toBe(400);
    expect(answer.body.error.message).toMatch(/^(X-PAYMENT|PAYMENT-SIGNATURE): expected /);
    expect(settling.facilitator.calls.length).toBe(before);
  });

  const changed = (header: Record<string, string>, change: Record<string, unknown>) => ({
    "X-PAYMENT": encode({ ...decode(header["X-PAYMENT"] ?? ""), ...change }),
  });

  test("a signature by somebody else is refused by the facilitator and not settled", async () => {
    const before = settledTimes();
    const header = await sign();
    const forged = decode(header["X-PAYMENT"] ?? "") as { payload: { authorization: { from: string } } };
    forged.payload.authorization.from = settling.payer("base").address;
    const answer = await launch(person, { "X-PAYMENT": encode(forged) });
    expect(answer.status).toBe(402);
    expect(answer.body.error.message).toContain("invalid_exact_evm_payload_signature");
    expect(settledTimes()).toBe(before);
  });
});

describe("a facilitator that lies is never believed:", () => {
  const claim = (transaction: string) =>
    settling.facilitator.misbehave("/settle", () => Response.json({ success: true, transaction, network: "base" }));
  const refusedLaunch = async (who: Person, header: Record<string, string>): Promise<Answer> => {
    const answer = await launch(who, header);
    expect(answer.status).toBe(402);
    expect(await balanceOf(who)).toBe("0.000000");
    return answer;
  };

  test("a transaction that does not exist", async () => {
    claim(`0x${"ab".repeat(32)}`);
    await refusedLaunch(person, await sign());
  });

  test("somebody's payment of an invoice; that one is still credited to its own account", async () => {
    const other = await settling.someone();
    const { amount } = (await launch(other)).body.x402;
    const hash = await base().transfer({ to: recipient as `0x${string}`, amount: BigInt(amount.replace(".", "")) });
    await base().mine(12);
    claim(hash);
    await refusedLaunch(person, await sign());
    const proof = { "X-PAYMENT": JSON.stringify({ txHash: hash, network: "base" }) };
    expect((await launch(other, proof)).status).toBe(201);
    expect(await balanceOf(other)).toBe(amount);
  });

  test("somebody's signed payment, or one by the same payer that was credited before", async () => {
    const other = await settling.someone();
    const payer = settling.payer("base");
    const paid = await launch(other, await signPayment(payer, recipient));
    claim(String(decode(paid.headers.get("X-PAYMENT-RESPONSE")).transaction));
    await refusedLaunch(person, await signPayment(payer, recipient));
    expect(await balanceOf(other)).toBe("1.000000");
    const own = await person.ask("POST", "/v1/billing/top-up", {}, await signPayment(payer, recipient));
    expect(own.status).toBe(402);
  });

  test("a plain transfer by the same payer, of the same amount", async () => {
    const payer = settling.payer("base");
    claim(await base().transfer({ from: payer.address, to: recipient as `0x${string}`, amount: 1_000_000n }));
    await refusedLaunch(person, await signPayment(payer, recipient));
  });

  test("if the node cannot search logs, the named transaction must contain the payer's own uncredited transfer", async () => {
    const refuseLogs = () =>
      settling.proxies.base?.lie((result, { method }) => {
        if (method === "eth_getLogs") throw new Error("block range is too large");
        return result;
      });
    refuseLogs();
    const honest = await launch(person, await sign());
    expect(honest.status).toBe(201);

    const payer = settling.payer("base");
    const other = await settling.someone();
    const paid = await launch(other, await signPayment(payer, recipient));
    const hash = String(decode(paid.headers.get("X-PAYMENT-RESPONSE")).transaction);
    claim(hash);
    const somebody = await settling.someone();
    await refusedLaunch(somebody, await sign());
    const again = await other.ask("POST", "/v1/billing/top-up", {}, await signPayment(payer, recipient));
    expect(again.status).toBe(402);
    expect(await balanceOf(other)).toBe("1.000000");
  });
});

describe("invalid answers of a facilitator cost nobody anything", () => {
  const nonsense: [string, () => Response][] = [
    ["a page", () => new Response("<html>", { headers: { "Content-Type": "text/html" } })],
    ["a fault", () => new Response("out of order", { status: 500 })],
    ["an array", () => Response.json([])],
    ["nothing", () => new Response("")],
    ["a redirect", () => new Response(null, { status: 302, headers: { Location: settling.facilitator.url } })],
    ["no end of it", () => new Response(`{"isValid":true,"success":true,"padding":"${"x".repeat(300_000)}"}`)],
    ["a success without a transaction", () => Response.json({ success: true, isValid: "yes", transaction: "" })],
  ];

  test.each(nonsense)("%s, to /verify: nothing is settled", async (_what, answer) => {
    const before = settledTimes();
    settling.facilitator.misbehave("/verify", answer);
    const refused = await launch(person, await sign());
    expect(refused.status).toBe(402);
    expect(refused.body.error.message).toContain("nothing was paid");
    expect(settledTimes()).toBe(before);
  });

  test.each(nonsense)(
    "%s, to /settle: it is called once, and no second payment is requested",
    async (_what, answer) => {
      const before = settledTimes();
      settling.facilitator.misbehave("/settle", answer);
      const refused = await launch(person, await sign());
      expect(refused.status).toBe(402);
      expect(refused.body.error.message).toContain("do not pay again");
      expect(refused.headers.has("Retry-After")).toBe(true);
      expect(refused.body).not.toHaveProperty("accepts");
      expect(refused.headers.has("PAYMENT-REQUIRED")).toBe(false);
      expect(settledTimes()).toBe(before + 1);
      expect(await balanceOf(person)).toBe("0.000000");
    },
  );

  test("a refusal to settle is reported, and another payment requested", async () => {
    settling.facilitator.misbehave("/settle", () =>
      Response.json({ success: false, errorReason: "insufficient_funds", transaction: "", network: "base" }),
    );
    const refused = await launch(person, await sign());
    expect(refused.body.error.message).toContain("insufficient_funds");
    expect(refused.body.accepts).toHaveLength(2);
  });
});

describe("money that is on the chain reaches its account", () => {
  const silent = () => new Response("gone", { status: 502 });

  test.each([1, 2] as const)("although the facilitator died after sending it, version %i", async (version) => {
    settling.facilitator.misbehave("/settle", async (honest) => {
      await honest();
      return silent();
    });
    const answer = await launch(person, await sign({ version }));
    expect(answer.status).toBe(201);
    const header = answer.headers.get(version === 1 ? "X-PAYMENT-RESPONSE" : "PAYMENT-RESPONSE");
    expect(decode(header)).toMatchObject({ success: true });
    expect(await balanceOf(person)).toBe("1.000000");
  });

  test("although this host's node is behind the facilitator's", async () => {
    let looks = 0;
    settling.proxies.base?.lie((result, { method }) => (method === "eth_getLogs" && looks++ < 3 ? [] : result));
    const header = await sign();
    // It looks for three seconds, which may be too short for the fourth look: then the same signature is good later.
    while ((await launch(person, header)).status !== 201);
    expect(looks).toBeGreaterThan(3);
    expect(await balanceOf(person)).toBe("1.000000");
  });

  test("although the facilitator says that it failed", async () => {
    settling.facilitator.misbehave("/settle", async (honest) => {
      await honest();
      return Response.json({ success: false, errorReason: "unexpected_settle_error" });
    });
    const header = await sign();
    expect((await launch(person, header)).status).toBe(402);
    expect((await launch(person, header)).status).toBe(201);
    expect(await balanceOf(person)).toBe("1.000000");
  });

  test("if its payer presents it again later", async () => {
    settling.facilitator.misbehave("/settle", silent);
    const header = await sign();
    expect((await launch(person, header)).status).toBe(402);
    await sendLast();
    const answer = await launch(person, header);
    expect(answer.status).toBe(201);
    expect(answer.headers.has("X-PAYMENT-RESPONSE")).toBe(true);
    expect(await balanceOf(person)).toBe("1.000000");
  });

  test("without any request, after a restart", async () => {
    settling.facilitator.misbehave("/settle", silent);
    expect((await launch(person, await sign())).status).toBe(402);
    await sendLast();
    await settling.server.restart();
    await comesToHold(async () => (await balanceOf(person)) === "1.000000");
    expect(await topUps(person)).toBe(1);
  });

  test("although this host stops while the facilitator is slow, which does not delay the stop", async () => {
    settling.facilitator.misbehave("/settle", () => new Promise<Response>(() => {}));
    const before = settledTimes();
    const asked = launch(person, await sign()).catch(() => null);
    await comesToHold(async () => settledTimes() > before);
    const startedAt = performance.now();
    await settling.server.restart();
    expect(performance.now() - startedAt).toBeLessThan(40_000);
    await asked;
    await sendLast();
    await settling.server.restart();
    await comesToHold(async () => (await balanceOf(person)) === "1.000000");
  });

  test("nothing is given away while the chain cannot be reached", async () => {
    const before = settling.facilitator.calls.length;
    settling.proxies.base?.refuse();
    const answer = await launch(person, await sign());
    expect(answer.status).toBe(402);
    expect(answer.headers.has("Retry-After")).toBe(true);
    expect(settling.facilitator.calls.length).toBe(before);
  });

  /** Sends what the facilitator was last asked to settle. */
  async function sendLast(): Promise<void> {
    const call = settling.facilitator.calls.findLast(({ path }) => path === "/settle")?.body;
    if (!call) throw new Error("nothing was to be settled");
    await settling.facilitator.send(call);
  }
});

async function comesToHold(holds: () => Promise<boolean>): Promise<void> {
  const endsAt = performance.now() + 60_000;
  while (!(await holds())) {
    if (performance.now() > endsAt) throw new Error("it did not come to hold");
    await Bun.sleep(20);
  }
}
