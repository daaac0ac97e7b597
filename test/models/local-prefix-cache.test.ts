import { expect, test } from "bun:test";
import { createPrefixCache } from "../../src/models/local/prefix-cache.ts";

const tokens = (length: number, from = 0) => Array.from({ length }, (_, i) => from + i);
const SYSTEM = tokens(100);
const conversation = (number: number, length = 100) => [...SYSTEM, ...tokens(length, number * 10_000)];

const ME = "inst_me";

function setting(slots = 3, budgetRows = 10_000) {
  const calls: string[] = [];
  const cache = createPrefixCache({
    slots,
    budgetRows,
    copyRows: (from, to, rows) => calls.push(`copy ${rows} rows from ${from} to ${to}`),
    discard: (slot, kept) => calls.push(kept === 0 ? `discard ${slot}` : `keep ${kept} rows of ${slot}`),
  });
  /** Claims a slot like a generation does: runs the missing tokens, and releases it. */
  function answer(prompt: number[], rows = prompt.length, owner = ME) {
    const slot = cache.claim(owner, prompt, rows);
    const cached = slot.tokens.length;
    slot.tokens.push(...prompt.slice(cached));
    cache.release(slot);
    return { index: slot.index, cached };
  }
  return { cache, calls, answer };
}

test("the next turn continues in the conversation's own slot", () => {
  const { answer, calls } = setting();
  const first = answer(conversation(1));
  expect(answer([...conversation(1), 7, 8, 9])).toEqual({ index: first.index, cached: 200 });
  expect(calls).toEqual([]);
});

test("the last token always runs, since its logits are needed", () => {
  const { answer } = setting();
  answer(conversation(1));
  expect(answer(conversation(1)).cached).toBe(199);
});

test("another conversation with the same system prompt gets a copy of its rows in a slot of its own", () => {
  const { answer, calls } = setting();
  const first = answer(conversation(1));
  const second = answer(conversation(2));
  expect(second).toEqual({ index: expect.any(Number), cached: 100 });
  expect(second.index).not.toBe(first.index);
  expect(calls).toEqual([`copy 100 rows from ${first.index} to ${second.index}`]);
  expect(answer([...conversation(1), 7])).toEqual({ index: first.index, cached: 200 });
});

test("the rows of a busy slot are copied, not taken", () => {
  const { cache, calls } = setting();
  const busy = cache.claim(ME, SYSTEM, 200);
  busy.tokens.push(...SYSTEM);
  const slot = cache.claim(ME, [...SYSTEM, 5], 200);
  expect(slot).not.toBe(busy);
  expect(slot.tokens).toEqual(SYSTEM);
  expect(calls).toEqual([`copy 100 rows from ${busy.index} to ${slot.index}`]);
});

test("the least recently used conversation makes room", () => {
  const { answer } = setting();
  const slots = [1, 2, 3].map((number) => answer(conversation(number)).index);
  answer([...conversation(1), 7]);
  expect(answer(conversation(4)).index).toBe(slots[1] ?? -1);
  expect(answer([...conversation(1), 7, 8])).toEqual({ index: slots[0] ?? -1, cached: 201 });
});

test("with one slot, a new conversation goes back to the shared prefix", () => {
  const { answer } = setting(1);
  answer(conversation(1));
  expect(answer(conversation(2)).cached).toBe(100);
  expect(answer(conversation(1)).cached).toBe(100);
});

test("beyond the memory budget idle conversations are forgotten, oldest first", () => {
  const { answer, calls } = setting(3, 450);
  answer(conversation(1), 250);
  answer(conversation(2), 250); // it holds 200 rows and may need up to 250: all fits
  expect(calls).toEqual(["copy 100 rows from 0 to 1"]);
  answer(conversation(3), 250);
  expect(calls.slice(2)).toEqual(["discard 0"]);
  expect(answer(conversation(2)).cached).toBe(199);
});

test("a busy slot is never emptied, whatever the budget", () => {
  const { cache, calls } = setting(2, 100);
  cache.claim(ME, conversation(1), 500);
  cache.claim(ME, conversation(2), 500);
  expect(calls.filter((call) => call.startsWith("discard"))).toEqual([]);
  expect(() => cache.claim(ME, conversation(3), 1)).toThrow("no free slot");
});

test("another owner's rows are neither continued nor copied: timing reveals nothing about others' prompts", () => {
  const { answer, calls } = setting();
  const mine = answer(conversation(1));
  const other = answer(conversation(1), 200, "inst_other");
  expect(other).toEqual({ index: expect.any(Number), cached: 0 });
  expect(other.index).not.toBe(mine.index);
  expect(calls).toEqual([]);
  expect(answer(conversation(1)).cached).toBe(199);
  expect(answer(conversation(1), 200, "inst_other").cached).toBe(199);
});

test("a slot that changes owners keeps nothing for its next owner", () => {
  const { answer } = setting(1);
  answer(conversation(1));
  expect(answer(conversation(1), 200, "inst_other").cached).toBe(0);
  expect(answer(conversation(1)).cached).toBe(0);
});

test("a short conversation in a slot that had a long one gives the long one's memory back, and costs no other its rows", () => {
  const { answer, calls } = setting(2, 1_000);
  const short = answer(conversation(1));
  const long = answer(tokens(700, 50_000), 700, "inst_other");
  answer([...conversation(1), 7], 201);
  expect(answer(tokens(100, 90_000), 120, "inst_third")).toEqual({ index: long.index, cached: 0 });
  expect(calls).toEqual([`keep 120 rows of ${long.index}`]);
  expect(answer([...conversation(1), 7, 8], 202)).toEqual({ index: short.index, cached: 201 });
});
