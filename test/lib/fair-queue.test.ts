import { expect, test } from "bun:test";
import { createFairQueue } from "../../src/lib/fair-queue.ts";

test("owners take turns, however many items one of them has, and an owner's items keep their order", () => {
  const queue = createFairQueue<string>();
  for (let at = 0; at < 5; at++) queue.add("busy", `busy ${at}`);
  queue.add("quiet", "quiet 0");
  const served: string[] = [];
  queue.serve((item) => {
    served.push(item);
    return "taken";
  });
  expect(served).toEqual(["busy 0", "quiet 0", "busy 1", "busy 2", "busy 3", "busy 4"]);
  expect(queue.isEmpty()).toBe(true);
});

test("an owner that is skipped keeps its items, and holds up nobody", () => {
  const queue = createFairQueue<string>();
  for (const item of ["a1", "a2", "a3"]) queue.add("a", item);
  for (const item of ["b1", "b2"]) queue.add("b", item);
  const served: string[] = [];
  let left = 1;
  queue.serve((item, owner) => {
    if (owner === "a" && left-- <= 0) return "skip owner";
    served.push(item);
    return "taken";
  });
  expect(served).toEqual(["a1", "b1", "b2"]);
  served.length = 0;
  queue.serve((item) => {
    served.push(item);
    return "taken";
  });
  expect(served).toEqual(["a2", "a3"]);
});

test("an item already in the queue keeps its position, and items may be added while it is served", () => {
  const queue = createFairQueue<string>();
  queue.add("a", "a1");
  queue.add("a", "a2");
  queue.add("a", "a1");
  const served: string[] = [];
  queue.serve((item) => {
    served.push(item);
    if (item === "a1" && served.length === 1) queue.add("b", "b1");
    return "taken";
  });
  expect(served.toSorted()).toEqual(["a1", "a2", "b1"]);
});
