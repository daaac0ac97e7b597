import { expect, test } from "bun:test";
import fc from "fast-check";
import { createSlots } from "../../src/limits/slots.ts";

const fill = (slots: ReturnType<typeof createSlots>, owner: string): number => {
  let got = 0;
  while (slots.acquire(owner) === "taken") got++;
  return got;
};

test("one owner alone leaves a quarter free, and each later owner finds a slot", () => {
  const slots = createSlots({ total: 1_000 });
  const got = ["a", "b", "c", "d"].map((owner) => fill(slots, owner));
  expect(got).toEqual([750, 187, 47, 12]);
  expect(slots.acquire("e")).toBe("taken");
});

test("an owner's own bound is checked first, and may be set for each call", () => {
  const slots = createSlots({ total: 1_000, maxPerOwner: 64 });
  expect(fill(slots, "a")).toBe(64);
  expect(slots.acquire("a")).toBe("each");
  expect(slots.acquire("a", 1, 100)).toBe("taken");
});

test("whatever is acquired and released: never more than the total, and all come back", () => {
  const step = fc.record({
    owner: fc.constantFrom("a", "b", "c"),
    count: fc.integer({ min: 1, max: 40 }),
    give: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const slots = createSlots({ total: 100, maxPerOwner: 60 });
      const held: { owner: string; count: number }[] = [];
      for (const { owner, count, give } of steps) {
        const mine = give ? held.findIndex((one) => one.owner === owner) : -1;
        const [back] = mine < 0 ? [] : held.splice(mine, 1);
        if (back) slots.release(back.owner, back.count);
        else if (slots.acquire(owner, count) === "taken") held.push({ owner, count });
        const sum = (of: typeof held) => of.reduce((total, one) => total + one.count, 0);
        expect(slots.inUse()).toBe(sum(held));
        for (const name of ["a", "b", "c"]) {
          const may = slots.shortfall(name) === 0;
          expect(slots.acquire(name) === "taken").toBe(may);
          if (may) slots.release(name);
        }
        expect(slots.inUse()).toBeLessThanOrEqual(100);
        for (const name of ["a", "b", "c"])
          expect(slots.inUse(name)).toBe(sum(held.filter((one) => one.owner === name)));
      }
      for (const { owner, count } of held) slots.release(owner, count);
      expect(slots.inUse()).toBe(0);
      expect(slots.acquire("a", 60)).toBe("taken");
    }),
  );
});
