import { expect, test } from "bun:test";
import { registerExactEvmScheme } from "@x402/evm/exact/client";
import { decodePaymentResponseHeader, wrapFetchWithPayment as wrapSecond, x402Client } from "@x402/fetch";
import type { Hex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { createSigner, decodeXPaymentResponse, wrapFetchWithPayment as wrapFirst } from "x402-fetch";
import type { Answer, Person } from "../support/test-server.ts";
import { balanceOf, type Settling, startSettling } from "./settling.ts";

const ONE_USDC = 1_000_000n;

type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/**
 * Version 1: its signer belongs to one network and takes that network's option. By default it refuses more than 0.10.
 */
const firstClient = async (network: string, key: Hex): Promise<Fetch> =>
  wrapFirst(fetch, await createSigner(network, key), ONE_USDC);

/** Version 2 with its defaults: it takes the first option, and refuses more than 1.00. */
const secondClient = (key: Hex): Fetch =>
  wrapSecond(fetch, registerExactEvmScheme(new x402Client(), { signer: privateKeyToAccount(key) }));

/** Whether a 402 offers what these clients can pay. */
const offers = ({ headers, body }: Answer): boolean => headers.has("PAYMENT-REQUIRED") || body.accepts !== undefined;

/**
 * On a busy machine, a facilitator or a node may not answer in time. Then nothing is offered for ten seconds, or the host
 * says that nothing was paid: it is to be paid again.
 */
async function pay(
  client: Fetch,
  { server }: Settling,
  person: Person,
  path: string,
  body?: object,
): Promise<Response> {
  while (!offers(await person.ask("POST", path, body))) await Bun.sleep(500);
  const headers = { Authorization: `Bearer ${person.token}`, "Content-Type": "application/json" };
  for (;;) {
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const answer = await client(server.url + path, { method: "POST", headers, ...sent });
    if (answer.status !== 402 || !(await answer.clone().text()).includes("nothing was paid")) return answer;
  }
}

const createInstance = (client: Fetch, settling: Settling, person: Person): Promise<Response> =>
  pay(client, settling, person, "/v1/instances", { name: "Paid by a client" });

/** Why it was refused; null if the instance was created. */
const refusalIn = async (answer: Response): Promise<string | null> =>
  answer.status === 201 ? null : `${answer.status} ${await answer.text()}`;

test.each(["base", "polygon"] as const)(
  "x402-fetch gets the 402 of a new instance, pays on %s and gets its instance",
  async (network) => {
    await using settling = await startSettling({ networks: ["base", "polygon"] });
    const person = await settling.someone();
    const payer = settling.payer(network);
    const wealth = (await settling.chains[network]?.balanceOf(payer.address)) ?? 0n;

    const answer = await createInstance(await firstClient(network, payer.privateKey), settling, person);
    expect(answer.status).toBe(201);
    expect(await answer.json()).toMatchObject({ name: "Paid by a client", status: "running" });
    const told = decodeXPaymentResponse(answer.headers.get("X-PAYMENT-RESPONSE") ?? "");
    expect(told).toMatchObject({ success: true, network, payer: payer.address });
    expect(await balanceOf(person)).toBe("1.000000");
    expect(await settling.chains[network]?.balanceOf(payer.address)).toBe(wealth - ONE_USDC);

    const { body } = await person.ask("GET", "/v1/billing/transactions");
    expect(body.data).toMatchObject([{ type: "top_up", amount: "1.000000", network, txHash: told.transaction }]);
  },
);

test.each(["base", "polygon", "ethereum"] as const)(
  "@x402/fetch does the same with version 2 of the protocol, on %s",
  async (network) => {
    await using settling = await startSettling({ networks: [network] });
    const person = await settling.someone();
    const payer = settling.payer(network);

    const answer = await createInstance(secondClient(payer.privateKey), settling, person);
    expect(await refusalIn(answer)).toBe(null);
    const told = decodePaymentResponseHeader(answer.headers.get("PAYMENT-RESPONSE") ?? "");
    expect(told).toMatchObject({
      success: true,
      network: `eip155:${settling.chains[network]?.chainId}`,
      payer: payer.address,
    });
    expect(await balanceOf(person)).toBe("1.000000");
    const [verified] = settling.facilitator.calls.filter(({ path }) => path === "/verify");
    expect(verified?.body).toMatchObject({ x402Version: 2, paymentRequirements: { amount: "1000000" } });
  },
);

test("@x402/fetch pays with version 1 if the facilitator settles only that", async () => {
  await using settling = await startSettling();
  settling.facilitator.misbehave("/supported", () =>
    Response.json({ kinds: [{ x402Version: 1, scheme: "exact", network: "base" }] }),
  );
  const person = await settling.someone();
  const answer = await createInstance(secondClient(settling.payer("base").privateKey), settling, person);
  expect(answer.status).toBe(201);
  expect(answer.headers.has("X-PAYMENT-RESPONSE")).toBe(true);
  expect(answer.headers.has("PAYMENT-RESPONSE")).toBe(false);
  expect(await balanceOf(person)).toBe("1.000000");
});

test("a client tops up, and the answer says what was credited", async () => {
  await using settling = await startSettling();
  const person = await settling.someone();
  const client = secondClient(settling.payer("base").privateKey);
  for (const balance of ["1.000000", "2.000000"]) {
    const answer = await pay(client, settling, person, "/v1/billing/top-up");
    expect(answer.status).toBe(201);
    expect(await answer.json()).toMatchObject({ amount: "1.000000", balance, currency: "USDC" });
  }
});

test("a payer without the money gets a 402 that says so; with it, a payer starts a stopped instance", async () => {
  await using settling = await startSettling();
  const person = await settling.someone();
  const poor = secondClient(`0x${"5".repeat(64)}`);
  const refused = await createInstance(poor, settling, person);
  expect(refused.status).toBe(402);
  const { error, accepts } = (await refused.json()) as { error: { message: string }; accepts: unknown[] };
  expect(error.message).toContain("insufficient_funds");
  expect(accepts).toHaveLength(1);
  expect(settling.facilitator.count("/settle")).toBe(0);

  const rich = secondClient(settling.payer("base").privateKey);
  const { instanceId } = (await (await createInstance(rich, settling, person)).json()) as { instanceId: string };
  await person.ask("POST", `/v1/instances/${instanceId}/stop`);
  const { ledger } = settling.server.foundation;
  ledger.post({ type: "reversal", accountId: person.accountId, amount: -ONE_USDC, against: "grants" });
  const started = await pay(rich, settling, person, `/v1/instances/${instanceId}/start`);
  expect(started.status).toBe(200);
  expect(await started.json()).toMatchObject({ status: "running" });
  expect(started.headers.has("PAYMENT-RESPONSE")).toBe(true);
});
