import { expect, test } from "bun:test";
import { capModelCalls, capStreams, capWorkers, lackOfMemory, readMachineLimits } from "../../src/limits/machine.ts";

const MIB = 1_024 * 1_024;
const LIMITS = `Limit                     Soft Limit           Hard Limit           Units
Max processes             80                   96343                processes
Max open files            1024                 20000                files
`;
const filesOf = (files: Record<string, string>) => (path: string) => files[path] ?? "";

test("the limits of this process are known on Linux", () => {
  const { openFiles, threads, memoryBytes } = readMachineLimits();
  expect(memoryBytes).toBeGreaterThan(64 * MIB);
  if (process.platform !== "linux") return expect([openFiles, threads]).toEqual([null, null]);
  expect(openFiles).toBeGreaterThan(16);
});

test("threads are what the user's limit or the control group allows, whichever is less", () => {
  const own = { "/proc/self/limits": LIMITS, "/proc/self/status": "Name:\troost\nThreads:\t9\n" };
  expect(readMachineLimits(filesOf(own))).toMatchObject({ openFiles: 1024, threads: 71 });
  const v2 = { ...own, "/proc/self/cgroup": "0::/system.slice/roost.service\n" };
  const unit = "/sys/fs/cgroup/system.slice/roost.service";
  expect(
    readMachineLimits(filesOf({ ...v2, [`${unit}/pids.max`]: "60\n", [`${unit}/pids.current`]: "12\n" })).threads,
  ).toBe(48);
  expect(readMachineLimits(filesOf({ ...v2, [`${unit}/pids.max`]: "max\n" })).threads).toBe(71);
  const container = { "/sys/fs/cgroup/pids.max": "50\n", "/sys/fs/cgroup/pids.current": "10\n" };
  expect(readMachineLimits(filesOf({ ...v2, ...container })).threads).toBe(40);
  const v1 = {
    "/proc/self/cgroup": "8:pids:/a\n0::/\n",
    "/sys/fs/cgroup/pids/a/pids.max": "30",
    "/sys/fs/cgroup/pids/a/pids.current": "1",
  };
  expect(readMachineLimits(filesOf({ ...own, ...v1 })).threads).toBe(29);
  expect(readMachineLimits(() => "")).toMatchObject({ openFiles: null, threads: null });
});

test("a setting is capped on a small machine, but never to nothing", () => {
  expect(capStreams(20_000, { openFiles: null })).toBe(20_000);
  expect(capStreams(20_000, { openFiles: 1_024 })).toBe(576);
  expect(capStreams(20_000, { openFiles: 100 })).toBe(16);
  const memoryBytes = 16 * 1_024 * MIB;
  expect(capWorkers(512, { threads: null, memoryBytes })).toBe(512);
  expect(capWorkers(512, { threads: 71, memoryBytes })).toBe(39);
  expect(capWorkers(512, { threads: 20, memoryBytes })).toBe(1);
  expect(capWorkers(512, { threads: null, memoryBytes: 512 * MIB })).toBe(32);
  expect(capWorkers(512, { threads: 71, memoryBytes: 1_024 * MIB })).toBe(39);
  expect(capWorkers(512, { threads: null, memoryBytes: MIB })).toBe(1);
  expect([undefined, "", "4096", "many", "10"].map(capModelCalls)).toEqual([120, 120, 3960, 120, 1]);
});

test("a container too small for the embedded model is told apart", () => {
  expect(lackOfMemory(300 * 1024 ** 2)).toEqual({ hasMiB: 300, needsMiB: 384 });
  expect(lackOfMemory(384 * 1024 ** 2)).toBeNull();
  expect(lackOfMemory()).toBeNull();
});
