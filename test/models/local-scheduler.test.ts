import { expect, test } from "bun:test";
import { createScheduler, type Job, type Scheduler } from "../../src/models/local/scheduler.ts";

/** Submits a job of `turns` turns that writes its name into `order` at each. Resolves when it is done. */
function submit(
  scheduler: Scheduler,
  order: string[],
  id: number,
  instanceId: string,
  turns: number,
  onTurn = () => {},
  accountId = `account of ${instanceId}`,
) {
  return new Promise<void>((resolve, reject) => {
    let left = turns;
    const job: Job = {
      accountId,
      instanceId,
      start: () => ({
        completionTokens: () => turns - left,
        async takeTurn() {
          order.push(`${instanceId}${id}`);
          onTurn();
          return --left === 0 ? { text: "", reason: "stop" } : { text: "" };
        },
      }),
      onTurn: ({ reason }) => reason !== undefined && resolve(),
      onError: reject,
      onEnd: () => order.push(`end ${instanceId}${id}`),
    };
    scheduler.submit(id, job);
  });
}

test("instances take turns, however many requests each of them has", async () => {
  const scheduler = createScheduler(4);
  const order: string[] = [];
  await Promise.all([
    submit(scheduler, order, 1, "a", 4),
    submit(scheduler, order, 2, "a", 4),
    submit(scheduler, order, 3, "b", 4),
  ]);
  expect(order.slice(0, 7).map((turn) => turn[0])).toEqual(["a", "b", "a", "b", "a", "b", "a"]);
});

test("accounts take turns, however many instances each of them has, and so do the instances of one", async () => {
  const scheduler = createScheduler(8);
  const order: string[] = [];
  const nothing = () => {};
  const done = ["a", "b", "c"].map((instance, at) => submit(scheduler, order, at, instance, 8, nothing, "busy"));
  done.push(submit(scheduler, order, 3, "c", 8, nothing, "busy"), submit(scheduler, order, 4, "q", 8));
  await Promise.all(done);
  const turns = order.slice(0, 16).map((turn) => turn[0]);
  expect(turns.filter((_, at) => at % 2 === 1)).toEqual(Array<string>(8).fill("q"));
  const busy = turns.filter((_, at) => at % 2 === 0);
  expect(busy.every((instance, at) => instance !== busy[at + 1])).toBe(true);
});

test("an account with a hundred instances waits for one that has nothing running", async () => {
  const scheduler = createScheduler(4);
  const order: string[] = [];
  const nothing = () => {};
  const done = Array.from({ length: 100 }, (_, at) => submit(scheduler, order, at, `i${at}-`, 3, nothing, "busy"));
  done.push(submit(scheduler, order, 100, "q", 1));
  await Promise.all(done);
  expect(order.indexOf("q100")).toBeLessThan(4);
});

test("an instance with many requests leaves a slot to the others", async () => {
  const scheduler = createScheduler(3);
  const order: string[] = [];
  const done = [1, 2, 3, 4].map((id) => submit(scheduler, order, id, "a", 5));
  done.push(submit(scheduler, order, 5, "b", 1));
  await Promise.all(done);
  expect(order.indexOf("end b5")).toBeLessThan(3);
});

test("waiting requests of the instance with the fewest running start first", async () => {
  const scheduler = createScheduler(2);
  const order: string[] = [];
  const done = [1, 2, 3].map((id) => submit(scheduler, order, id, "a", 3));
  done.push(submit(scheduler, order, 4, "b", 3), submit(scheduler, order, 5, "c", 3));
  await Promise.all(done);
  const started = [...new Set(order.filter((turn) => !turn.startsWith("end")))];
  expect(started.indexOf("c5")).toBeLessThan(started.indexOf("a2"));
});

test("a cancelled request takes no further turn and releases its slot", async () => {
  const scheduler = createScheduler(1);
  const order: string[] = [];
  void submit(scheduler, order, 1, "a", 1_000, () => order.length === 3 && scheduler.cancel(1));
  await submit(scheduler, order, 2, "a", 1);
  expect(order).toEqual(["a1", "a1", "a1", "end a1", "a2", "end a2"]);
});

