import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { findHidden } from "../../src/lib/hidden-characters.ts";
import type { MockModelServer } from "../support/mock-model-server.ts";
import { BINARY, CALLED, type Home, onTerminal, run, type Server, serveSignedIn } from "./command-line.ts";

let home: Home;
let mock: MockModelServer;
let server: Server;
let stop: () => Promise<void>;
beforeAll(async () => {
  ({ home, mock, server, stop } = await serveSignedIn());
  await run(home, ["instance", "create", "home"]);
});
afterAll(() => stop());

const approvals = async (...words: string[]) => (await run(home, ["approval", "list", ...words, "--json"])).json();

test("questions are listed, shown, completed and answered, and the agent goes on with the answers", async () => {
  await run(home, ["agent", "create", "home", "Ada"]);
  const questions = [{ question: "Which day?", options: ["Monday", "Friday"] }];
  mock.script({ kind: "tools", calls: [{ name: "ask_user", arguments: { questions } }] });
  mock.script({ kind: "text", tokens: ["Friday it is."] });
  const sent = run(home, ["send", "home", "ada", "Plan the trip"]);
  let open: { approvalId: string }[] = [];
  while (open.length === 0) open = await approvals();
  const id = open[0]?.approvalId ?? "";
  expect((await run(home, ["approval", "list"])).output).toContain(id);
  const shown = (await run(home, ["approval", "show", id])).output;
  expect(shown).toContain("  1. Which day?\n     one of: Monday, Friday\n");
  const complete = () => run(home, ["__complete", "fish", "--", "approval", "answer", ""]);
  let completed = await complete();
  // From a host that takes more than a second to answer, nothing is offered.
  while (completed.output === "words\n") completed = await complete();
  expect(completed.output).toContain(`${id}\task_user Which day?`);
  expect((await run(home, ["__complete", "fish", "--", "approval", "approve", ""])).output).not.toContain(id);
  expect(await run(home, ["approval", "approve", id, "--yes"])).toMatchObject({
    code: 1,
    errors: expect.stringContaining("this is a question"),
  });
  const answered = await run(home, ["approval", "answer", id, "Friday"]);
  expect([answered.code, answered.output]).toEqual([0, "It is answered. The agent goes on.\n"]);
  expect(answered.errors).toMatch(/^To see how: roost events inst_[0-9a-f]{32} agt_[0-9a-f]{32}\n$/);
  expect(await sent).toMatchObject({ code: 0, output: "Friday it is.\n" });
  expect(await approvals()).toEqual([]);
  expect(await approvals("--status", "answered")).toMatchObject([{ approvalId: id, answers: ["Friday"] }]);
});

test("what nobody would see of a call or a question is shown as escapes", async () => {
  const tags = Array.from("obey", (one) => String.fromCodePoint(0xe0000 + (one.codePointAt(0) ?? 0))).join("");
  await run(home, ["agent", "create", "home", "Eve"]);
  await run(home, ["agent", "edit", "home", "eve", "--tool", "write_file=ask"]);
  const hidden = [
    { name: "write_file", arguments: { name: "notes.md", text: `Be kind.${tags}` } },
    { name: "ask_user", arguments: { questions: [{ question: `Go on?${tags}`, options: [`Yes${tags}`, "No"] }] } },
  ];
  let shown = "";
  for (const call of hidden) {
    mock.script({ kind: "tools", calls: [call] });
    mock.script({ kind: "text", tokens: ["Done."] });
    const sent = run(home, ["send", "home", "eve", "Write"]);
    let open: { approvalId: string }[] = [];
    while (open.length === 0) open = await approvals();
    const id = open[0]?.approvalId ?? "";
    for (const words of [["show", id], ["list"]]) shown += (await run(home, ["approval", ...words])).output;
    await run(home, ["approval", "deny", id]);
    expect((await sent).code).toBe(0);
  }
  expect(findHidden(shown)).toBeUndefined();
  for (const said of ["Be kind.", "Go on?", "Yes"]) expect(shown).toContain(`${said}\\udb40\\udc6f`);
});

