import { roost } from "./api.ts";
import { day, make, part, reportErrors } from "./dom.ts";
import { exact } from "./money.ts";

const section = part("entries", HTMLElement);
const list = part("entry-list", HTMLUListElement);

const NAMES = { top_up: "Top-up", credit: "Credit", usage: "Usage", reversal: "Reversal" };

/** Loads the newest entries of the account's ledger, to call when they are shown. */
export const showEntries = (): Promise<void> =>
  reportErrors(list, async () => {
    const { data } = await roost.get("/v1/billing/transactions", { query: { limit: 8 } });
    const rows = data.map(({ type, amount, network, createdAt }) =>
      make(
        "li",
        "entry",
        make("span", "", NAMES[type], network ? ` on ${network}` : ""),
        make("span", "", exact(amount).replace("-", "−")),
        make("span", "soft", day(createdAt)),
      ),
    );
    list.replaceChildren(...rows);
    section.hidden = rows.length === 0;
  });
