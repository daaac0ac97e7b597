import { RoostError } from "../../../clients/typescript/src/index.ts";
import { roost } from "./api.ts";
import { attempt, part } from "./dom.ts";
import { exact } from "./money.ts";
import type { Quote } from "./records.ts";

const ask = part("ask-quote", HTMLFormElement);
const amount = part("top-up-amount", HTMLInputElement);
const bill = part("quote", HTMLElement);
const network = part("quote-network", HTMLSelectElement);
const proof = part("pay-quote", HTMLFormElement);
const hash = part("tx-hash", HTMLInputElement);
const paid = part("paid", HTMLElement);

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
    bill.focus();
  };
  network.addEventListener("change", showOption);
  ask.addEventListener("submit", (event) => {
    event.preventDefault();
    void attempt(ask, async () => {
      const wanted = amount.value.trim();
      show(await askQuote(wanted === "" ? {} : { amount: wanted }));
    });
  });
  proof.addEventListener("submit", (event) => {
    event.preventDefault();
    void attempt(proof, async () => {
      const payment = JSON.stringify({ txHash: hash.value.trim(), network: network.value });
      const added = await roost.post("/v1/billing/top-up", { body: {}, headers: { "X-PAYMENT": payment } });
      hash.value = "";
      bill.hidden = true;
      paid.textContent = `${exact(added.amount)} USDC received.`;
      paid.hidden = false;
      balanceChanged();
    });
  });
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
