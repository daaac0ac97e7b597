import { afterAll, beforeAll, expect, test } from "bun:test";
import type { MockModelServer } from "../support/mock-model-server.ts";
import { type Home, run, serveSignedIn } from "./command-line.ts";

let home: Home;
let mock: MockModelServer;
let stop: () => Promise<void>;
beforeAll(async () => {
  ({ home, mock, stop } = await serveSignedIn());
  for (const words of [
    ["instance", "create", "home"],
    ["agent", "create", "home", "Ada"],
    ["secret", "set", "home", "TOKEN"],
    ["conversation", "new", "home", "ada", "--title", "Trips"],
    ["schedule", "create", "home", "ada", "Morning", "A poem?", "--every", "1d"],
    ["send", "home", "ada", "Remember me"],
  ]) {
    expect(await run(home, words, { input: "x" })).toMatchObject({ code: 0 });
  }
});
afterAll(() => stop());

// An answer that is piped in may be meant for something else.
test.each([
  ["Morning", ["schedule", "delete", "home", "ada", "Morning"], ["schedule", "list", "home", "ada"]],
  [
    "Remember me",
    ["memory", "forget", "home", "ada", "--conversation", "default"],
    ["memory", "search", "home", "ada", "Remember me"],
  ],
  ["Trips", ["conversation", "delete", "home", "ada", "Trips"], ["conversation", "list", "home", "ada"]],
  ["TOKEN", ["secret", "delete", "home", "TOKEN"], ["secret", "list", "home"]],
  ["Ada", ["agent", "delete", "home", "ada"], ["agent", "list", "home"]],
  ["home", ["instance", "delete", "home"], ["instance", "list"]],
])("%s stays where a command that asks has no terminal to ask on, and goes with --yes", async (what, words, list) => {
  const found = async () => (await run(home, [...list, "--json"])).output.includes(what);
  for (const input of ["", "n\n", "y\n"]) {
    for (const json of [[], ["--json"]]) {
      const { code, errors } = await run(home, [...words, ...json], { input });
      expect([code, errors]).toEqual([2, expect.stringContaining("add --yes where nobody can answer")]);
    }
  }
  expect(await found()).toBe(true);
  expect((await run(home, [...words, "--yes"])).code).toBe(0);
  expect(await found()).toBe(false);
});

test("a call is not approved unasked where there is no terminal to ask on", async () => {
  await run(home, ["instance", "create", "office"]);
  await run(home, ["agent", "create", "office", "Bob", "--tool", "write_file=ask"]);
  mock.script({ kind: "tools", calls: [{ name: "write_file", arguments: { name: "a.md", text: "a" } }] });
  mock.script({ kind: "text", tokens: ["Done."] });
  const sent = run(home, ["send", "office", "bob", "Write it"]);
  let open: { approvalId: string }[] = [];
  while (open.length === 0) open = (await run(home, ["approval", "list", "--json"])).json();
  const id = open[0]?.approvalId ?? "";
  for (const input of ["", "y\n"]) {
    const refused = await run(home, ["approval", "approve", id], { input });
    expect([refused.code, refused.errors]).toEqual([2, expect.stringContaining("add --yes where nobody can answer")]);
  }
  expect((await run(home, ["approval", "show", id, "--json"])).json()).toMatchObject({ status: "open" });
  expect((await run(home, ["approval", "deny", id])).code).toBe(0);
  expect((await sent).code).toBe(0);
});
