import { beforeEach, expect, test } from "bun:test";
import { createWorkerStarts, type WorkerStarts } from "../../src/runtime/worker-starts.ts";

let nowMs: number;
let starts: WorkerStarts;
/** Resolves at the next call. */
let nextCall: () => Promise<void>;
beforeEach(() => {
  nowMs = 1_000_000;
  let call = Promise.withResolvers<void>();
  nextCall = () => call.promise;
  starts = createWorkerStarts(
    () => nowMs,
    () => {
      call.resolve();
      call = Promise.withResolvers();
    },
  );
});

/** Starts workers as long as the account may, each in so many milliseconds. Returns how many in the time given. */
function startFor(accountId: string, ms: number, eachMs = 5): number {
  let started = 0;
  for (const endMs = nowMs + ms; nowMs < endMs; ) {
    starts.works(accountId);
    if (starts.mayStart(accountId)) {
      const end = starts.start(accountId);
      nowMs += eachMs;
      end();
      started++;
    } else nowMs++;
  }
  return started;
}

test("one worker starts at a time, and the next as soon as that one is at work or has ended", async () => {
  expect(starts.mayStart("a")).toBe(true);
  const end = starts.start("a");
  expect([starts.mayStart("a"), starts.mayStart("b")]).toEqual([false, false]);
  const called = nextCall();
  end();
  await called;
  expect(starts.mayStart("b")).toBe(true);
  // To say so again changes nothing.
  starts.start("b");
  end();
  expect(starts.mayStart("a")).toBe(false);
});

test("an account that is alone starts workers one after the other", () => {
  expect(startFor("a", 1_000)).toBe(200);
});

test("while others are at work, an account's starts take a tenth of the time, after a few at once", () => {
  const end = nowMs + 10_000;
  let started = 0;
  while (nowMs < end) {
    starts.works("b");
    started += startFor("a", 500);
  }
  // Of 5 ms each, in 10 s, and 100 ms at once.
  expect(started).toBeGreaterThanOrEqual(200);
  expect(started).toBeLessThanOrEqual(225);
  // Those others are not held up by it, and soon after they have stopped it is not either.
  expect(starts.mayStart("b")).toBe(true);
  nowMs += 1_000;
  expect(startFor("a", 1_000)).toBe(200);
});

test("who has to wait is called when the wait is over, though others have to wait longer", async () => {
  for (const account of ["a", "b"]) starts.works(account);
  const end = starts.start("a");
  nowMs += 200;
  end();
  // A tenth of the time is its own: for a second, it has had too much.
  expect(starts.mayStart("a")).toBe(false);
  starts.start("b");
  nowMs += 490;
  expect(starts.mayStart("c")).toBe(false);
  const later = new Promise((resolve) => setTimeout(resolve, 400, "later"));
  expect(await Promise.race([nextCall(), later])).toBeUndefined();
});

test("a start that does not end does not keep others from theirs for long", async () => {
  starts.start("a");
  expect(starts.mayStart("b")).toBe(false);
  await nextCall();
  nowMs += 500;
  expect(starts.mayStart("b")).toBe(true);
});
