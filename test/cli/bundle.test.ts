import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { filesIn } from "../bundles/archives.ts";
import { BINARY, type Home, makeHome, run, type Server, signIn, startServer } from "./command-line.ts";

let home: Home;
let server: Server;
let folder: string;
beforeAll(async () => {
  home = makeHome();
  server = await startServer(home);
  expect((await signIn(home, server.url, "ada@example.org")).code).toBe(0);
  folder = join(home.folder, "work");
  mkdirSync(folder);
});
afterAll(async () => {
  await server.stop();
  home.remove();
});

let made = 0;
async function newInstance(): Promise<string> {
  const name = `home-${++made}`;
  expect((await run(home, ["instance", "create", name])).code).toBe(0);
  return name;
}
const skill =
  "---\nname: door\ndescription: Opens.\nmetadata:\n  requires-hosts: door.example.com\n  requires-secrets: DOOR\n---\nKnock.\n";

/** Files below a new folder, by name. */
function folderOf(files: Record<string, string | Uint8Array>): string {
  const root = join(folder, `folder-${++made}`);
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(join(root, name, ".."), { recursive: true });
    writeFileSync(join(root, name), content);
  }
  return root;
}

test("an exported agent is a private file, replaced only with --force, and imports as the same agent", async () => {
  const [from, to] = [await newInstance(), await newInstance()];
  const soul = join(folder, "soul.md");
  writeFileSync(soul, "You are a warm librarian. 📚");
  await run(home, ["agent", "create", from, "Librarian", "--file", `SOUL.md=${soul}`, "--tool", "delete_file=deny"]);
  const file = join(folder, "librarian.tar.gz");
  const exported = await run(home, ["agent", "export", from, "librarian", "--output", file]);
  expect(exported).toMatchObject({ code: 0, errors: "" });
  expect(exported.output).toMatch(/^Exported Librarian to .*librarian\.tar\.gz \(\d+(\.\d)? (bytes|KiB)\)\.\n$/);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readdirSync(folder).filter((name) => name.includes("unfinished"))).toEqual([]);

  const before = readFileSync(file);
  const refused = await run(home, ["agent", "export", from, "librarian", "--output", file]);
  expect(refused).toMatchObject({ code: 1, output: "" });
  expect(refused.errors).toContain("exists already; --force replaces it");
  expect(readFileSync(file)).toEqual(before);
  expect((await run(home, ["agent", "export", from, "librarian", "--output", file, "--force"])).code).toBe(0);

  const imported = await run(home, ["agent", "import", to, file]);
  expect(imported).toMatchObject({ code: 0, errors: "" });
  expect(imported.output).toMatch(/^Imported Librarian \(librarian\) {2}agt_[0-9a-f]{32} {2}8 files\n$/);
  const shown = (await run(home, ["agent", "show", to, "librarian", "--json"])).json();
  expect(shown).toMatchObject({ tools: { delete_file: "deny" }, files: { "SOUL.md": "You are a warm librarian. 📚" } });
  const taken = await run(home, ["agent", "import", to, file]);
  expect(taken.errors).toContain("another name");
  expect((await run(home, ["agent", "import", to, file, "--name", "Second", "--json"])).json()).toMatchObject({
    slug: "second",
    review: { skills: [] },
  });
});

test("an export to standard output is the bundle alone", async () => {
  const from = await newInstance();
  await run(home, ["agent", "create", from, "Ada"]);
  const file = join(folder, "ada.tar.gz");
  const command = [BINARY, "agent", "export", from, "ada", "--output", "-"];
  const child = Bun.spawn(command, { cwd: home.folder, env: home.env, stdout: Bun.file(file), stderr: "pipe" });
  expect([await child.exited, await new Response(child.stderr).text()]).toEqual([0, ""]);
  expect((await filesIn(readFileSync(file))).has("manifest.json")).toBe(true);
});

test("an export says what it has left out, on standard error or as JSON, also where the bundle goes to a pipe", async () => {
  const from = await newInstance();
  const { agentId, instanceId } = (await run(home, ["agent", "create", from, "Ada", "--json"])).json();
  const workspace = join(home.dataDir, "instances", instanceId, "agents/ada");
  writeFileSync(join(workspace, "large.bin"), new Uint8Array(256 * 1024 + 1));
  writeFileSync(join(workspace, "Übersicht.md"), "text");
  const file = join(folder, "some.tar.gz");
  const exporting = ["agent", "export", from, agentId, "--output", file, "--force"];
  const told = "left out  workspace/large.bin\nleft out  workspace/Übersicht.md\n";
  const exported = await run(home, exporting);
  expect([exported.code, exported.errors]).toEqual([0, told]);
  const asJson = await run(home, [...exporting, "--json"]);
  expect([asJson.errors, asJson.json()]).toEqual([
    "",
    { file, bytes: statSync(file).size, leftOut: ["workspace/large.bin", "workspace/Übersicht.md"] },
  ]);
  const command = [BINARY, "agent", "export", from, agentId, "--output", "-"];
  const child = Bun.spawn(command, { cwd: home.folder, env: home.env, stdout: Bun.file(file), stderr: "pipe" });
  expect([await child.exited, await new Response(child.stderr).text()]).toEqual([0, told]);
});

