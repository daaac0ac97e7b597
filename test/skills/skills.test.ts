import { expect, test } from "bun:test";
import { loadCatalog } from "../../src/skills/catalog.ts";
import { createSkills, MAX_SKILLS } from "../../src/skills/skills.ts";
import { openGround } from "../support/route-harness.ts";

const skill = (name: string, body = `Do ${name}.`) => `---\nname: ${name}\ndescription: Does ${name}.\n---\n${body}\n`;
const upload = (name: string, body?: string) => ({ files: new Map([["SKILL.md", skill(name, body)]]) });

function openRoom(catalogFiles: Record<string, string> = {}) {
  const ground = openGround();
  const files = new Map(Object.entries(catalogFiles));
  const catalog = () => loadCatalog(undefined, () => files);
  const owner = ground.account();
  const parts = { ...ground, secretNames: () => [] };
  return {
    ground,
    files,
    owner,
    instanceId: ground.instances.create(owner, "one").instanceId,
    skills: createSkills({ ...parts, catalog: catalog() }),
    /** The same data under a catalog that was read anew. */
    upgraded: () => createSkills({ ...parts, catalog: catalog() }),
    [Symbol.asyncDispose]: () => ground[Symbol.asyncDispose](),
  };
}

test("the prompt gets name, description and instructions of what is installed, by name", async () => {
  await using room = openRoom({ "b/SKILL.md": skill("b") });
  room.skills.install(room.instanceId, { name: "b" });
  room.skills.install(room.instanceId, upload("a", "# A\n\nFirst this."));
  const [a, b] = room.skills.promptSkills(room.instanceId);
  expect(Object.keys(a ?? {}).sort()).toEqual(["description", "instructions", "name"]);
  expect([a?.name, a?.description, a?.instructions.trim()]).toEqual(["a", "Does a.", "# A\n\nFirst this."]);
  expect([b?.name, b?.description, b?.instructions.trim()]).toEqual(["b", "Does b.", "Do b."]);
});

test("an installed skill does not change when the catalog does", async () => {
  await using room = openRoom({ "b/SKILL.md": skill("b", "Old.") });
  room.skills.install(room.instanceId, { name: "b" });
  room.files.set("b/SKILL.md", skill("b", "New."));
  const after = room.upgraded();
  expect(after.promptSkills(room.instanceId)[0]?.instructions.trim()).toBe("Old.");
  after.remove(room.instanceId, "b");
  after.install(room.instanceId, { name: "b" });
  expect(after.promptSkills(room.instanceId)[0]?.instructions.trim()).toBe("New.");
});

test("all files of a skill are kept as they came", async () => {
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
  expect(() => room.skills.install(room.instanceId, upload("one-more"))).toThrow("expected at most 100");
  expect(room.skills.list(room.instanceId, null, 1000)).toHaveLength(MAX_SKILLS);
});
