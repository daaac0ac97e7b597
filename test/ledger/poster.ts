import { createLedger } from "../../src/ledger/ledger.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { openStore } from "../../src/storage/store.ts";

/** Posts to an account, entry by entry, until it is stopped, as a server would. */
const [dataDir = "", accountId = ""] = process.argv.slice(2);
const store = openStore(dataDir);
const ledger = createLedger(store, systemClock);
console.log("posting");
for (;;) {
  ledger.post({ type: "credit", accountId, amount: 1n, against: "grants" });
  await Bun.sleep(0);
}
