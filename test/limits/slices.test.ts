import { beforeEach, expect, test } from "bun:test";
import { createFairTurns, type FairTurns } from "../../src/limits/fair-turns.ts";
import { createSlices, type InSlices } from "../../src/limits/slices.ts";

let ms: number;
let next: (() => void)[];
let turns: FairTurns;
let done: string[];
beforeEach(() => {
  ms = 0;
  next = [];
  done = [];
  turns = createFairTurns({ maxMs: 1, now: () => ms, nextTurn: (then) => void next.push(then) });
});

const slicesOf = (owner: string) => createSlices(turns, owner, () => ms);

/** Does so many parts, one after the other, that take half a millisecond each. */
async function work(name: string, parts: number, inSlices: InSlices): Promise<void> {
  for (let part = 0; part < parts; part++) {
    await inSlices(() => {
      ms += 0.5;
      done.push(name);
    });
  }
}

/** What is done until it has to wait for the next turn. */
async function inThisTurn(): Promise<string> {
  await new Promise(setImmediate);
  const parts = done.splice(0).sort().join("");
  for (const then of next.splice(0)) then();
  return parts;
}

test("accounts have a slice in each turn, whether others have work or not", async () => {
  void work("a", 8, slicesOf("a"));
  void work("b", 4, slicesOf("b"));
  expect([await inThisTurn(), await inThisTurn(), await inThisTurn(), await inThisTurn(), await inThisTurn()]).toEqual([
    "aabb",
    "aabb",
    "aa",
    "aa",
    "",
  ]);
});

test("works of one account have a slice by turns", async () => {
  void work("a", 4, slicesOf("one"));
  void work("b", 4, slicesOf("one"));
  // Both have begun before either had used up the first turn, which the second one pays for.
  const seen: string[] = [];
  for (let turn = 0; turn < 8; turn++) seen.push(await inThisTurn());
  expect(seen.filter((parts) => parts !== "")).toEqual(["aabb", "aa", "bb"]);
});

test("what is awaited between parts does not count, and what was done before it does", async () => {
  const inSlices = slicesOf("a");
  await work("a", 1, inSlices);
  // The disk.
  ms += 1_000;
  void work("a", 3, inSlices);
  expect([await inThisTurn(), await inThisTurn(), await inThisTurn()]).toEqual(["aa", "aa", ""]);
});

test("a part that fails is counted too", async () => {
  const inSlices = slicesOf("a");
  const failing = inSlices(() => {
    ms += 1;
    throw new Error("no");
  });
  await expect(failing).rejects.toThrow("no");
  void work("a", 1, inSlices);
  expect([await inThisTurn(), await inThisTurn()]).toEqual(["", "a"]);
});
