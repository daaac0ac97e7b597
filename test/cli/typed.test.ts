import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { explain, Failure } from "../../src/cli/failure.ts";
import type { MockModelServer } from "../support/mock-model-server.ts";
import { BINARY, type Home, onTerminal, run, type Server, serveSignedIn } from "./command-line.ts";

let home: Home;
let mock: MockModelServer;
let server: Server;
let stop: () => Promise<void>;
beforeAll(async () => {
  ({ home, mock, server, stop } = await serveSignedIn());
  await run(home, ["instance", "create", "Hello"]);
  await run(home, ["agent", "create", "Hello", "ada", "--slug", "ada", "--display-name", "Ada"]);
});
afterAll(() => stop());

test("the last line of what is pasted into a chat is part of the message, also without a line break", async () => {
  await using terminal = onTerminal(home, ["chat", "Hello", "ada"]);
  await terminal.until(/you> /);
  terminal.type("first\rsecond\rthird");
  await terminal.until(/mock model[\s\S]*you> /);
  expect(JSON.stringify(mock.requests.at(-1)?.body)).toContain("first\\nsecond\\nthird");
});

test("a secret of several lines is refused where it is typed", async () => {
  for (const pasted of ["first\rsecond\r", "first\rrest"]) {
    await using terminal = onTerminal(home, ["secret", "set", "Hello", "PEM"]);
    await terminal.until(/Value of PEM: /);
    terminal.type(pasted);
    expect(await terminal.exited).toBe(1);
    expect(terminal.screen()).toContain("several lines");
  }
  expect((await run(home, ["secret", "list", "Hello", "--json"])).json()).toEqual([]);
});

test("Ctrl-C where a secret is typed ends with 130", async () => {
  await using terminal = onTerminal(home, ["secret", "set", "Hello", "PEM"]);
  await terminal.until(/Value of PEM: /);
  terminal.type("\x03");
  expect(await terminal.exited).toBe(130);
});

test("Ctrl-C at a question ends its line", async () => {
  for (const [words, question] of [
    [["agent", "delete", "Hello", "ada"], /\[y\/N\] /],
    [["login", "--url", server.url], /E-mail: /],
  ] as const) {
    await using terminal = onTerminal(home, [...words]);
    await terminal.until(question);
    terminal.type("\x03");
    expect(await terminal.exited).toBe(130);
    expect(terminal.screen()).toEndWith("\r\n");
  }
});

test("a mistyped invite is asked for again, as a code is", async () => {
  const { code } = (await run(home, ["invite", "create", "--data", home.dataDir, "--json"])).json();
  await using terminal = onTerminal(home, ["login", "--url", server.url, "--email", "new@example.org"]);
  await terminal.until(/Invite: /);
  terminal.type("roost-nope\r");
  await terminal.until(/expected a valid invite code[\s\S]*Invite: /);
  terminal.type(`${code}\r`);
  await terminal.until(/A code is on its way[\s\S]*Code: /);
});

test("a mistyped tool is answered with the tools of the agent, and no path of the API", async () => {
  const edited = await run(home, ["agent", "edit", "Hello", "ada", "--tool", "nope=ask"]);
  expect([edited.code, edited.errors]).toEqual([
    1,
    expect.stringMatching(/^roost: the agent has no tool nope; it has (\w+, )*write_file(, \w+)*\n$/),
  ]);
  const made = await run(home, ["agent", "create", "Hello", "Bob", "--tool", "nope=ask"]);
  expect([made.code, made.errors]).toEqual([
    1,
    "roost: the agent has no tool nope; create it without: an edit with a mistyped tool lists those it has\n",
  ]);
});

test("a terminal is asked before anything is forgotten, with --json too", async () => {
  const { conversationId } = (await run(home, ["send", "Hello", "ada", "Remember me", "--json"])).json();
  const words = ["memory", "forget", "Hello", "ada", "--conversation", conversationId, "--json"];
  await using terminal = onTerminal(home, words);
  await terminal.until(/Remember me[\s\S]*Forget these \d+ lines and messages\? \[y\/N\] /);
  terminal.type("n\r");
  expect(await terminal.exited).toBe(1);
  expect(await run(home, ["memory", "forget", "Hello", "ada"])).toMatchObject({ code: 2 });
});

test("a profile's server comes before ROOST_URL when its login is renewed", async () => {
  const { logins } = JSON.parse(readFileSync(join(home.configDir, "credentials.json"), "utf8"));
  const key = logins[new URL(server.url).host].key;
  const login = ["login", "--profile", "work", "--key", key];
  expect((await run(home, [...login, "--url", server.url])).code).toBe(0);
  const { code, output } = await run(home, login, { env: { ROOST_URL: "http://127.0.0.1:9" } });
  expect([code, output]).toEqual([0, expect.stringContaining(server.url)]);
});

test("output that cannot be written is a failure", async () => {
  const child = Bun.spawn([BINARY, "config", "--json"], {
    cwd: home.folder,
    env: home.env,
    stdout: Bun.file("/dev/full"),
    stderr: "pipe",
  });
  expect(await new Response(child.stderr).text()).toStartWith("roost: standard output cannot be written: its disk is");
  expect(await child.exited).toBe(1);
});

test("only SQLite's failures are told as the database's", () => {
  const lineOf = (code: string) => explain(Object.assign(new Error("of the test"), { code })).line;
  expect(lineOf("ENOSPC")).toStartWith("roost: a file cannot be used: its disk is full");
  expect(lineOf("SQLITE_FULL")).toStartWith("roost: the database cannot be used: its disk is full");
});

test("what a failure says and what to do about it are one sentence", () => {
  expect(explain(new Failure("The model stopped. Send it again.", "see roost doctor")).line).toBe(
    "roost: The model stopped. Send it again; see roost doctor",
  );
});
