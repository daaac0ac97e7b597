import { expect, test } from "bun:test";
import { createHostPlaces, sleepsFor } from "../../src/runtime/host-places.ts";

const BOUNDS = { workers: 8, workersOfOne: 4, idleOfOne: 4, runs: 8, runsOfOne: 2 };

test("the longest idle worker of the same account is put to sleep first, else the longest idle of all", () => {
  const idle = [
    { accountId: "a", lastUsedMs: 5 },
    { accountId: "b", lastUsedMs: 1 },
    { accountId: "a", lastUsedMs: 3 },
    { accountId: "c", lastUsedMs: 2 },
  ];
  expect(sleepsFor(idle, "a", 1)?.lastUsedMs).toBe(3);
  expect(sleepsFor(idle, "c", 1)?.lastUsedMs).toBe(2);
  expect(sleepsFor(idle, "d", 4)?.lastUsedMs).toBe(1);
  expect(sleepsFor([], "a", 1)).toBeUndefined();
  // Putting others to sleep would not free a place for it.
  expect(sleepsFor(idle, "d", 5)).toBeUndefined();
  expect(sleepsFor(idle, "c", Number.POSITIVE_INFINITY)?.lastUsedMs).toBe(2);
});

test("room is reported once for all places freed in one turn of the event loop", async () => {
  let told = 0;
  const places = createHostPlaces(
    BOUNDS,
    () => 0,
    () => told++,
  );
  for (const account of ["a", "a", "b"]) expect(places.runs.acquire(account)).toBe("taken");
  expect(places.runs.acquire("a")).toBe("each");
  places.releaseRuns("a", 2);
  places.releaseRuns("b");
  await new Promise((resolve) => setImmediate(resolve));
  await new Promise((resolve) => setImmediate(resolve));
  expect(told).toBe(1);
});
