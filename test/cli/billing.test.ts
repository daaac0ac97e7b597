import { afterAll, beforeAll, expect, test } from "bun:test";
import { barsOf } from "../../src/cli/user/bars.ts";
import { dayOf } from "../../src/lib/calendar.ts";
import { type Home, makeHome, onTerminal, operate, run, type Server, signIn, startServer } from "./command-line.ts";

let home: Home;
let server: Server;
beforeAll(async () => {
  home = makeHome();
  // A tenth of a cent each second: enough to show, and less than a dollar however long the tests take.
  server = await startServer(home, { ROOST_PRICE_PER_HOUR: "3.6", ROOST_NETWORKS: "base,polygon" });
  expect((await signIn(home, server.url, "ada@example.org")).code).toBe(0);
  await run(home, ["instance", "create", "Nest"]);
  expect((await run(home, ["instance", "stop", "Nest"])).code).toBe(0);
  await run(home, ["instance", "create", "Perch"]);
  await operate(home, ["account", "credit", "ada@example.org", "5", "--note", "welcome"]);
});
afterAll(async () => {
  await server.stop();
  home.remove();
});

test("--json prints the API's own record, and the days and transactions that the text shows", async () => {
  expect((await run(home, ["billing", "--json"])).json()).toEqual({
    balance: expect.stringMatching(/^14\.\d{6}$/),
    currency: "USDC",
    pricePerHour: "3.600000",
    minimumLaunchBalance: "0.500000",
    owed: "0.000000",
    minimumTopUp: "1.000000",
    runningInstances: 1,
    estimatedEmptyAt: expect.stringMatching(/Z$/),
    networks: ["base", "polygon"],
    days: expect.any(Array),
    transactions: expect.any(Array),
  });
  const before = dayOf(Date.now());
  const { days, transactions } = (await run(home, ["billing", "--json"])).json();
  expect(days).toHaveLength(14);
  // It may end meanwhile.
  expect([before, dayOf(Date.now())]).toContain(days.at(-1).day);
  expect(days.at(-1).cost).toMatch(/^\d+\.\d{6}$/);
  expect(transactions.at(-1)).toMatchObject({ type: "credit", amount: "10.000000", balanceAfter: "10.000000" });
});

test("for people it shows the balance, a daily chart and the last transactions, plain in a pipe", async () => {
  const { output, code } = await run(home, ["billing"]);
  expect(code).toBe(0);
  // Rounded: what a short second costs may not show yet.
  expect(output).toMatch(/^Balance {2}1[45]\.\d\d USDC\n/);
  expect(output).toContain("Price    3.60 USDC an hour for each running instance\nRunning  1 instance\n");
  expect(output).toMatch(
    /\nEmpty {4}\d{4}-\d\d-\d\d \d\d:\d\dZ\nTop up {3}from 1\.00 USDC, on base, polygon: POST http:/,
  );
  expect(output).toMatch(
    /\/v1\/billing\/top-up says how\n {9}in a browser: http:\S+; or ask the operator of this host for credit\n/,
  );
  // Today's, if the day has not just begun.
  expect(output).toMatch(/\n\d{4}-\d\d-\d\d {2}#{40} 0\.\d+\n/);
  expect(output.match(/^\d{4}-\d\d-\d\d {2}/gm)).toHaveLength(14);
  expect(output).toMatch(/ {2}credit {2}5\.00 +1[45]\.\d\d +-\n/);
  expect(output).toMatch(/ {2}usage {3}-0\.\d+ +(9|10)\.\d\d +(Nest|Perch)\n/);
  expect(output).toMatch(/ {2}credit {2}10\.00 +10\.00 +-\n$/);
  expect(output).not.toContain("\u001b");
});

test("on a terminal the bars are blocks, coloured unless NO_COLOR is set", async () => {
  await using terminal = onTerminal(home, ["billing"]);
  expect(await terminal.exited).toBe(0);
  expect(terminal.screen()).toContain("\u001b[36m████");
  await using plain = onTerminal(home, ["billing"], { NO_COLOR: "1" });
  expect(await plain.exited).toBe(0);
  expect(plain.screen()).toContain("████");
  expect(plain.screen()).not.toContain("\u001b[36m");
});

test("without a login, it says how to sign in", async () => {
  const other = makeHome();
  const { code, errors } = await run(other, ["billing"]);
  other.remove();
  expect([code, errors]).toEqual([1, "roost: you are not signed in; run roost login, or give --key\n"]);
});

test("a bar's length is proportional to the cost, fits the chart, and the smallest cost is visible", () => {
  const costs = new Map([
    ["a", 0n],
    ["b", 1n],
    ["c", 500_000n],
    ["d", 1_000_000n],
  ]);
  expect(barsOf(costs, true).map(({ bar }) => bar)).toEqual(["", "▏", "█".repeat(20), "█".repeat(40)]);
  expect(barsOf(costs, false).map(({ bar }) => bar.length)).toEqual([0, 1, 20, 40]);
  expect(barsOf(costs, false).map(({ value }) => value)).toEqual(["0.00", "0.000001", "0.50", "1.00"]);
  const widths = barsOf(costs, true, 40).map(({ label, bar, value }) => `${label}  ${bar} ${value}`.length);
  expect(Math.max(...widths)).toBeLessThanOrEqual(40);
  expect(barsOf(costs, true, 10).at(-1)?.bar).toBe("█");
  expect(barsOf(new Map([["a", 0n]]), true)).toEqual([{ label: "a", bar: "", value: "0.00" }]);
});
