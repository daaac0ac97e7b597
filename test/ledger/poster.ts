import { createLedger } from "../../src/ledger/ledger.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { openStore } from "../../src/storage/store.ts";

/** A server as far as the journal is concerned: posts to an account, entry by entry, until it is ended. */
const [dataDir = "", accountId = ""] = process.argv.slice(2);
const store = openStore(dataDir);
const ledger = createLedger(store, systemClock);
console.log("posting");
for (;;) {
  ledger.post({ type: "credit", accountId, amount: 1n, against: "grants" });
  await Bun.sleep(0);
}
