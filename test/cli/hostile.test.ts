import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { addUserCommands } from "../../src/cli/user-commands.ts";
import { type Home, makeHome, onTerminal, run } from "./command-line.ts";
import {
  AGENT,
  CONVERSATION,
  DELTAS,
  EVIL,
  type HostileServer,
  INSTANCE,
  OBEYED,
  RECORD,
  startHostileServer,
} from "./hostile-server.ts";

const SERVER = `mcp_${"0".repeat(32)}`;
const SCHEDULE = `sch_${"0".repeat(32)}`;

let home: Home;
let server: HostileServer;
beforeAll(() => {
  home = makeHome();
  server = startHostileServer();
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  home.remove();
  rmSync(BUNDLE, { force: true });
});

const to = (url: string): Record<string, string> => ({ ROOST_URL: url, ROOST_API_KEY: "rst_live_test", NO_COLOR: "1" });

/** Where an export goes. */
const BUNDLE = join(tmpdir(), `roost-hostile-${process.pid}.tar.gz`);

/** Every user command, by its words. */
const COMMANDS: Record<string, { words: string[]; input?: string; json?: false | object; list?: true }> = {
  login: { words: ["login"] },
  whoami: { words: ["whoami"] },
  status: {
    words: ["status"],
    json: { server: { url: expect.any(String), version: EVIL }, account: RECORD, billing: RECORD, instances: [RECORD] },
  },
  "instance list": { words: ["instance", "list"], list: true },
  "instance create": { words: ["instance", "create", "x"] },
  "instance start": { words: ["instance", "start", INSTANCE] },
  "instance stop": { words: ["instance", "stop", INSTANCE] },
  "instance delete": { words: ["instance", "delete", INSTANCE, "--yes"] },
  "agent list": { words: ["agent", "list", INSTANCE], list: true },
  "agent show": { words: ["agent", "show", INSTANCE, AGENT] },
  "agent create": { words: ["agent", "create", INSTANCE, "x"] },
  "agent edit": { words: ["agent", "edit", INSTANCE, AGENT, "--name", "x"] },
  "agent export": {
    words: ["agent", "export", INSTANCE, AGENT, "--output", BUNDLE, "--force"],
    json: { file: BUNDLE, bytes: Buffer.byteLength(EVIL), leftOut: [] },
  },
  "agent import": { words: ["agent", "import", INSTANCE, import.meta.path] },
  "agent delete": { words: ["agent", "delete", INSTANCE, AGENT, "--yes"] },
  chat: { words: ["chat", INSTANCE, AGENT], input: "Hi\n/clear\n", json: false },
  context: { words: ["context", INSTANCE, AGENT, "--conversation", CONVERSATION] },
  "conversation list": { words: ["conversation", "list", INSTANCE, AGENT], list: true },
  "conversation new": { words: ["conversation", "new", INSTANCE, AGENT, "--title", "x"] },
  "conversation rename": { words: ["conversation", "rename", INSTANCE, AGENT, CONVERSATION, "--title", "x"] },
  "conversation fork": { words: ["conversation", "fork", INSTANCE, AGENT, CONVERSATION] },
  "conversation delete": { words: ["conversation", "delete", INSTANCE, AGENT, CONVERSATION, "--yes"] },
  send: { words: ["send", INSTANCE, AGENT, "Hi"] },
  "approval list": { words: ["approval", "list"], list: true },
  "approval show": { words: ["approval", "show", "x"] },
  "approval approve": { words: ["approval", "approve", "x", "--yes"] },
  "approval deny": { words: ["approval", "deny", "x"] },
  "approval answer": { words: ["approval", "answer", "x", "yes"] },
  "memory search": { words: ["memory", "search", INSTANCE, AGENT, "x"] },
  "memory forget": { words: ["memory", "forget", INSTANCE, AGENT, "--run", "x", "--yes"] },
  "schedule list": { words: ["schedule", "list", INSTANCE, AGENT], list: true },
  "schedule show": {
    words: ["schedule", "show", INSTANCE, AGENT, SCHEDULE],
    json: { ...RECORD, slots: [RECORD] },
  },
  "schedule create": { words: ["schedule", "create", INSTANCE, AGENT, "x", "y", "--every", "1h"] },
  "schedule on": { words: ["schedule", "on", INSTANCE, AGENT, SCHEDULE] },
  "schedule off": { words: ["schedule", "off", INSTANCE, AGENT, SCHEDULE] },
  "schedule run": { words: ["schedule", "run", INSTANCE, AGENT, SCHEDULE] },
  "schedule delete": { words: ["schedule", "delete", INSTANCE, AGENT, SCHEDULE, "--yes"] },
  "mcp list": { words: ["mcp", "list", INSTANCE], list: true },
  "mcp add": { words: ["mcp", "add", INSTANCE, "x", "https://x.example"] },
  "mcp refresh": { words: ["mcp", "refresh", INSTANCE, SERVER] },
  "mcp authorize": { words: ["mcp", "authorize", INSTANCE, SERVER, "--print"] },
  "mcp approve": { words: ["mcp", "approve", INSTANCE, SERVER, "--yes"] },
  "mcp remove": { words: ["mcp", "remove", INSTANCE, SERVER, "--yes"] },
  "skill list": { words: ["skill", "list"], list: true },
  "skill show": { words: ["skill", "show", "x"] },
  "skill install": { words: ["skill", "install", INSTANCE, "x"] },
  "skill remove": { words: ["skill", "remove", INSTANCE, "x"] },
  "secret set": { words: ["secret", "set", INSTANCE, "X"], input: "value" },
  "secret list": { words: ["secret", "list", INSTANCE], list: true },
  "secret delete": { words: ["secret", "delete", INSTANCE, "X", "--yes"] },
  usage: { words: ["usage"], json: { days: [RECORD], agents: [RECORD] } },
  billing: { words: ["billing"], json: { ...RECORD, days: expect.any(Array), transactions: [RECORD] } },
};
/** These end only when interrupted, and have tests of their own. */
const ENDLESS = ["events"];
/** These show what a login has saved; the test of login covers them. */
const OF_LOGINS = ["logout", "profile list", "profile use", "open"];

