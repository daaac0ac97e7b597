import { afterEach, expect, test } from "bun:test";
import { type Housekeeping, startHousekeeping } from "../../src/app/housekeeping.ts";
import { createLog } from "../../src/lib/log.ts";

const log = await createLog("silent", "json");
let housekeeping: Housekeeping | undefined;
afterEach(() => housekeeping?.stop());

test("no task runs twice at the same time, however long it takes", async () => {
  let running = 0;
  const seen: number[] = [];
  const prune = async () => {
    seen.push(++running);
    await new Promise(setImmediate);
    running--;
  };
  housekeeping = startHousekeeping({ prune }, log);
  await Promise.all([housekeeping.tidy(), housekeeping.tidy()]);
  expect(seen).toEqual([1, 1]);
});

test("a task that fails does not keep the next ones from running", async () => {
  const done: string[] = [];
  const fail = () => Promise.reject(new Error("no"));
  housekeeping = startHousekeeping({ fail, next: () => void done.push("next") }, log);
  await housekeeping.tidy();
  expect(done).toEqual(["next"]);
});
