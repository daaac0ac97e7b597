import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { loadCatalog } from "../../src/skills/catalog.ts";
import { fingerprint } from "../../src/skills/fingerprint.ts";
import { createSkills } from "../../src/skills/skills.ts";
import { createReadSkill } from "../../src/tools/read-skill.ts";
import type { ToolContext } from "../../src/tools/tool.ts";
import { openGround } from "../support/route-harness.ts";

const SKILL = "---\nname: own\ndescription: Does it.\n---\nDo it.\n";
const FILES = new Map([
  ["SKILL.md", SKILL],
  ["scripts/run it.js", "export default () => 1;\n"],
  ["references/e.md", "é\n"],
]);

function openRoom() {
  const ground = openGround();
  const { instanceId } = ground.instances.create(ground.account(), "one");
  const parts = { ...ground, catalog: loadCatalog(), secretNames: () => [], toolNames: () => [] };
  const skills = createSkills(parts);
  const tool = createReadSkill(skills);
  const context = { instanceId, agentId: "agt_1", clock: ground.clock, signal: new AbortController().signal };
  return {
    ground,
    parts,
    instanceId,
    skills,
    read: async (input: { name: string; file?: string }) => tool.run(input, context as ToolContext),
    [Symbol.asyncDispose]: () => ground[Symbol.asyncDispose](),
  };
}

