import { RoostError } from "../../../clients/typescript/src/index.ts";
import { parseMoney } from "../../lib/money.ts";
import { roost } from "./api.ts";
import { attempt, part } from "./dom.ts";
import { exact } from "./money.ts";
import type { Quote } from "./records.ts";
import { ToldError } from "./told-error.ts";

const ask = part("ask-quote", HTMLFormElement);
const amount = part("top-up-amount", HTMLInputElement);
const bill = part("quote", HTMLElement);
const network = part("quote-network", HTMLSelectElement);
const proof = part("pay-quote", HTMLFormElement);
const hash = part("tx-hash", HTMLInputElement);
const sent = part("payment-sent", HTMLButtonElement);
const paid = part("paid", HTMLElement);

const HASH = /^0x[0-9a-f]{64}$/i;

/** Requests a quote, shows what to send and where, and takes the transaction's hash as proof of payment. */
export function openTopUp(minimum: string, balanceChanged: () => void): void {
  part("top-up-least", HTMLElement).textContent = exact(minimum);
  amount.placeholder = exact(minimum);
  let options: Quote["options"] = [];
  const showOption = () => {
    const option = options.find((one) => one.network === network.value);
    if (option) part("quote-recipient", HTMLElement).textContent = option.recipient;
  };
  const show = (quote: Quote) => {
    options = quote.options;
    network.replaceChildren(...options.map((option) => new Option(option.network, option.network)));
    part("quote-amount", HTMLElement).textContent = quote.amount;
    showOption();
    bill.hidden = false;
    paid.hidden = true;
    sent.textContent = "I have sent it";
    bill.focus();
  };
  network.addEventListener("change", showOption);
  ask.addEventListener("submit", (event) => {
    event.preventDefault();
    void attempt(ask, async () => {
      const wanted = amount.value.trim();
      if (wanted !== "" && parseMoney(wanted) === null)
        throw new ToldError(
          "this is not an amount",
          "Write one such as 2.50, with at most nine digits before the point and six after it.",
        );
      show(await askQuote(wanted === "" ? {} : { amount: wanted }));
    });
  });
  proof.addEventListener("submit", (event) => {
    event.preventDefault();
    void attempt(proof, async () => {
      const txHash = hash.value.trim();
      if (!HASH.test(txHash))
        throw new ToldError(
          "this is not a transaction hash",
          "It begins with 0x, and has 64 digits and letters from a to f after that. Your wallet shows it with the payment.",
        );
      paid.hidden = true;
      const headers = { "X-PAYMENT": JSON.stringify({ txHash, network: network.value }) };
      try {
        const added = await roost.post("/v1/billing/top-up", { body: {}, headers });
        hash.value = "";
        bill.hidden = true;
        paid.textContent = `${exact(added.amount)} USDC received.`;
        balanceChanged();
      } catch (error) {
        paid.textContent = stateOf(error);
        sent.textContent = "Check again";
      }
      paid.hidden = false;
    });
  });
}

/** Of a payment that is not credited yet, but may be. Throws for any other, and never asks to pay once more. */
function stateOf(error: unknown): string {
  if (!(error instanceof RoostError && error.code === "payment_required")) throw error;
  const { message, retryAfterSeconds } = error;
  if (retryAfterSeconds === null) throw new ToldError(message, "");
  return `Not yet: ${message}. Do not pay twice: check again in ${retryAfterSeconds} s.`;
}

/** A quote comes as an error response: 402. */
async function askQuote(body: { amount?: string }): Promise<Quote> {
  const error = await roost.post("/v1/billing/top-up", { body }).then(
    () => null,
    (error: unknown) => error,
  );
  const quote = error instanceof RoostError ? error.details.x402 : undefined;
  if (quote === undefined) throw error;
  return quote;
}
