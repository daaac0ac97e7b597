import { expect, test } from "bun:test";
import { createFairLimiter } from "../../src/limits/fair-limiter.ts";

/** Work that ends when the test says so. */
function worksIn(limits: { concurrency: number; maxPerOwner: number; maxWaiting: number }) {
  const limiter = createFairLimiter(limits);
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  return {
    begun,
    submit(owner: string, nth: number): boolean {
      const name = `${owner}${nth}`;
      return limiter.submit(owner, () => {
        begun.push(name);
        return new Promise((resolve) => ends.set(name, resolve));
      });
    },
    async end(name: string) {
      ends.get(name)?.();
      // Serving the next one takes a few turns of promises.
      for (let turn = 0; turn < 10; turn++) await Promise.resolve();
    },
  };
}

test("owners with a hundred works and with one are served in turn, and none takes all slots", async () => {
  const works = worksIn({ concurrency: 4, maxPerOwner: 3, maxWaiting: 100 });
  for (let nth = 1; nth <= 100; nth++) expect(works.submit("a", nth)).toBe(true);
  expect(works.begun).toEqual(["a1", "a2", "a3"]);
  works.submit("b", 1);
  works.submit("b", 2);
  works.submit("c", 1);
  expect(works.begun).toEqual(["a1", "a2", "a3", "b1"]);
  await works.end("a1");
  await works.end("a2");
  await works.end("a3");
  expect(works.begun.slice(4)).toEqual(["a4", "b2", "c1"]);
});

test("an owner may have so many waiting, and one more is refused at once", () => {
  const works = worksIn({ concurrency: 2, maxPerOwner: 1, maxWaiting: 2 });
  expect([1, 2, 3, 4].map((nth) => works.submit("a", nth))).toEqual([true, true, true, false]);
  expect(works.submit("b", 1)).toBe(true);
  expect(works.begun).toEqual(["a1", "b1"]);
});

test("everything is done in the end, never more at once than allowed", async () => {
  const limiter = createFairLimiter({ concurrency: 5, maxPerOwner: 2, maxWaiting: 1_000 });
  let [now, most, done] = [0, 0, 0];
  for (let nth = 0; nth < 500; nth++) {
    limiter.submit(`owner${nth % 7}`, async () => {
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
