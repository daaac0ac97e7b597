import { expect, test } from "bun:test";
import fc from "fast-check";
import { createPlaces } from "../../src/limits/places.ts";

const fill = (places: ReturnType<typeof createPlaces>, owner: string): number => {
  let got = 0;
  while (places.take(owner) === "taken") got++;
  return got;
};

test("one owner alone leaves a quarter free, and each who comes after finds a place", () => {
  const places = createPlaces({ total: 1_000 });
  const got = ["a", "b", "c", "d"].map((owner) => fill(places, owner));
  expect(got).toEqual([750, 187, 47, 12]);
  expect(places.take("e")).toBe("taken");
});

test("an owner's own bound comes first, and may be its own", () => {
  const places = createPlaces({ total: 1_000, each: 64 });
  expect(fill(places, "a")).toBe(64);
  expect(places.take("a")).toBe("each");
  expect(places.take("a", 1, 100)).toBe("taken");
});

test("whatever is taken and given: never more than there is, and all of it comes back", () => {
  const step = fc.record({
    owner: fc.constantFrom("a", "b", "c"),
    count: fc.integer({ min: 1, max: 40 }),
    give: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const places = createPlaces({ total: 100, each: 60 });
      const held: { owner: string; count: number }[] = [];
      for (const { owner, count, give } of steps) {
        const mine = give ? held.findIndex((one) => one.owner === owner) : -1;
        const [back] = mine < 0 ? [] : held.splice(mine, 1);
        if (back) places.give(back.owner, back.count);
        else if (places.take(owner, count) === "taken") held.push({ owner, count });
        const sum = (of: typeof held) => of.reduce((total, one) => total + one.count, 0);
        expect(places.held()).toBe(sum(held));
        for (const name of ["a", "b", "c"]) {
          const may = places.lacking(name) === 0;
          expect(places.take(name) === "taken").toBe(may);
          if (may) places.give(name);
        }
        expect(places.held()).toBeLessThanOrEqual(100);
        for (const name of ["a", "b", "c"])
          expect(places.held(name)).toBe(sum(held.filter((one) => one.owner === name)));
      }
      for (const { owner, count } of held) places.give(owner, count);
      expect(places.held()).toBe(0);
      expect(places.take("a", 60)).toBe("taken");
    }),
  );
});