test("a file that is no bundle is refused with the server's words, and one that is too long before it is sent", async () => {
  const to = await newInstance();
  const file = join(folder, "no.tar.gz");
  writeFileSync(file, "hello");
  const refused = await run(home, ["agent", "import", to, file]);
  expect(refused).toMatchObject({ code: 1, output: "" });
  expect(refused.errors).toContain("bundle: it is damaged, or not compressed with gzip");
  writeFileSync(file, new Uint8Array(33 * 1024 * 1024));
  expect((await run(home, ["agent", "import", to, file])).errors).toContain("a bundle has at most 32.0 MiB");
  expect((await run(home, ["agent", "import", to, join(folder, "nothing")])).errors).toContain("cannot be read");
});

test("an OpenClaw workspace imports with its files and memory; its settings, logins and links stay where they are", async () => {
  const to = await newInstance();
  const state = folderOf({
    "openclaw.json": '{ gateway: { auth: { token: "tok-secret" } }, channels: {}, cron: { jobs: [] }, }',
    "credentials/oauth.json": "oauth-secret",
    "workspace/AGENTS.md": "Work well.",
    "workspace/SOUL.md": "Be kind.",
    "workspace/USER.md": "Ada.",
    "workspace/IDENTITY.md": "# Identity\n\n- **Name:** Clawd 🦞\n- **Vibe:** warm\n",
    "workspace/TOOLS.md": "ssh to home",
    "workspace/HEARTBEAT.md": "- check the mail",
    "workspace/MEMORY.md": "Ada likes tea.",
    "workspace/memory/2026-01-31.md": "Drank tea.",
    "workspace/skills/door/SKILL.md": skill,
    "workspace/skills/door/scripts/open.js": "1",
    "workspace/skills/stray.txt": "stray",
    "workspace/.env": "KEY=env-secret",
    "workspace/.git/config": "git-secret",
    "workspace/画.md": "not a name here",
    "workspace/large.bin": new Uint8Array(256 * 1024 + 1),
  });
  symlinkSync("/etc/hostname", join(state, "workspace/link.md"));
  const imported = await run(home, ["agent", "import", to, state]);
  expect(imported.code).toBe(0);
  expect(imported.output).toMatch(/^Imported Clawd 🦞 \(clawd\) {2}agt_\w+ {2}8 files\n$/);
  const lines = imported.errors.trim().split("\n");
  expect(lines).toContain(
    `skill     door 1.0.0  not installed, which opens door.example.com: roost skill install ${to} door --from ${state}`,
  );
  expect(lines).toContain(`secret    DOOR  not set: roost secret set ${to} DOOR`);
  const leftOut = lines.filter((line) => line.startsWith("left out")).map((line) => line.replace(/^left out\s+/, ""));
  expect(leftOut).toEqual([
    "credentials",
    "openclaw.json: gateway, channels, cron",
    ".env",
    ".git",
    "large.bin: larger than 262144 bytes",
    "link.md",
    "skills/stray.txt",
    "画.md",
  ]);
  const shown = (await run(home, ["agent", "show", to, "clawd", "--json"])).json();
  expect(Object.keys(shown.files)).toEqual(
    "AGENTS.md HEARTBEAT.md IDENTITY.md MEMORY.md SOUL.md TOOLS.md USER.md memory/2026-01-31.md".split(" "),
  );
  expect(JSON.stringify(shown)).not.toMatch(/(tok|oauth|env|git)-secret/);
  expect((await run(home, ["skill", "list", to, "--json"])).json()).toEqual([]);

  const installed = await run(home, ["skill", "install", to, "door", "--from", state]);
  expect(installed).toMatchObject({ code: 0, output: "Installed door 1.0.0.\n" });
  const file = join(folder, "clawd.tar.gz");
  expect((await run(home, ["agent", "export", to, "clawd", "--output", file])).code).toBe(0);
  const other = await newInstance();
  expect((await run(home, ["skill", "install", other, "door", "--from", file])).code).toBe(0);
  const [mine, theirs] = [
    (await run(home, ["skill", "list", to, "--json"])).json(),
    (await run(home, ["skill", "list", other, "--json"])).json(),
  ];
  expect(theirs[0].sha256).toBe(mine[0].sha256);
  const picture = join(state, "workspace/skills/door/picture.txt");
  writeFileSync(picture, Buffer.from([0x89, 0x50, 0xff]));
  const refused = await run(home, ["skill", "install", other, "door", "--from", state]);
  expect([refused.code, refused.errors]).toEqual([
    expect.any(Number),
    expect.stringContaining(`${picture} is not UTF-8`),
  ]);
  expect((await run(home, ["skill", "install", other, "nothing", "--from", file])).errors).toContain(
    "no skill nothing in",
  );
});

