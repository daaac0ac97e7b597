import { roost } from "./api.ts";
import { attempt, part } from "./dom.ts";
import type { Account } from "./records.ts";

/** Arms the form of the account's monthly limit; `saved` is called with the account that has it. */
export function openMonthlyLimit(saved: (account: Account) => void): void {
  const form = part("limit-form", HTMLFormElement);
  const field = part("monthly-limit", HTMLInputElement);
  const told = part("limit-told", HTMLElement);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void attempt(form, async () => {
      told.textContent = "";
      const monthlyLimit = field.value.trim().replace(",", ".") || null;
      saved(await roost.patch("/v1/auth/me", { body: { monthlyLimit } }));
      told.textContent = monthlyLimit === null ? "There is no limit any more." : "Saved.";
      field.value = "";
      told.focus();
    });
  });
}
