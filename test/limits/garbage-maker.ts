/**
 * Makes what an agent leaves behind that writes without end, and prints the largest size of the heap in MiB, and how often
 * the watch collected.
 */
import { heapSize } from "bun:jsc";
import { watchGarbage } from "../../src/limits/garbage.ts";

const TEXT = 31_000;
/** Texts that are in use at a time: each lives long enough to survive a collection of what is new. */
const IN_USE = 900;
const TURNS = 600;

const inUse: string[] = [];
const watch = watchGarbage();
watch.stop();
let [most, collected] = [0, 0];
for (let turn = 0; turn < TURNS; turn++) {
  for (let text = 0; text < 20; text++) {
    inUse[(turn * 20 + text) % IN_USE] = Buffer.alloc(TEXT, `${turn} ${text} `).toString("latin1");
  }
  if (watch.look()) collected++;
  most = Math.max(most, heapSize());
  await new Promise((resolve) => setImmediate(resolve));
}
console.log(JSON.stringify({ most: Math.round(most / 1024 / 1024), collected }));
