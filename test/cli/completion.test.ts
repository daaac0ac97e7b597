import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { makeHome, run, type Server, signIn, startServer } from "./command-line.ts";
import { AGENT, EVIL, INSTANCE, OBEYED, startHostileServer } from "./hostile-server.ts";

const home = makeHome();
let server: Server;
const EVIL_NAME = 'My $(touch pwned) "it\'s" `x`';
beforeAll(async () => {
  server = await startServer(home);
  expect((await signIn(home, server.url, "ada@example.org")).code).toBe(0);
  await run(home, ["instance", "create", "home"]);
  await run(home, ["agent", "create", "home", "Librarian", "--model", "local:other"]);
  await run(home, ["agent", "create", "home", "Captain Ahab"]);
  // The scripts run the first word of the line.
  writeFileSync(join(home.folder, "main.sh"), `#!/bin/sh\nexec ${process.execPath} ${resolve("src/main.ts")} "$@"\n`, {
    mode: 0o755,
  });
  symlinkSync(join(home.folder, "main.sh"), join(home.folder, "roost"));
});
afterAll(async () => {
  await server.stop();
  home.remove();
});

/** What is offered for these words, the last of which is being typed. */
async function offered(...words: string[]): Promise<string[]> {
  const ran = await run(home, ["__complete", "fish", "--", ...words]);
  expect([ran.code, ran.errors]).toEqual([0, ""]);
  const [kind, ...lines] = ran.output.split("\n");
  return kind === "files" ? ["files"] : lines.filter(Boolean).map((line) => line.split("\t")[0] ?? "");
}

/** Asks until something is offered: from a host that takes more than a second to answer, nothing is. */
async function untilOffered<T extends string | string[]>(ask: () => T | Promise<T>): Promise<T> {
  for (;;) {
    const names = await ask();
    if (names.length > 0) return names;
  }
}
const found = (...words: string[]): Promise<string[]> => untilOffered(() => offered(...words));

describe("offered are", () => {
  test("commands, subcommands, and their options", async () => {
    expect(await found("")).toContain("doctor");
    expect(await offered("")).not.toContain("__complete");
    expect(await found("invite", "")).toEqual(["create", "list", "revoke", "help"]);
    expect(await found("help", "")).toContain("agent");
    expect(await found("invite", "create", "--")).toContain("--expires");
    expect(await offered("serve", "")).toEqual([]);
  });

  test("values of options and arguments, with or without an equals sign", async () => {
    expect(await found("completion", "")).toEqual(["bash", "zsh", "fish"]);
    expect(await found("instance", "list", "--status", "")).toContain("running");
    expect(await found("instance", "list", "--status=")).toContain("--status=running");
    const offeredModels = () => found("agent", "create", "home", "x", "--model", "");
    let models = await offeredModels();
    // Those of the agents are left out if the host is slow.
    while (!models.includes("local:other")) models = await offeredModels();
    expect(models).toEqual(["default", "local:smollm2-135m-instruct", "local:other"]);
    expect(await found("whoami", "--url", "")).toEqual([server.url]);
    expect(await found("profile", "use", "")).toEqual([new URL(server.url).host]);
  });

  test("files where a path is expected", async () => {
    expect(await found("serve", "--data", "")).toEqual(["files"]);
    expect(await found("agent", "edit", "home", "librarian", "--file", "")).toEqual(["files"]);
  });

  test("the server's instances, agents, skills, secrets", async () => {
    expect(await found("instance", "stop", "")).toContain("home");
    expect(await found("chat", "home", "")).toEqual(["librarian", "captain-ahab"]);
    expect(await found("chat", "--profile", new URL(server.url).host, "home", "")).toHaveLength(2);
    expect(await found("skill", "install", "home", "")).toContain("meeting-notes");
    expect(await offered("skill", "remove", "home", "")).toEqual([]);
    expect((await run(home, ["conversation", "new", "home", "librarian", "--title", "Trips"])).code).toBe(0);
    expect(await found("conversation", "delete", "home", "librarian", "")).toEqual(["Trips", "default"]);
    expect(await found("chat", "home", "librarian", "--conversation", "")).toEqual(["Trips", "default"]);
    await run(home, ["secret", "set", "home", "TOKEN"], { input: "x" });
    expect(await found("secret", "delete", "home", "")).toEqual(["TOKEN"]);
  });

  test("ids where several have the same name", async () => {
    const { instanceId } = (await run(home, ["instance", "create", "twin", "--json"])).json();
    await run(home, ["instance", "create", "twin"]);
    const names = await found("instance", "stop", "");
    expect(names).toContain(instanceId);
    expect(names).not.toContain("twin");
  });

  test("no message text and no secret's value", async () => {
    expect(await offered("send", "home", "librarian", "")).toEqual([]);
    expect(await offered("secret", "set", "--v")).not.toContain("--value");
    expect(await offered("secret", "set", "home", "TOKEN", "")).toEqual([]);
  });
});

