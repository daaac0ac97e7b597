import { afterAll, beforeAll, expect, test } from "bun:test";
import { makeHome, run } from "./command-line.ts";

const home = makeHome();
let script: string;
beforeAll(async () => {
  script = (await run(home, ["completion", "bash"])).output;
});
afterAll(() => home.remove());

/** What bash would offer for the last of these words. */
async function complete(...words: string[]): Promise<string[]> {
  const ask = `${script}
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _roost; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const child = Bun.spawn(["bash", "--norc", "-c", ask, "bash", "roost", ...words], { stdout: "pipe" });
  return (await Bun.readableStreamToText(child.stdout)).split("\n").filter(Boolean);
}

test("bash is offered commands, what is below them, and their options", async () => {
  expect(await complete("in")).toEqual(["invite", "instance"]);
  expect(await complete("invite", "")).toEqual(["create", "list", "revoke", "help"]);
  expect(await complete("invite", "create", "--")).toContain("--expires");
  expect(await complete("agent", "edit", "Hello", "ada", "--f")).toEqual(["--file"]);
  expect(await complete("serve", "")).toEqual([]);
});

test("every command stands in every shell's script", async () => {
  const names = await complete("");
  expect(names).toContain("doctor");
  for (const shell of ["zsh", "fish"]) {
    const { code, output } = await run(home, ["completion", shell]);
    expect(code).toBe(0);
    for (const name of names) expect(output).toContain(name);
  }
});

test("no option carries a secret's value, and no command takes one as an argument", async () => {
  const { output } = await run(home, ["secret", "set", "--help"]);
  expect(output).toStartWith("Usage: roost secret set [options] <instance> <name>\n");
  expect(await complete("secret", "set", "--v")).toEqual([]);
});
