import { describe, expect, test } from "bun:test";
import { resolve } from "node:path";
import { watchGarbage } from "../../src/limits/garbage.ts";

const MIB = 1024 * 1024;

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
    const maker = Bun.spawn([process.execPath, resolve(import.meta.dir, "garbage-maker.ts")], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const { most, collected } = JSON.parse(await Bun.readableStreamToText(maker.stdout));
    // How large it grows without, the collector decides anew each time.
    expect(collected).toBeGreaterThan(1);
    expect(most).toBeLessThan(70);
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

  test("is not looked at while no file can be opened, and no error comes of that", () => {
    const heap = { size: 20 * MIB, inUse: 20 * MIB };
    let isShort = false;
    const watch = watchGarbage({
      size() {
        if (isShort) throw Object.assign(new Error("EMFILE: too many open files"), { code: "EMFILE" });
        return heap.size;
      },
      collect: () => {
        heap.size = heap.inUse;
      },
    });
    watch.stop();
    expect(watch.look()).toBe(false);
    heap.size = 60 * MIB;
    isShort = true;
    expect(watch.look()).toBe(false);
    isShort = false;
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
