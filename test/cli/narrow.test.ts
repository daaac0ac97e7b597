/** What commands show on a terminal of 80 columns, and of 60, whatever it contains. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { openFoundation } from "../../src/app/foundation.ts";
import { type Home, makeHome, onTerminal, operate, run } from "./command-line.ts";
import { AGENT, CONVERSATION, type HostileServer, INSTANCE, recordOf, startHostileServer } from "./hostile-server.ts";

const COLUMNS = 80;
const FEW_COLUMNS = 60;
const LONG = "a text that is far longer than there is room for in the column of any table 日本語の説明 "
  .repeat(3)
  .trim();
const APPROVAL = INSTANCE.replace("inst_", "appr_");
/** What people and other servers choose is long; what this program chooses is as it is. */
const RECORD = {
  ...recordOf(LONG),
  instanceId: INSTANCE,
  agentId: AGENT,
  conversationId: CONVERSATION,
  approvalId: APPROVAL,
  origin: { type: "api", id: null },
  tool: "http_request",
  version: "10.20.30",
  source: "catalog",
  type: "reversal",
  network: "ethereum",
};

let home: Home;
let server: HostileServer;
beforeAll(() => {
  home = makeHome();
  server = startHostileServer(RECORD);
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  home.remove();
});

/** The lines that a command shows on a terminal of this width. */
async function linesOf(words: string[], env: Record<string, string> = {}, columns = COLUMNS): Promise<string[]> {
  await using terminal = onTerminal(home, words, { NO_COLOR: "1", ...env }, columns);
  expect([await terminal.exited, terminal.screen()]).toEqual([0, expect.any(String)]);
  return terminal.screen().trimEnd().split("\r\n");
}

const widest = (lines: readonly string[]): number => Math.max(...lines.map((line) => Bun.stringWidth(line)));

test.each([
  [["instance", "list"], INSTANCE],
  [["agent", "list", INSTANCE], AGENT],
  [["conversation", "list", INSTANCE, AGENT], CONVERSATION],
  [["approval", "list"], APPROVAL],
  [["skill", "list"], "10.20.30"],
  [["skill", "list", INSTANCE], "catalog"],
  [["secret", "list", INSTANCE], "2026-11-21"],
])("%p fits, with its ids complete", async (words, whole) => {
  const lines = await linesOf(words, { ROOST_URL: server.url, ROOST_API_KEY: "rst_live_test" });
  expect(lines).toHaveLength(2);
  expect(widest(lines)).toBeLessThanOrEqual(COLUMNS);
  expect(lines[1]).toContain(whole);
  expect(lines[1]).toContain("…");
});

test("what doctor finds, and what it advises, goes on below itself", async () => {
  await using terminal = onTerminal(home, ["doctor", "--data", home.dataDir], { NO_COLOR: "1" }, COLUMNS);
  await terminal.exited;
  const lines = terminal.screen().trimEnd().split("\r\n");
  expect(lines.filter((line) => /^(ok|FAIL) /.test(line))).toHaveLength(14);
  expect(lines.length).toBeGreaterThan(20);
  for (const line of lines) if (!/^(ok|FAIL) /.test(line)) expect(line).toMatch(/^ {19}\S/);
  expect(widest(lines)).toBeLessThanOrEqual(COLUMNS);
});

test("on a narrow terminal, what doctor finds stands below the name of the check", async () => {
  await using terminal = onTerminal(home, ["doctor", "--data", home.dataDir], { NO_COLOR: "1" }, FEW_COLUMNS);
  await terminal.exited;
  const lines = terminal.screen().trimEnd().split("\r\n");
  expect(lines.filter((line) => /^(ok {2}|FAIL) {2}[a-z]+$/.test(line))).toHaveLength(14);
  for (const line of lines) if (!/^(ok|FAIL) /.test(line)) expect(line).toMatch(/^ {6}\S/);
  expect(widest(lines)).toBeLessThanOrEqual(FEW_COLUMNS);
});

test("an agent's record and files fit, and so do the balance and its transactions", async () => {
  const env = { ROOST_URL: server.url, ROOST_API_KEY: "rst_live_test" };
  for (const [words, head] of [
    [["agent", "show", INSTANCE, AGENT], /^FILE /],
    [["billing"], /^TIME /],
  ] as const) {
    const lines = await linesOf([...words], env);
    expect(lines.findIndex((line) => head.test(line))).toBeGreaterThan(0);
    expect(widest(lines)).toBeLessThanOrEqual(COLUMNS);
  }
});

test.each([COLUMNS, FEW_COLUMNS])("what was found in a memory is shown whole on %d columns", async (columns) => {
  const item = { origin: "agent", file: null, fromLine: null, conversationId: CONVERSATION, createdAt: "2026-11-21" };
  await using other = startHostileServer({ ...RECORD, items: [{ ...item, text: LONG }], degraded: null });
  const env = { ROOST_URL: other.url, ROOST_API_KEY: "rst_live_test" };
  const lines = await linesOf(["memory", "search", INSTANCE, AGENT, "text"], env, columns);
  expect(widest(lines)).toBeLessThanOrEqual(columns);
  const shown = lines.join("").replaceAll(" ", "");
  for (const whole of [CONVERSATION, LONG]) expect(shown).toContain(whole.replaceAll(" ", ""));
});

test("saved logins fit", async () => {
  const email = `${"ada.lovelace.".repeat(6)}@example.org`;
  await using other = startHostileServer({ ...RECORD, email });
  const profile = "a-profile-with-a-name-that-is-rather-long-for-its-place";
  const login = ["login", "--profile", profile, "--url", other.url, "--key", "rst_live_test"];
  expect((await run(home, login)).code).toBe(0);
  const lines = await linesOf(["profile", "list"]);
  expect(lines).toHaveLength(2);
  expect(widest(lines)).toBeLessThanOrEqual(COLUMNS);
});

test("the operator's lists fit", async () => {
  const { store, accounts, outbox } = openFoundation(home);
  const email = `${"ada.lovelace.".repeat(6)}@example.org`;
  const { accountId } = accounts.create({ email, name: LONG.slice(0, 100), credit: 1_000_000n, note: LONG });
  outbox.append({ to: email, subject: LONG, text: LONG, code: "123456" });
  store.close();
  const { inviteId } = (await operate(home, ["invite", "create", "--uses", "1000", "--json"])).json();
  for (const [words, whole] of [
    [["account", "list"], accountId],
    [["invite", "list"], inviteId],
    [["outbox"], "123456"],
    [["audit"], "account.create"],
    [["audit"], `by ${accountId}`],
    [["audit"], "note: a text that is far longer"],
  ] as const) {
    const lines = await linesOf([...words, "--data", home.dataDir]);
    expect(lines.length).toBeGreaterThan(1);
    expect([words, widest(lines) <= COLUMNS]).toEqual([words, true]);
    expect(lines.join("\n")).toContain(whole);
  }
  const narrow = await linesOf(["audit", "--data", home.dataDir], {}, FEW_COLUMNS);
  expect(widest(narrow)).toBeLessThanOrEqual(FEW_COLUMNS);
  expect(narrow.join("\n")).toContain(accountId);
});