test("every user command is tested", () => {
  const program = new Command();
  addUserCommands(program);
  const leaves = (command: Command, words: string[]): string[] =>
    command.commands.length === 0
      ? [words.join(" ")]
      : command.commands.flatMap((child) => leaves(child, [...words, child.name()]));
  expect([...Object.keys(COMMANDS), ...ENDLESS, ...OF_LOGINS].sort()).toEqual(leaves(program, []).sort());
});

/** Only messages and instructions may have several lines; everything else stays on the command's own lines. */
const MULTILINE = new Set(["chat", "send", "skill show"]);

describe("no command lets a hostile server control the terminal:", () => {
  test.each(Object.entries(COMMANDS))("%s", async (name, { words, input = "" }) => {
    const { code, output, errors } = await run(home, words, { input, env: to(server.url) });
    expect(errors.replaceAll("\n", "")).not.toMatch(OBEYED);
    expect([code, output.replaceAll("\n", "").match(OBEYED)]).toEqual([0, null]);
    expect(output).not.toBe("");
    if (!MULTILINE.has(name)) expect(`${output}${errors}`).not.toMatch(/^FORGED/m);
  });

  test.each(Object.entries(COMMANDS).filter(([, { json }]) => json !== false))(
    "%s --json, which is JSON of the server's text",
    async (name, { words, input = "", list, json }) => {
      const { output, errors } = await run(home, [...words, "--json"], { input, env: to(server.url) });
      expect(`${output}${errors}`.replaceAll("\n", "")).not.toMatch(OBEYED);
      const expected = json ? json : name === "send" ? { ...RECORD, message: DELTAS.join("") } : RECORD;
      expect(JSON.parse(output)).toEqual(list ? [expected] : expected);
    },
  );

  test("what a login saves", async () => {
    const login = ["login", "--profile", "evil", "--url", server.url, "--key", "rst_live_test"];
    expect((await run(home, login)).code).toBe(0);
    const nowhere = { NO_COLOR: "1" };
    for (const words of [
      ["profile", "list"],
      ["profile", "use", "evil"],
      ["open", "--print"],
      ["logout", "--profile", "evil"],
    ]) {
      const { code, output, errors } = await run(home, words, { env: nowhere });
      expect([words, code]).toEqual([words, 0]);
      expect(`${output}${errors}`.replaceAll("\n", "")).not.toMatch(OBEYED);
      expect(`${output}${errors}`).not.toMatch(/^FORGED/m);
    }
  });

  test("its errors", async () => {
    await using refusing = startHostileServer();
    refusing.refuse();
    const { code, output, errors } = await run(home, ["instance", "list"], { env: to(refusing.url) });
    expect([code, output]).toEqual([1, ""]);
    expect(errors.slice(0, -1)).not.toMatch(OBEYED);
    expect(errors).toMatch(/^roost: a.*FORGED.*\n$/);
  });

  test.each([
    [[], /31m three/],
    [["--json"], /"delta":"31m three\\u202e/],
  ])("events %p", async (more, third) => {
    await using terminal = onTerminal(home, ["events", INSTANCE, AGENT, ...more], to(server.url));
    await terminal.until(third);
    await terminal.until(/run\.completed/);
    terminal.kill("SIGINT");
    await terminal.exited;
    expect(terminal.screen().replaceAll(/\r?\n/g, "").replaceAll("^C", "")).not.toMatch(OBEYED);
    expect(terminal.screen()).not.toMatch(/^FORGED/m);
  });

  test("a streamed answer with escape sequences split between two deltas", async () => {
    await using terminal = onTerminal(home, ["send", INSTANCE, AGENT, "Hi"], to(server.url));
    expect(await terminal.exited).toBe(0);
    expect(terminal.screen().replaceAll("\r\n", "\n").replaceAll("\n", "")).not.toMatch(OBEYED);
    expect(terminal.screen()).toContain("one[2J two31m threefour ]0;title five");
    expect(terminal.screen()).not.toMatch(/^FORGED/m);
  });

  test("a conversation, whose prompt is readline's", async () => {
    await using terminal = onTerminal(home, ["chat", INSTANCE, AGENT], to(server.url));
    await terminal.until(/you> /);
    terminal.type("Hi\r");
    await terminal.until(/ five/);
    await terminal.until(/you> /);
    terminal.type("\x04");
    await terminal.exited;
    const said = terminal.screen();
    for (const sequence of ["\u001b[2J", "\u001b]0;", "\u009b", "\u0007", "\u202e", "\u0085"]) {
      expect(said).not.toContain(sequence);
    }
    expect(said).not.toMatch(/^FORGED/m);
    expect(EVIL).toContain("\u001b[2J");
  });
});

test("all output of commands goes through one file", () => {
  const folder = join(import.meta.dir, "../../src/cli");
  const wrong = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts") && path !== "output.ts")
    .flatMap((path) => {
      const text = readFileSync(join(folder, path), "utf8").replaceAll(/\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*$/gm, "");
      const other =
        /\bconsole\s*[.[;,})]|\bBun\.(?:stdout|stderr|write)\b|\bstd(?:out|err)\b(?!\.(?:isTTY|columns|on)\b)/g;
      // Readline draws what is typed; its prompt is made by output.ts.
      const found = (text.match(other) ?? []).length - (text.match(/output: process\.std(?:out|err)\b/g) ?? []).length;
      return found === 0 ? [] : [path];
    });
  expect(wrong).toEqual([]);
});
