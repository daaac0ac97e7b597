import { expect, test } from "bun:test";
import { createQueue } from "../../src/models/local/queue.ts";
import { never } from "./local-setting.ts";

/** Enters the queue, and records its name when it is let in. */
function enter(queue: ReturnType<typeof createQueue>, order: string[], name: string, signal = never) {
  const entered = queue.enter(name.slice(0, 1), signal);
  void entered.then(
    () => order.push(name),
    () => {},
  );
  return entered;
}

test("a few requests of an instance are let in at once, the others wait in order; another instance's do not", async () => {
  const queue = createQueue(2);
  const order: string[] = [];
  const [first, second, third, fourth] = ["a1", "a2", "a3", "a4"].map((name) => enter(queue, order, name));
  await enter(queue, order, "b1");
  expect(order).toEqual(["a1", "a2", "b1"]);
  expect(queue.waiting()).toBe(2);
  (await first)?.();
  await third;
  (await second)?.();
  await fourth;
  expect(order).toEqual(["a1", "a2", "b1", "a3", "a4"]);
  expect(queue.waiting()).toBe(0);
});

test("a request that is aborted while it waits leaves the queue, and leaving twice frees only one slot", async () => {
  const queue = createQueue(1);
  const order: string[] = [];
  const leave = await enter(queue, order, "a1");
  const abort = new AbortController();
  const gone = enter(queue, order, "a2", abort.signal);
  const third = enter(queue, order, "a3");
  const fourth = enter(queue, order, "a4");
  const reason = new Error("the user left");
  abort.abort(reason);
  expect(await gone.catch((error) => error)).toBe(reason);
  leave();
  leave();
  await third;
  expect(order).toEqual(["a1", "a3"]);
  (await third)();
  await fourth;
  await expect(queue.enter("a", abort.signal)).rejects.toBe(reason);
});