describe("nothing is offered and nothing printed", () => {
  test("without a login, without a server, or after an invalid option", async () => {
    const other = makeHome();
    const nobody = await run(other, ["__complete", "fish", "--", "chat", ""]);
    expect([nobody.code, nobody.output, nobody.errors]).toEqual([0, "words\n", ""]);
    other.remove();
    for (const more of [
      ["--url", "http://127.0.0.1:1", "--key", "k"],
      ["--url", "nonsense"],
      ["--profile", "none"],
    ]) {
      expect(await offered("chat", ...more, "")).toEqual([]);
    }
  });

  test("by a malicious server", async () => {
    await using evil = startHostileServer();
    const to = ["--url", evil.url, "--key", "k"];
    for (const words of [["chat"], ["chat", INSTANCE], ["skill", "install", INSTANCE], ["secret", "set", INSTANCE]]) {
      for (const shell of ["fish", "zsh"]) {
        const { output } = await run(home, ["__complete", shell, "--", ...words, ...to, ""]);
        expect(output.replaceAll(/[\n\t]/g, "")).not.toMatch(OBEYED);
        expect(output).not.toMatch(/^FORGED/m);
      }
      expect(await offered(...words, ...to, "")).toEqual([]);
    }
    expect([AGENT, EVIL]).toHaveLength(2);
  });
});

describe("the shells' scripts", () => {
  /** What bash writes for the line, whose end is the cursor, where something is to be offered. */
  const bash = (line: string): Promise<string[]> => untilOffered(() => bashOnce(line));

  async function bashOnce(line: string): Promise<string[]> {
    const ask = `source <(roost completion bash)
COMP_LINE=$1 COMP_POINT=\${#1} COMP_WORDS=(roost); _roost; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const child = Bun.spawn(["bash", "--norc", "-c", ask, "bash", line], {
      cwd: home.folder,
      env: { ...home.env, PATH: `${home.folder}:/usr/bin:/bin` },
      stdio: ["ignore", "pipe", "inherit"],
    });
    return (await Bun.readableStreamToText(child.stdout)).split("\n").filter(Boolean);
  }

  test("bash completes the word at the cursor, after a colon only the part that bash expects", async () => {
    expect(await bash("roost in")).toEqual(["instance", "invite"]);
    expect(await bash("roost chat home lib")).toEqual(["librarian"]);
    expect(await bash("roost agent edit home librarian --model local:o")).toEqual(["other"]);
    expect(await bash("roost agent edit home librarian --model=local:o")).toEqual(["other"]);
  });

  test("bash gets names escaped, whatever the shell would make of them", async () => {
    await run(home, ["instance", "create", EVIL_NAME]);
    expect(await bash("roost instance stop M")).toEqual(['My\\ \\$\\(touch\\ pwned\\)\\ \\"it\\\'s\\"\\ \\`x\\`']);
    expect(await bash('roost instance stop "M')).toEqual(['My \\$(touch pwned) \\"it\'s\\" \\`x\\`']);
    expect(await bashOnce("roost instance stop 'M")).toEqual([]);
    for (const written of [...(await bash("roost instance stop M")), `"${await bash('roost instance stop "M')}"`]) {
      const child = Bun.spawn(["bash", "-c", `printf %s ${written}`], { stdio: ["ignore", "pipe", "inherit"] });
      expect(await Bun.readableStreamToText(child.stdout)).toBe(EVIL_NAME);
    }
  });

  test("a backslash and quotes before the cursor are read as the shell reads them", async () => {
    await run(home, ["instance", "create", "two words"]);
    await run(home, ["agent", "create", "two words", "Echo"]);
    for (const written of ["two\\ words", "'two words'", '"two words"', "two' 'words"]) {
      expect(await bash(`roost chat ${written} `)).toEqual(["echo"]);
    }
  });

  test.skipIf(Bun.which("zsh") === null)("zsh runs its script, and a colon in a value works", async () => {
    const { output } = await run(home, ["completion", "zsh"]);
    expect(output).toStartWith("#compdef roost\n");
    const checked = Bun.spawnSync(["zsh", "-n"], { stdin: Buffer.from(output) });
    expect([checked.exitCode, checked.stderr.toString()]).toEqual([0, ""]);
    const words = ["agent", "create", "home", "x", "--model", ""];
    const lines = await untilOffered(async () => {
      const { output } = await run(home, ["__complete", "zsh", "--", ...words]);
      return output.includes("other") ? output : "";
    });
    expect(lines).toContain("local\\:other\n");
  });

  test.skipIf(Bun.which("fish") === null)("fish completes with its script", async () => {
    const { output } = await run(home, ["completion", "fish"]);
    writeFileSync(join(home.folder, "roost.fish"), output);
    const ask = `source ${home.folder}/roost.fish; complete -C 'roost chat home lib'`;
    const options = { cwd: home.folder, env: { ...home.env, PATH: `${home.folder}:/usr/bin:/bin` } };
    const lines = await untilOffered(() =>
      Bun.spawnSync(["fish", "--no-config", "-c", ask], options).stdout.toString(),
    );
    expect(lines).toBe("librarian\tLibrarian\n");
  });

  test("another shell is refused by name", async () => {
    const { code, errors } = await run(home, ["completion", "tcsh"]);
    expect(code).toBe(2);
    expect(errors).toContain("bash, zsh, fish");
  });
});

test("no option carries a secret's value, and no command takes one as an argument", async () => {
  const { output } = await run(home, ["secret", "set", "--help"]);
  expect(output).toStartWith("Usage: roost secret set [options] <instance> <secret>\n");
});
