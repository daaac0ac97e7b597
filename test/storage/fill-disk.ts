/** For the test of a full disk, run on a small one of its own: prints what the check says before, while and after it is full. */
import { appendFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { openStore } from "../../src/storage/store.ts";
import { createWriteCheck } from "../../src/storage/write-check.ts";

const disk = process.argv[2] ?? "";
const filler = join(disk, "filler");
const store = openStore(join(disk, "data"));
let now = 0;
const check = createWriteCheck(store, () => now);
const told = [await check.refusal()];

function fill(): void {
  try {
    for (;;) appendFileSync(filler, Buffer.alloc(4_096));
  } catch {} // it is full
}
/** Until also the room that the database has left within its files is used up. */
async function useUp(): Promise<void> {
  for (let id = 0; ; id++) {
    const work = () =>
      store.sqlite.run(
        `INSERT INTO accounts (account_id, email, name, created_at) VALUES ('acct_${id}', '${id}', '${"x".repeat(4_000)}', 0)`,
      );
    if (
      await store.commitSoon(work, "full").then(
        () => false,
        () => true,
      )
    )
      return;
  }
}
fill();
await useUp();
fill();
told.push(await check.refusal()); // as known from before
now += 10_000;
told.push(await check.refusal());
rmSync(filler);
told.push(await check.refusal());
now += 10_000;
told.push(await check.refusal());
store.close();
process.stdout.write(JSON.stringify(told));
