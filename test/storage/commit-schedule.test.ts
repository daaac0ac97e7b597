import { expect, test } from "bun:test";
import { createCommitSchedule } from "../../src/storage/commit-schedule.ts";

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

function count() {
  const made = { commits: 0 };
  return { made, schedule: createCommitSchedule(() => made.commits++) };
}

test("what is asked for in one turn is one commit, in the next", async () => {
  const { made, schedule } = count();
  for (let asked = 0; asked < 3; asked++) schedule.soon();
  expect(made.commits).toBe(0);
  await nextTurn();
  expect(made.commits).toBe(1);
  await nextTurn();
  expect(made.commits).toBe(1);
});

test("while commits are held none comes, not even one that was due; what was asked for comes once they are released", async () => {
  const { made, schedule } = count();
  schedule.soon();
  schedule.hold();
  await nextTurn();
  schedule.soon();
  await nextTurn();
  expect(made.commits).toBe(0);
  schedule.release();
  await nextTurn();
  await nextTurn();
  expect(made.commits).toBe(1);
});

test("releasing commits that nobody waits for makes none", async () => {
  const { made, schedule } = count();
  schedule.hold();
  schedule.release();
  await nextTurn();
  expect(made.commits).toBe(0);
});
