import { expect, test } from "bun:test";
import { fuzz } from "./fuzz-run.ts";

const CASES = 1_500;

/** The same requests every time; `npm run fuzz -- 5m` looks for new ones. */
test.each([1, 2, 3, 4])(
  "whatever is requested, the answer matches the document, in time and without a server error (seed %i)",
  async (seed) => {
    const { cases, failures, statuses } = await fuzz({ seed, cases: CASES });
    expect(failures).toEqual([]);
    expect(cases).toBe(CASES);
    expect(Object.keys(statuses)).toContainValues(["200", "201", "400", "401", "403", "404", "405", "409", "413"]);
  },
);