test("a skill's hash is that of what sha256sum prints for its files", () => {
  const folder = mkdtempSync(join(tmpdir(), "roost-skill-"));
  try {
    const plain = new Map([...FILES].map(([name, text]) => [name.replaceAll(" ", "-"), text]));
    for (const [name, text] of plain) {
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      writeFileSync(join(folder, name), text);
    }
    const command = "sha256sum $(find * -type f | LC_ALL=C sort) | sha256sum";
    const { stdout } = Bun.spawnSync(["sh", "-c", command], { cwd: folder });
    expect(stdout.toString()).toBe(`${fingerprint(plain)}  -\n`);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("any change of a file, its name or their number changes the hash", () => {
  const changed = [
    new Map([...FILES].map(([name, text]) => [name, name === "SKILL.md" ? `${text} ` : text])),
    new Map([...FILES].map(([name, text]) => [name.replace("run", "ran"), text])),
    new Map([...FILES].slice(1)),
    new Map([...FILES, ["empty.md", ""]]),
  ];
  const hashes = [FILES, ...changed].map(fingerprint);
  expect(new Set(hashes).size).toBe(hashes.length);
  expect(fingerprint(new Map([...FILES].reverse()))).toBe(fingerprint(FILES));
});

test("an agent reads a skill's instructions, the names of its files, and each of them", async () => {
  await using room = openRoom();
  room.skills.install(room.instanceId, { files: FILES });
  const whole = "Do it.\n\nFiles of this skill: references/e.md, scripts/run it.js";
  expect(await room.read({ name: "own" })).toBe(whole);
  expect(await room.read({ name: "own", file: "SKILL.md" })).toBe(whole);
  for (const name of ["references/e.md", "scripts/run it.js"]) {
    expect(await room.read({ name: "own", file: name })).toBe(FILES.get(name) ?? "");
    expect(await room.read({ name: "own", file: `./${name}` })).toBe(FILES.get(name) ?? "");
  }
});

test("an agent that asks for a skill or a file that is not there is told what is", async () => {
  await using room = openRoom();
  await expect(room.read({ name: "own" })).rejects.toThrow('there is no skill "own"; none is installed');
  room.skills.install(room.instanceId, { files: FILES });
  room.skills.install(room.instanceId, { name: "translation" });
  await expect(room.read({ name: "calc" })).rejects.toThrow('there is no skill "calc"; there are: own, translation');
  for (const file of ["../own/SKILL.md", "/etc/passwd", "constructor", ""]) {
    await expect(room.read({ name: "own", file })).rejects.toThrow(
      `the skill own has no file "${file}"; it has: references/e.md, scripts/run it.js`,
    );
  }
  await expect(room.read({ name: "translation", file: "a.md" })).rejects.toThrow("it has none");
});

test("a skill of another instance cannot be read", async () => {
  await using room = openRoom();
  const other = room.ground.instances.create(room.ground.account(), "two");
  room.skills.install(other.instanceId, { files: FILES });
  await expect(room.read({ name: "own" })).rejects.toThrow("none is installed");
});

test.each([
  ["a file's text", `json_set(files, '$."SKILL.md"', '${SKILL.replace("Do it", "Obey")}')`],
  ["one more file", `json_set(files, '$."more.md"', 'x')`],
  ["one file less", `json_remove(files, '$."references/e.md"')`],
])("a skill is not used after a change of %s, until it is installed again", async (_, changed) => {
  await using room = openRoom();
  const { skills, instanceId } = room;
  skills.install(instanceId, { files: FILES });
  room.ground.store.sqlite.run(`UPDATE installed_skills SET files = ${changed}`);
  const words = "the skill own was changed after its installation and cannot be used; remove it and install it again";
  await expect(room.read({ name: "own" })).rejects.toThrow(words);
  expect(skills.instructions(instanceId, "own")).toBe(`(${words}.)`);
  skills.remove(instanceId, "own");
  skills.install(instanceId, { files: FILES });
  expect(skills.instructions(instanceId, "own")).toBe("Do it.");
});

test("what the skills of an instance require is counted together: a secret goes to the hosts of those that name it", async () => {
  await using room = openRoom();
  const { skills, instanceId } = room;
  const install = (name: string, metadata: string) =>
    skills.install(instanceId, {
      files: new Map([["SKILL.md", `---\nname: ${name}\ndescription: d\nmetadata: { ${metadata} }\n---\n`]]),
    });
  expect(skills.requirementsOf(instanceId)).toEqual({ hosts: new Set(), secrets: new Map() });
  install("one", 'requires-hosts: "a.example b.example", requires-secrets: "KEY@a.example OTHER"');
  install("two", "requires-hosts: c.example:8443, requires-secrets: KEY");
  install("three", "requires-hosts: open.example, requires-tools: http_request");
  const other = room.ground.instances.create(room.ground.account(), "two");
  skills.install(other.instanceId, { files: FILES });
  expect(skills.requirementsOf(instanceId)).toEqual({
    hosts: new Set(["a.example", "b.example", "c.example:8443", "open.example"]),
    secrets: new Map([
      ["KEY", new Set(["a.example", "c.example:8443"])],
      ["OTHER", new Set(["a.example", "b.example"])],
    ]),
  });
  skills.remove(instanceId, "one");
  expect(skills.requirementsOf(instanceId).secrets).toEqual(new Map([["KEY", new Set(["c.example:8443"])]]));
  expect(skills.requirementsOf(other.instanceId)).toEqual({ hosts: new Set(), secrets: new Map() });
});

test("skills that were installed before there were pins keep their texts, get one, and their secrets go to all of their hosts", async () => {
  const folder = join(import.meta.dir, "../../src/storage/migrations");
  const migrations = readdirSync(folder).sort();
  const own = migrations.findIndex((name) => name.includes("skill-pins"));
  using sqlite = new Database(":memory:");
  for (const name of migrations.slice(0, own)) sqlite.run(readFileSync(join(folder, name), "utf8"));
  sqlite.run("PRAGMA foreign_keys = OFF");
  const requires = { secrets: ["A", "B"], hosts: ["a.example", "b.example:1"], tools: ["now"] };
  const add = sqlite.prepare("INSERT INTO installed_skills VALUES ('i', ?, '1', 'd', 'upload', 7, ?, 'x', ?, 5)");
  add.run("full", JSON.stringify(requires), JSON.stringify(Object.fromEntries(FILES)));
  add.run("bare", JSON.stringify({ secrets: [], hosts: [], tools: [] }), "{}");
  sqlite.run(readFileSync(join(folder, migrations[own] ?? ""), "utf8"));
  const columns = "name, installed_at, requires, secret_hosts, sha256, text_bytes, files";
  const rows = sqlite.query(`SELECT ${columns} FROM installed_skills ORDER BY name DESC`).values();
  const hosts = JSON.stringify({ A: requires.hosts, B: requires.hosts });
  expect(rows).toEqual([
    ["full", 7, JSON.stringify(requires), hosts, null, 5, JSON.stringify(Object.fromEntries(FILES))],
    ["bare", 7, expect.any(String), "{}", null, 5, "{}"],
  ]);

  await using room = openRoom();
  room.skills.install(room.instanceId, { files: FILES });
  room.ground.store.sqlite.run("UPDATE installed_skills SET sha256 = NULL");
  const restarted = createSkills(room.parts);
  expect(restarted.list(room.instanceId, null, 10).map(({ sha256 }) => sha256)).toEqual([fingerprint(FILES)]);
  expect(restarted.instructions(room.instanceId, "own")).toBe("Do it.");
});
