import { expect, test } from "bun:test";
import { createFairPlaces } from "../../src/limits/fair-places.ts";

const never = new AbortController().signal;
const open = (total: number) => createFairPlaces({ total, maxPerOwner: 2, maxWaitingPerOwner: 2 });

test("places are given to whoever waits, owners in turn", async () => {
  const places = createFairPlaces({ total: 1, maxPerOwner: 1, maxWaitingPerOwner: 2 });
  const served: string[] = [];
  const give = await places.take("a", never);
  const waiting = ["a", "a", "b"].map(async (owner) => {
    const giveBack = await places.take(owner, never);
    served.push(owner);
    giveBack?.();
  });
  expect(places.inUse()).toBe(1);
  give?.();
  await Promise.all(waiting);
  expect(served).toEqual(["a", "b", "a"]);
  expect(places.inUse()).toBe(0);
});

test("an owner with too many that wait is told so, and another is not", async () => {
  const places = open(9);
  const give = await places.take("a", never);
  await places.take("a", never);
  const waiting = [places.take("a", never), places.take("a", never)];
  expect(await places.take("a", never)).toBeNull();
  expect(await places.take("b", never)).toBeFunction();
  give?.();
  expect(await waiting[0]).toBeFunction();
});

test("who gives up waiting counts as waiting no longer", async () => {
  const places = open(9);
  for (let taken = 0; taken < 2; taken++) await places.take("a", never);
  const left = new AbortController();
  const gone = [places.take("a", left.signal), places.take("a", left.signal)];
  expect(await places.take("a", never)).toBeNull();
  left.abort(new Error("enough"));
  await Promise.allSettled(gone);
  const again = new AbortController();
  const next = places.take("a", again.signal);
  again.abort(new Error("still waits"));
  await expect(next).rejects.toThrow("still waits");
});

test("who gives up waiting takes no place", async () => {
  const places = open(9);
  const give = await places.take("a", never);
  const other = await places.take("a", never);
  const left = new AbortController();
  const gone = places.take("a", left.signal);
  const next = places.take("a", never);
  left.abort(new Error("enough"));
  await expect(gone).rejects.toThrow("enough");
  give?.();
  (await next)?.();
  other?.();
  expect(places.inUse()).toBe(0);
  await expect(places.take("a", AbortSignal.abort(new Error("before")))).rejects.toThrow("before");
});