test("what a bundle names is one word of the commands that are told after its import", async () => {
  const [from, to] = [await newInstance(), `my home ${++made}`];
  await run(home, ["instance", "create", to]);
  await run(home, ["agent", "create", from, "Ada"]);
  const name = '$(id) it\'s "late"; `id`';
  expect((await run(home, ["schedule", "create", from, "ada", name, "Hello", "--every", "1h"])).code).toBe(0);
  const file = join(folder, "named.tar.gz");
  await run(home, ["agent", "export", from, "ada", "--output", file]);
  const { errors } = await run(home, ["agent", "import", to, file]);
  const wordsOf = (command: string | undefined) => {
    const { stdout } = Bun.spawnSync(["sh", "-c", `printf '%s\\n' ${command}`]);
    return stdout.toString().trimEnd().split("\n");
  };
  const told = [...errors.matchAll(/off: roost (.*)$/gm)].map(([, command]) => wordsOf(command));
  expect(told).toContainEqual(["schedule", "on", to, "ada", name]);
});

test("a folder that is no agent's workspace is refused, and nothing of it is sent", async () => {
  const to = await newInstance();
  for (const files of [
    { ".hidden": "x" },
    { "data/master.key": "key", "notes.md": "mine" },
    { "workspace/notes.md": "mine" },
    { "deeper/below/SOUL.md": "Be kind." },
  ]) {
    const refused = await run(home, ["agent", "import", to, folderOf(files as Record<string, string>)]);
    expect(refused).toMatchObject({ code: 1, output: "" });
    expect(refused.errors).toContain("expected AGENTS.md or SOUL.md in it, or in its folder workspace");
  }
  expect((await run(home, ["agent", "list", to, "--json"])).json()).toEqual([]);
  expect(existsSync(join(home.dataDir, "bundles")) ? readdirSync(join(home.dataDir, "bundles")) : []).toEqual([]);
});

test("a data folder of Roost inside a workspace stays where it is", async () => {
  const to = await newInstance();
  const workspace = folderOf({ "SOUL.md": "Be kind.", "data/roost.db": "rows", "data/master.key": "key" });
  const imported = await run(home, ["agent", "import", to, workspace, "--name", "Kind"]);
  expect(imported).toMatchObject({ code: 0, errors: "left out  data\n" });
  const { files } = (await run(home, ["agent", "show", to, "kind", "--json"])).json();
  expect(Object.keys(files)).toEqual(["SOUL.md"]);
});

test("a skill is the same from its own folder, from one of skills and from a workspace", async () => {
  const files = { "door/SKILL.md": skill, "door/scripts/open.js": "1", "door/skills/notes.md": "mine" };
  const skills = folderOf(files);
  const workspace = folderOf(Object.fromEntries(Object.entries(files).map(([name, text]) => [`skills/${name}`, text])));
  const sums: string[] = [];
  for (const from of [join(skills, "door"), skills, workspace]) {
    const to = await newInstance();
    const installed = await run(home, ["skill", "install", to, "door", "--from", from]);
    expect(installed).toMatchObject({ code: 0, output: "Installed door 1.0.0.\n" });
    sums.push((await run(home, ["skill", "list", to, "--json"])).json()[0].sha256);
  }
  expect(sums).toEqual(Array(3).fill(sums[0]));
});

test("a folder without the skill is refused with what is expected, and so is another skill's", async () => {
  const to = await newInstance();
  const install = (...from: string[]) => run(home, ["skill", "install", to, "window", "--from", ...from]);
  const none = await install(".");
  expect([none.code, none.errors]).toEqual([
    1,
    "roost: there is no skill window in .; expected SKILL.md, window/SKILL.md or skills/window/SKILL.md in it\n",
  ]);
  const other = folderOf({ "SKILL.md": skill });
  expect((await install(other)).errors).toBe(`roost: the skill in ${other} is door, not window\n`);
  expect((await run(home, ["skill", "list", to, "--json"])).json()).toEqual([]);
});
