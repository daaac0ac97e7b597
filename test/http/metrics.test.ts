import { expect, test } from "bun:test";
import { createMetrics } from "../../src/http/metrics.ts";

test("of a new host, only counters are named like counters, and every value is one that can be drawn", async () => {
  const lines = (await createMetrics().text()).split("\n");
  const kinds = lines.flatMap((line) =>
    [...line.matchAll(/^# TYPE (\S+) (\w+)$/g)].map(([, name, kind]) => ({ name, kind })),
  );
  expect(kinds.length).toBeGreaterThan(10);
  expect(kinds.filter(({ name, kind }) => name?.endsWith("_total") && kind !== "counter")).toEqual([]);
  const seconds = lines.filter((line) => /^roost_nodejs_eventloop_lag\w*_seconds /.test(line));
  expect(seconds.length).toBeGreaterThan(3);
  for (const line of seconds) expect(Number(line.split(" ").at(-1))).toBeWithin(0, 3_600);
});
