import { expect, test } from "bun:test";
import { costOfRead, createAccountRates } from "../../src/limits/account-rates.ts";

test("a read costs by the size of its answer, or by how long it held the thread", () => {
  expect(costOfRead(300, 0.04, 5_000)).toBe(0);
  expect(costOfRead(4_000, 0.1, 5_000)).toBe(1);
  expect(costOfRead(400_000, 0.1, 5_000)).toBe(97);
  expect(costOfRead(300, 10, 5_000)).toBe(199);
  // Longer reads were waiting for something else.
  expect(costOfRead(300, 10_000, 5_000)).toBe(costOfRead(300, 25, 5_000));
  // A few reads per second may each take their time; a host without limits lets an account have the whole thread.
  expect(costOfRead(300, 10, 10)).toBe(0);
  expect(costOfRead(300, 0.05, 1_000_000)).toBe(0);
});

test("whatever an account reads, it holds the thread for at most a quarter of the time", () => {
  let now = 0;
  const limits = {
    reads: 5_000,
    writes: 200,
    streams: 1,
    instances: 1,
    agents: 1,
    workspaceBytes: 1,
    tokensPerDay: null,
    tokensPerMonth: null,
  };
  const rates = createAccountRates({ of: () => limits }, () => now);
  let heldMs = 0;
  while (now < 20) {
    try {
      rates.admit("acct_a", "reads");
      heldMs += 8;
      now += 0.008;
      rates.chargeRead("acct_a", 300, 8);
    } catch {
      now += 0.001;
    }
  }
  expect(heldMs / 20_000).toBeWithin(0.24, 0.28);
});
