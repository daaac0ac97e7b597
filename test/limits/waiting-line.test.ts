import { expect, test } from "bun:test";
import { createWaitingLine } from "../../src/limits/waiting-line.ts";

test("owners take turns, however many wait for one of them, and one's come in their order", () => {
  const line = createWaitingLine<string>();
  for (let at = 0; at < 5; at++) line.add("busy", `busy ${at}`);
  line.add("quiet", "quiet 0");
  const served: string[] = [];
  line.serve((item) => {
    served.push(item);
    return "taken";
  });
  expect(served).toEqual(["busy 0", "quiet 0", "busy 1", "busy 2", "busy 3", "busy 4"]);
  expect(line.isEmpty()).toBe(true);
});

test("an owner that may have no more keeps its line, and holds up nobody", () => {
  const line = createWaitingLine<string>();
  for (const item of ["a1", "a2", "a3"]) line.add("a", item);
  for (const item of ["b1", "b2"]) line.add("b", item);
  const served: string[] = [];
  let left = 1;
  line.serve((item, owner) => {
    if (owner === "a" && left-- <= 0) return "not this owner";
    served.push(item);
    return "taken";
  });
  expect(served).toEqual(["a1", "b1", "b2"]);
  served.length = 0;
  line.serve((item) => {
    served.push(item);
    return "taken";
  });
  expect(served).toEqual(["a2", "a3"]);
});

test("who waits already keeps its place, and may come again while it is served", () => {
  const line = createWaitingLine<string>();
  line.add("a", "a1");
  line.add("a", "a2");
  line.add("a", "a1");
  const served: string[] = [];
  line.serve((item) => {
    served.push(item);
    if (item === "a1" && served.length === 1) line.add("b", "b1");
    return "taken";
  });
  expect(served.toSorted()).toEqual(["a1", "a2", "b1"]);
});
