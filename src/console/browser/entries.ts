import { roost } from "./api.ts";
import { day, make, part, reportErrors } from "./dom.ts";
import { exact } from "./money.ts";

const list = part("entry-list", HTMLUListElement);

/** Loads the newest entries of the account's ledger, to call when they are shown. */
export const showEntries = (): Promise<void> =>
  reportErrors(list, async () => {
    const { data } = await roost.get("/v1/billing/transactions", { query: { limit: 8 } });
    const rows = data.map(({ type, amount, network, createdAt }) =>
      make(
        "li",
        "entry",
        make("span", "", type.replace("_", " "), network ? ` on ${network}` : ""),
        make("span", "", exact(amount)),
        make("span", "soft", day(createdAt)),
      ),
    );
    list.replaceChildren(...rows);
  });
