import { expect, test } from "bun:test";
import { createCommitPace } from "../../src/storage/commit-pace.ts";

test("an occasional commit does not wait", () => {
  let now = 0;
  const pace = createCommitPace(() => now);
  for (let times = 0; times < 100; times++) {
    expect(pace.delayMs()).toBe(0);
    now += 4;
    pace.spend(4);
    now += 5;
  }
});

test("continuous commits take half of the time, and none waits long", () => {
  let now = 0;
  let held = 0;
  const pace = createCommitPace(() => now);
  while (now < 10_000) {
    const delay = pace.delayMs();
    expect(delay).toBeLessThanOrEqual(20);
    now += delay + 3;
    held += 3;
    pace.spend(3);
  }
  expect(held / now).toBeWithin(0.48, 0.52);
});
