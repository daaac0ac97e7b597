import { expect, test } from "bun:test";
import { spareFiles } from "../../src/http/spare-files.ts";

/** How often idle connections are closed in so many requests, if the next file has this number. */
function closedIn(requests: number, next: number | null, openFiles: number | null = 400): number {
  let closed = 0;
  const spare = spareFiles({ openFiles, closeIdle: () => void closed++, next: () => next });
  for (let request = 0; request < requests; request++) spare();
  return closed;
}

test("connections that wait for their next request are closed once three quarters of the files are in use", () => {
  expect(closedIn(80, 299)).toBe(0);
  expect(closedIn(80, 300)).toBe(10);
  expect(closedIn(80, 19_743, 20_000)).toBe(0);
  expect(closedIn(80, 19_744, 20_000)).toBe(10);
});

test("no connection is closed where that would help nobody, or where the limit is not known", () => {
  expect(closedIn(80, null)).toBe(0);
  expect(closedIn(80, 300, null)).toBe(0);
});
