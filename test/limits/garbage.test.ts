import { describe, expect, test } from "bun:test";
import { resolve } from "node:path";
import { watchGarbage } from "../../src/limits/garbage.ts";

const MIB = 1024 * 1024;

/** The largest heap of a process that makes garbage, in MiB. */
async function heapOf(mode: "watched" | "alone"): Promise<number> {
  const child = Bun.spawn([process.execPath, resolve(import.meta.dir, "garbage-maker.ts"), mode], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  return Number(await Bun.readableStreamToText(child.stdout));
}

/** A watch that looks only when it is told to, at a heap that is as large as the test says. */
function watchOf(heap: { size: number; inUse: number }) {
  const watch = watchGarbage({
    size: () => heap.size,
    collect: () => {
      heap.size = heap.inUse;
    },
  });
  watch.stop();
  return watch;
}

describe("the garbage of the main thread", () => {
  test("does not grow to three times what is in use before it is collected", async () => {
    const [watched, alone] = await Promise.all([heapOf("watched"), heapOf("alone")]);
    expect(alone).toBeGreaterThan(watched + 16);
    expect(watched).toBeLessThan(70);
  });

  test("is collected once the heap has grown by 32 MiB, counted from what was left", () => {
    const heap = { size: 20 * MIB, inUse: 20 * MIB };
    const watch = watchOf(heap);
    expect(watch.look()).toBe(false);
    heap.size = 51 * MIB;
    expect(watch.look()).toBe(false);
    Object.assign(heap, { size: 52 * MIB, inUse: 30 * MIB });
    expect(watch.look()).toBe(true);
    heap.size = 61 * MIB;
    expect(watch.look()).toBe(false);
    heap.size = 62 * MIB;
    expect(watch.look()).toBe(true);
  });

  test("is left to the collector where so much is in use that collecting it would hold the thread", () => {
    const heap = { size: 100 * MIB, inUse: 100 * MIB };
    const watch = watchOf(heap);
    expect(watch.look()).toBe(false);
    heap.size = 500 * MIB;
    expect(watch.look()).toBe(false);
    // The collector has found that little of it is in use.
    heap.size = 30 * MIB;
    expect(watch.look()).toBe(false);
    heap.size = 62 * MIB;
    expect(watch.look()).toBe(true);
  });
});
