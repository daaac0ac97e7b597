import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { loadCatalog } from "../../src/skills/catalog.ts";
import { skillQueries } from "../../src/skills/queries.ts";
import { createSkills, MAX_SKILL_TEXT_BYTES, MAX_SKILLS } from "../../src/skills/skills.ts";
import { plansOf } from "../support/query-plans.ts";
import { openGround } from "../support/route-harness.ts";

const skill = (name: string, body = `Do ${name}.`) => `---\nname: ${name}\ndescription: Does ${name}.\n---\n${body}\n`;
const upload = (name: string, body?: string) => ({ files: new Map([["SKILL.md", skill(name, body)]]) });

function openRoom(catalogFiles: Record<string, string> = {}) {
  const ground = openGround();
  const files = new Map(Object.entries(catalogFiles));
  const catalog = () => loadCatalog(undefined, () => files);
  const owner = ground.account();
  const parts = { ...ground, secretNames: () => [], toolNames: () => [] };
  return {
    ground,
    files,
    owner,
    instanceId: ground.instances.create(owner, "one").instanceId,
    skills: createSkills({ ...parts, catalog: catalog() }),
    /** The same data with a catalog that was read again. */
    upgraded: () => createSkills({ ...parts, catalog: catalog() }),
    [Symbol.asyncDispose]: () => ground[Symbol.asyncDispose](),
  };
}

/** What a prompt gets of a skill: its line, and its text when there is room. */
const told = ({ skills, instanceId }: Pick<ReturnType<typeof openRoom>, "skills" | "instanceId">) =>
  skills
    .outline(instanceId)
    .map(({ name, description }) => [name, description, skills.instructions(instanceId, name).trim()]);

test("the prompt gets name, description and instructions of the installed skills, by name", async () => {
  await using room = openRoom({ "b/SKILL.md": skill("b") });
  room.skills.install(room.instanceId, { name: "b" });
  room.skills.install(room.instanceId, upload("a", "# A\n\nFirst this."));
  expect(told(room)).toEqual([
    ["a", "Does a.", "# A\n\nFirst this."],
    ["b", "Does b.", "Do b."],
  ]);
  expect(room.skills.outline(room.instanceId).map(({ bytes }) => bytes)).toEqual([16, 5]);
  expect(() => room.skills.instructions(room.instanceId, "c")).toThrow("skill not found");
});

test("an installed skill does not change when the catalog does", async () => {
  await using room = openRoom({ "b/SKILL.md": skill("b", "Old.") });
  room.skills.install(room.instanceId, { name: "b" });
  room.files.set("b/SKILL.md", skill("b", "New."));
  const after = room.upgraded();
  expect(after.instructions(room.instanceId, "b").trim()).toBe("Old.");
  after.remove(room.instanceId, "b");
  after.install(room.instanceId, { name: "b" });
  expect(after.instructions(room.instanceId, "b").trim()).toBe("New.");
});

test("all files of a skill are kept unchanged", async () => {
  await using room = openRoom({ "b/SKILL.md": skill("b"), "b/scripts/run.js": "1 + 1" });
  room.skills.install(room.instanceId, { name: "b" });
  const [kept] = room.ground.store.sqlite.query<{ files: string }, []>("SELECT files FROM installed_skills").all();
  expect(JSON.parse(kept?.files ?? "")).toEqual({ "SKILL.md": skill("b"), "scripts/run.js": "1 + 1" });
});

test("an instance takes 100 skills and refuses one more", async () => {
  await using room = openRoom();
  room.ground.store.transaction(() => {
    for (let at = 0; at < MAX_SKILLS; at++) room.skills.install(room.instanceId, upload(`skill-${at}`));
  });
  const refusal = expect.objectContaining({
    code: "conflict",
    message: "skills: expected at most 100 for an instance; this would make it 101",
  });
  expect(() => room.skills.install(room.instanceId, upload("one-more"))).toThrow(refusal);
  // That it is already installed is reported first.
  expect(() => room.skills.install(room.instanceId, upload("skill-7"))).toThrow("is installed already");
  expect(room.skills.list(room.instanceId, null, 1000)).toHaveLength(MAX_SKILLS);
});

test("an instance takes 16 MiB of skill text, counted in bytes of all its files, and refuses one byte more", async () => {
  await using room = openRoom();
  const install = (name: string, bytes: number) => {
    const files = new Map([["SKILL.md", skill(name)]]);
    // Two bytes a letter, and line breaks and quotes, which JSON would make longer.
    const rest = bytes - Buffer.byteLength(skill(name));
    files.set("notes.md", 'é\n"x'.repeat(Math.floor(rest / 5)) + "x".repeat(rest % 5));
    room.skills.install(room.instanceId, { files });
  };
  const used = () =>
    room.ground.store.sqlite.query<{ used: number }, []>("SELECT sum(text_bytes) AS used FROM installed_skills").get()
      ?.used;
  for (let at = 0; at < 16; at++) install(`skill-${at}`, 1024 * 1024);
  expect(used()).toBe(MAX_SKILL_TEXT_BYTES);
  const quota = "bytes of skill text: expected at most 16777216 for an instance; this would make it 16778216";
  expect(() => install("one-more", 1_000)).toThrow(expect.objectContaining({ code: "conflict", message: quota }));
  expect(used()).toBe(MAX_SKILL_TEXT_BYTES);
  room.skills.remove(room.instanceId, "skill-3");
  install("one-more", 1_000);
  expect(used()).toBe(MAX_SKILL_TEXT_BYTES - 1024 * 1024 + 1_000);
});

test("neither the quota nor a prompt's outline reads a skill's text", async () => {
  await using room = openRoom();
  const { store } = room.ground;
  const plans = plansOf(store, () => {
    const table = skillQueries(store.db);
    table.used(room.instanceId);
    table.outline(room.instanceId);
  });
  expect(plans).toContain("SEARCH installed_skills USING COVERING INDEX installed_skill_sizes (instance_id=?)");
  expect(plans.filter((plan) => plan.startsWith("SCAN"))).toEqual([]);
});

test("neither what skills require nor whether all are pinned is found by reading texts", async () => {
  await using room = openRoom();
  const { store } = room.ground;
  const plans = plansOf(store, () => {
    const table = skillQueries(store.db);
    table.requirements(room.instanceId);
    table.unpinned();
  });
  expect(plans).toEqual([
    "SEARCH installed_skills USING INDEX installed_skill_sizes (instance_id=?)",
    "SCAN installed_skills USING INDEX unpinned_skills",
  ]);
});

test("the texts of skills that were installed before the quota count towards it", () => {
  const folder = join(import.meta.dir, "../../src/storage/migrations");
  const migrations = readdirSync(folder).sort();
  const own = migrations.findIndex((name) => name.includes("skill-sizes"));
  using sqlite = new Database(":memory:");
  for (const name of migrations.slice(0, own)) sqlite.run(readFileSync(join(folder, name), "utf8"));
  sqlite.run("PRAGMA foreign_keys = OFF");
  const files = JSON.stringify({ "SKILL.md": skill("a"), "notes.md": 'é\n"🎈' });
  sqlite.run("INSERT INTO installed_skills VALUES ('i', 'a', '1', 'd', 'upload', 0, '{}', 'x', ?)", [files]);
  sqlite.run(readFileSync(join(folder, migrations[own] ?? ""), "utf8"));
  const bytes = Buffer.byteLength(skill("a")) + 2 + 1 + 1 + 4;
  expect(sqlite.query("SELECT text_bytes FROM installed_skills").get()).toEqual({ text_bytes: bytes });
});
