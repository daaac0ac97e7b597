import { expect, test } from "bun:test";
import { startPaying } from "./paying.ts";

test("the answer does not promise to remember more payments than an account may have undecided", async () => {
  await using paying = await startPaying();
  const person = await paying.someone();
  paying.proxy.refuse();
  const reasonFor = async (nth: number) => {
    const proof = { txHash: `0x${nth.toString(16).padStart(64, "0")}`, network: "base" };
    const { body } = await person.ask("POST", "/v1/billing/top-up", {}, { "X-PAYMENT": JSON.stringify(proof) });
    return body.error.message;
  };
  for (let nth = 1; nth <= 20; nth++) expect(await reasonFor(nth)).toContain("it is remembered, and credited once");
  expect(await reasonFor(21)).toContain("too many undecided ones for it to be remembered; present it again");
  expect(await reasonFor(20)).toContain("it is remembered");
});
