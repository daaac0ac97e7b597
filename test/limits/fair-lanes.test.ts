import { expect, test } from "bun:test";
import { createFairLanes } from "../../src/limits/fair-lanes.ts";

/** Works that end when the test says so. */
function worksIn(limits: { count: number; ofOwner: number; waiting: number }) {
  const lanes = createFairLanes(limits);
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  return {
    begun,
    enter(owner: string, nth: number): boolean {
      const name = `${owner}${nth}`;
      return lanes.enter(owner, () => {
        begun.push(name);
        return new Promise((resolve) => ends.set(name, resolve));
      });
    },
    async end(name: string) {
      ends.get(name)?.();
      // What follows an end takes a few turns of promises.
      for (let turn = 0; turn < 10; turn++) await Promise.resolve();
    },
  };
}

test("who has a hundred works and who has one are served in turn, and nobody has all lanes", async () => {
  const works = worksIn({ count: 4, ofOwner: 3, waiting: 100 });
  for (let nth = 1; nth <= 100; nth++) expect(works.enter("a", nth)).toBe(true);
  expect(works.begun).toEqual(["a1", "a2", "a3"]);
  works.enter("b", 1);
  works.enter("b", 2);
  works.enter("c", 1);
  expect(works.begun).toEqual(["a1", "a2", "a3", "b1"]);
  await works.end("a1");
  await works.end("a2");
  await works.end("a3");
  expect(works.begun.slice(4)).toEqual(["a4", "b2", "c1"]);
});

test("an owner may have so many waiting, and is told at once of one too many", () => {
  const works = worksIn({ count: 2, ofOwner: 1, waiting: 2 });
  expect([1, 2, 3, 4].map((nth) => works.enter("a", nth))).toEqual([true, true, true, false]);
  expect(works.enter("b", 1)).toBe(true);
  expect(works.begun).toEqual(["a1", "b1"]);
});

test("all of it is done in the end, never more at once than allowed", async () => {
  const lanes = createFairLanes({ count: 5, ofOwner: 2, waiting: 1_000 });
  let [now, most, done] = [0, 0, 0];
  for (let nth = 0; nth < 500; nth++) {
    lanes.enter(`owner${nth % 7}`, async () => {
      now += 1;
      most = Math.max(most, now);
      await Promise.resolve();
      now -= 1;
      done += 1;
    });
  }
  while (now > 0 || done < 500) await new Promise((resolve) => setImmediate(resolve));
  expect([done, most]).toEqual([500, 5]);
});
