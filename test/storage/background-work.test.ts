import { expect, test } from "bun:test";
import { createBackgroundWork } from "../../src/storage/background-work.ts";

/** Work that fails while `isBroken`. */
function workThat(retryMs: number) {
  const state = { left: 1, isBroken: false, failures: 0 };
  const work = createBackgroundWork({
    hasWork: () => state.left > 0,
    async drain() {
      if (state.isBroken) throw new Error("disk I/O error");
      state.left = 0;
    },
    onFailure: () => state.failures++,
    retryMs,
  });
  return { state, work };
}

test("before it is begun, nobody waits for its end", async () => {
  const { state, work } = workThat(5);
  await work.settled();
  expect(state.left).toBe(1);
  work.run();
  await work.settled();
  expect(state.left).toBe(0);
});

test("who waits for the end of work that fails waits until it is tried again", async () => {
  const { state, work } = workThat(20);
  state.isBroken = true;
  setTimeout(() => (state.isBroken = false), 1);
  work.run();
  await work.settled();
  expect(state).toEqual({ left: 0, isBroken: false, failures: 1 });
});

test("a stop waits for no further try", async () => {
  const { state, work } = workThat(1_000_000);
  state.isBroken = true;
  work.run();
  const settled = work.settled();
  await Promise.resolve();
  await work.stop();
  await settled;
  expect([state.left, work.isStopped()]).toEqual([1, true]);
});