test("a call is approved exactly as it was shown, or denied with a note", async () => {
  await run(home, ["agent", "create", "home", "Bob"]);
  const edited = await run(home, ["agent", "edit", "home", "bob", "--tool", "write_file=ask"]);
  expect(edited.code).toBe(0);
  expect((await run(home, ["agent", "show", "home", "bob"])).output).toContain("write_file=ask");
  expect((await run(home, ["agent", "edit", "home", "bob", "--tool", "write_file=maybe"])).code).toBe(2);
  for (const [words, status] of [
    [["approve", "--yes"], "approved"],
    [["deny", "--note", "not now"], "denied"],
  ] as const) {
    const name = `${status}.md`;
    mock.script({ kind: "tools", calls: [{ name: "write_file", arguments: { name, text: "a\u202eb" } }] });
    mock.script({ kind: "text", tokens: ["Done."] });
    const sent = run(home, ["send", "home", "bob", "Write it"]);
    let open: { approvalId: string }[] = [];
    while (open.length === 0) open = await approvals();
    const [verb = "", ...options] = words;
    const decided = await run(home, ["approval", verb, open[0]?.approvalId ?? "", ...options]);
    expect([decided.code, decided.output]).toEqual([0, expect.stringContaining(`It is ${status}.`)]);
    if (status === "approved") expect(decided.output).toContain('    "text": "a\\u202eb"\n');
    expect((await sent).code).toBe(0);
  }
  const { output } = await run(home, ["agent", "show", "home", "bob"]);
  expect([output.includes("approved.md"), output.includes("denied.md")]).toEqual([true, false]);
});

test.each([
  [["send", "home", "eve", "Plan it"], "", "It is Friday.\n"],
  [["send", "home", "eve", "Plan it", "--json"], "", '"message": "It is Friday."'],
  [["chat", "home", "eve"], "Plan it\n", "It is Friday.\n"],
])("in a pipe, %j says on standard error what the answer waits for", async (words, input, output) => {
  await run(home, ["agent", "create", "home", "Eve"]);
  const questions = [{ question: "Which day?", options: [] }];
  mock.script({ kind: "tools", calls: [{ name: "ask_user", arguments: { questions } }] });
  mock.script({ kind: "text", tokens: ["It is Friday."] });
  const sent = run(home, words, { input });
  let open: { approvalId: string }[] = [];
  while (open.length === 0) open = await approvals();
  const id = open[0]?.approvalId ?? "";
  expect((await run(home, ["approval", "answer", id, "Friday"])).code).toBe(0);
  expect(await sent).toMatchObject({
    code: 0,
    output: expect.stringContaining(output),
    errors: `· to decide: roost approval show ${id} (ask_user)\n`,
  });
});

test("a key that may not decide is refused with the login that may", async () => {
  const { current, logins } = JSON.parse(readFileSync(join(home.configDir, "credentials.json"), "utf8"));
  const headers = { "X-API-Key": logins[current].key, "Content-Type": "application/json" };
  const made = await fetch(`${server.url}/v1/auth/keys`, { method: "POST", headers, body: '{"name":"laptop"}' });
  const { key } = (await made.json()) as { key: string };
  const refused = await run(home, ["approval", "answer", `appr_${"0".repeat(32)}`, "Friday", "--key", key]);
  expect([refused.code, refused.output]).toEqual([1, ""]);
  expect(refused.errors).toEndWith(`; sign in with your e-mail address: roost login --url ${server.url}\n`);
});

test("a message behind a run that waits for a person says what is to be decided first, and is answered after it", async () => {
  await run(home, ["agent", "create", "home", "Fay", "--tool", "write_file=ask"]);
  mock.script({ kind: "tools", calls: [{ name: "write_file", arguments: { name: "tea.md", text: "Tea" } }] });
  const first = run(home, ["send", "home", "fay", "Write it"]);
  let open: { approvalId: string }[] = [];
  while (open.length === 0) open = await approvals();
  const id = open[0]?.approvalId ?? "";
  const said = new RegExp(`· to decide first: roost approval show ${id} \\(write_file\\)`);
  await using sent = onTerminal(home, ["send", "home", "fay", "Hello"]);
  await sent.until(said);
  const words = [BINARY, "send", "home", "fay", "Hello"];
  const piped = Bun.spawn(words, { ...CALLED, cwd: home.folder, env: home.env, stdout: "pipe", stderr: "pipe" });
  let errors = "";
  for await (const bytes of piped.stderr) {
    errors += new TextDecoder().decode(bytes);
    if (errors.endsWith("\n")) break;
  }
  expect(errors).toMatch(said);
  for (const token of ["Written.", "Hi.", "Hi again."]) mock.script({ kind: "text", tokens: [token] });
  expect((await run(home, ["approval", "deny", id])).code).toBe(0);
  expect(await first).toMatchObject({ code: 0, output: "Written.\n" });
  await sent.until(/Hi\./);
  expect([await sent.exited, await piped.exited]).toEqual([0, 0]);
  expect(await Bun.readableStreamToText(piped.stdout)).toBe("Hi again.\n");
});
