/** For the test of a death in the middle of pruning: prunes a data folder, and says so after each slice. */
import { createAging } from "../../src/messages/aging.ts";
import { createRetention } from "../../src/storage/retention.ts";
import { openStore } from "../../src/storage/store.ts";

const store = openStore(process.argv[2] ?? "");
const { messages } = createAging(
  store,
  () => {},
  () => {},
);
const retention = createRetention(store, { now: () => Date.now() }, async () => {
  process.stdout.write("slice\n");
  // The reader kills this process once it has read enough of these.
  await new Promise((resolve) => setImmediate(resolve));
});
await retention.prune({ kind: "messages", keptMs: 86_400_000, slice: messages });
