import { expect, test } from "bun:test";
import { createFixedWindows } from "../../src/limits/fixed-windows.ts";

test("a limited number is counted in a window, and others learn when it ends", () => {
  let now = 100;
  const windows = createFixedWindows(() => now, { seconds: 60, max: 30 });
  const counted = Array.from({ length: 40 }, () => windows.count("a"));
  expect(counted.filter((wait) => wait === 0)).toHaveLength(30);
  expect(counted.at(-1)).toBe(60);
  now += 59;
  expect([windows.wait("a"), windows.wait("b")]).toEqual([1, 0]);
  now += 1;
  expect(windows.count("a")).toBe(0);
});

test("the number of windows is bounded", () => {
  const windows = createFixedWindows(() => 0, { seconds: 60, max: 1 }, 10);
  for (let at = 0; at < 1_000; at++) windows.count(`address ${at}`);
  const full = Array.from({ length: 1_000 }, (_, at) => windows.wait(`address ${at}`)).filter((wait) => wait > 0);
  expect(full).toHaveLength(10);
});
