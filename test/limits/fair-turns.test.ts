import { beforeEach, expect, test } from "bun:test";
import { createFairTurns, type FairTurns } from "../../src/limits/fair-turns.ts";

let ms: number;
let turns: (() => void)[];
let shares: FairTurns;
let done: string[];
beforeEach(() => {
  ms = 0;
  turns = [];
  done = [];
  shares = createFairTurns({ maxMs: 2, now: () => ms, nextTurn: (then) => void turns.push(then) });
});

/** Requests work of this many milliseconds. */
async function ask(owner: string, name: string, takes: number): Promise<void> {
  const turn = shares.enter(owner);
  if (turn) await turn;
  shares.spend(owner, () => {
    ms += takes;
    done.push(name);
  });
}

async function nextTurn(): Promise<string[]> {
  const before = done.length;
  for (const then of turns.splice(0)) then();
  await new Promise(setImmediate);
  return done.slice(before);
}

test("work within the share is done at once", () => {
  for (let number = 0; number < 4; number++) void ask("a", `a${number}`, 0.5);
  expect(done).toEqual(["a0", "a1", "a2", "a3"]);
});

test("work beyond it waits for later turns, in order, and holds up nobody else", async () => {
  for (let number = 0; number < 4; number++) void ask("a", `a${number}`, 2);
  void ask("b", "b0", 1);
  expect(done).toEqual(["a0", "b0"]);
  void ask("a", "a4", 2);
  expect(await nextTurn()).toEqual(["a1"]);
  void ask("b", "b1", 1);
  expect(done.at(-1)).toBe("b1");
  expect([await nextTurn(), await nextTurn(), await nextTurn()]).toEqual([["a2"], ["a3"], ["a4"]]);
});

test("small works share a later turn, as many as fit", async () => {
  for (let number = 0; number < 10; number++) void ask("a", `a${number}`, 0.5);
  expect(done).toHaveLength(4);
  expect(await nextTurn()).toHaveLength(4);
  expect(await nextTurn()).toHaveLength(2);
  expect(done).toEqual(Array.from({ length: 10 }, (_, number) => `a${number}`));
});

test("what goes on in a later turn is announced, what goes on at once is not", async () => {
  shares = createFairTurns({
    maxMs: 2,
    now: () => ms,
    nextTurn: (then) => void turns.push(then),
    beforeLater: () => done.push("later"),
  });
  for (let number = 0; number < 2; number++) void ask("a", `a${number}`, 2);
  expect(done).toEqual(["a0"]);
  expect(await nextTurn()).toEqual(["later", "a1"]);
  expect(await nextTurn()).toEqual([]);
});

test("several waiting owners are served in the same turn, each its share", async () => {
  for (let number = 0; number < 3; number++) {
    void ask("a", `a${number}`, 2);
    void ask("b", `b${number}`, 2);
  }
  expect(done).toEqual(["a0", "b0"]);
  expect(await nextTurn()).toEqual(["a1", "b1"]);
  expect(await nextTurn()).toEqual(["a2", "b2"]);
});

test("work that took longer than the share takes the rest from later turns, but not from too many", async () => {
  void ask("a", "long", 5);
  void ask("a", "a1", 2);
  void ask("b", "b0", 1);
  // Two turns pay for it: 5 = 2 + 2 + 1, and of the third there is half left.
  expect([await nextTurn(), await nextTurn()]).toEqual([[], ["a1"]]);
  await ask("b", "b1", 1_000_000);
  void ask("b", "b2", 1);
  let waited = 1;
  while ((await nextTurn()).length === 0) waited++;
  expect(waited).toBe(32);
});

test("who has used up its share waits while others do something, and goes on when they have stopped", async () => {
  const pauses: { ms: number; then: () => void }[] = [];
  shares = createFairTurns({
    ...{ maxMs: 2, share: 0.25, now: () => ms, nextTurn: (then) => void turns.push(then) },
    wait: (ms, then) => void pauses.push({ ms, then }),
  });
  /** Takes turns until nothing is left, or it has to wait. */
  const work = async () => {
    while (turns.length > 0) await nextTurn();
  };
  for (let number = 0; number < 100; number++) void ask("a", "alone", 2);
  await work();
  expect(done).toHaveLength(100);

  void ask("b", "b", 1);
  for (let number = 0; number < 100; number++) void ask("a", "beside b", 2);
  await work();
  // 20 ms that are saved, and a quarter of the time since.
  const before = done.filter((name) => name === "beside b").length;
  expect(before).toBeWithin(10, 20);
  expect(pauses.map(({ ms }) => ms <= 100)).toEqual([true]);
  // Others need not wait for it.
  void ask("b", "b again", 1);
  expect(done.at(-1)).toBe("b again");

  ms += 1_000;
  pauses.pop()?.then();
  await work();
  expect(done.filter((name) => name === "beside b")).toHaveLength(100);

  // What its works cost elsewhere is taken from its share too.
  void ask("b", "b at last", 1);
  shares.spend("a", () => {}, 1_000);
  void ask("a", "later", 1);
  await work();
  expect(done.at(-1)).toBe("b at last");
});

test("work that fails is charged its time, and the next one still runs", async () => {
  const failing = () =>
    shares.spend("a", () => {
      ms += 3;
      throw new Error("no");
    });
  expect(failing).toThrow("no");
  void ask("a", "a0", 1);
  expect(done).toEqual([]);
  expect(await nextTurn()).toEqual(["a0"]);
});

test("who has hardly used its share is not held to the short turns of those who have", async () => {
  shares = createFairTurns({
    ...{ maxMs: 1, aloneMs: 8, share: 0.25, now: () => ms, nextTurn: (then) => void turns.push(then) },
    wait: () => {},
  });
  // Half of what is saved: its turns are short from now on.
  shares.spend("quiet", () => {});
  shares.spend("busy", () => {}, 11);
  for (let number = 0; number < 3; number++) {
    void ask("busy", `busy${number}`, 2);
    void ask("quiet", `quiet${number}`, 2);
  }
  expect(done).toEqual(["busy0", "quiet0", "quiet1", "quiet2"]);
  expect(await nextTurn()).toEqual([]);
  expect(await nextTurn()).toEqual(["busy1"]);
});