test("a waiting request can be cancelled before it starts", async () => {
  const scheduler = createScheduler(1);
  const order: string[] = [];
  const first = submit(scheduler, order, 1, "a", 3);
  void submit(scheduler, order, 2, "b", 1);
  scheduler.cancel(2);
  await first;
  await submit(scheduler, order, 3, "b", 1);
  expect(order.filter((turn) => turn === "b2")).toEqual([]);
});

test("a request that fails releases its slot and affects no other", async () => {
  const scheduler = createScheduler(1);
  const order: string[] = [];
  const failing = submit(scheduler, order, 1, "a", 3, () => {
    throw new Error("broken model");
  });
  const after = submit(scheduler, order, 2, "a", 1);
  await expect(failing).rejects.toThrow("broken model");
  await after;
  expect(order).toEqual(["a1", "end a1", "a2", "end a2"]);
});

/** A job of one turn, which steps aside for `work` and then writes its name into `order`. */
function submitAside(scheduler: Scheduler, order: string[], id: number, work: () => Promise<void>) {
  return new Promise<void>((resolve, reject) => {
    scheduler.submit(id, {
      accountId: `account ${id}`,
      instanceId: "aside",
      start: () => ({
        completionTokens: () => 0,
        async takeTurn() {
          await scheduler.aside(work);
          order.push(`aside${id}`);
          return { text: "", reason: "stop" };
        },
      }),
      onTurn: () => resolve(),
      onError: reject,
      onEnd: () => order.push(`end aside${id}`),
    });
  });
}

test("while a request waits for something else, the others take their turns", async () => {
  const scheduler = createScheduler(4);
  const order: string[] = [];
  const vectors = Promise.withResolvers<void>();
  const waiting = submitAside(scheduler, order, 1, () => vectors.promise);
  await submit(scheduler, order, 2, "b", 3);
  expect(order).toEqual(["b2", "b2", "b2", "end b2"]);
  vectors.resolve();
  await waiting;
  expect(order.slice(4)).toEqual(["aside1", "end aside1"]);
});

test("a request that comes while all others wait for something else starts at once", async () => {
  const scheduler = createScheduler(4);
  const order: string[] = [];
  const [asked, vectors] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const waiting = submitAside(scheduler, order, 1, () => {
    asked.resolve();
    return vectors.promise;
  });
  await asked.promise;
  await submit(scheduler, order, 2, "b", 1);
  vectors.resolve();
  await waiting;
  expect(order).toEqual(["b2", "end b2", "aside1", "end aside1"]);
});

test("a request does nothing in another's turn when it has what it waited for", async () => {
  const scheduler = createScheduler(4);
  const order: string[] = [];
  const vectors = Promise.withResolvers<void>();
  const waiting = submitAside(scheduler, order, 1, () => vectors.promise);
  const other = new Promise<void>((resolve, reject) => {
    scheduler.submit(2, {
      accountId: "other",
      instanceId: "other",
      start: () => ({
        completionTokens: () => 0,
        async takeTurn() {
          vectors.resolve();
          for (let ticks = 0; ticks < 100; ticks++) await Promise.resolve();
          order.push("other's turn ends");
          return { text: "", reason: "stop" };
        },
      }),
      onTurn: () => resolve(),
      onError: reject,
      onEnd: () => {},
    });
  });
  await Promise.all([waiting, other]);
  expect(order).toEqual(["other's turn ends", "aside1", "end aside1"]);
});

test("a request that is cancelled while it waits for something else releases its slot at once and never goes on", async () => {
  const scheduler = createScheduler(1);
  const order: string[] = [];
  const [asked, vectors] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  void submitAside(scheduler, order, 1, () => {
    asked.resolve();
    return vectors.promise;
  });
  await asked.promise;
  const next = submit(scheduler, order, 2, "b", 1);
  scheduler.cancel(1);
  await next;
  vectors.resolve();
  await submit(scheduler, order, 3, "b", 2);
  expect(order).toEqual(["end aside1", "b2", "end b2", "b3", "b3", "end b3"]);
});

test("a request whose wait for something else fails is told so, and releases its slot", async () => {
  const scheduler = createScheduler(1);
  const order: string[] = [];
  const failing = submitAside(scheduler, order, 1, () => Promise.reject(new Error("no vectors")));
  await expect(failing).rejects.toThrow("no vectors");
  await submit(scheduler, order, 2, "b", 1);
  expect(order).toEqual(["end aside1", "b2", "end b2"]);
});
