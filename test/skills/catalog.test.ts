import { expect, test } from "bun:test";
import { loadCatalog } from "../../src/skills/catalog.ts";

const skill = (name: string) => `---\nname: ${name}\ndescription: Does ${name}.\n---\nDo ${name}.\n`;

test("every built-in skill parses, and the list is sorted by name", () => {
  const names = loadCatalog()
    .list(null, 1000)
    .map(({ skill }) => skill.name);
  expect(names.length).toBeGreaterThan(2);
  expect(names).toEqual([...names].sort());
});

test("the folder is read when it is first needed, and once", () => {
  let reads = 0;
  const catalog = loadCatalog(undefined, () => {
    reads++;
    return new Map([["a/SKILL.md", skill("a")]]);
  });
  expect(reads).toBe(0);
  catalog.get("a");
  catalog.list(null, 10);
  expect(reads).toBe(1);
});

test("a skill has only the texts of its own folder; files beside the folders are not skills", () => {
  const files = new Map([
    ["README.md", "not a skill"],
    ["a/SKILL.md", skill("a")],
    ["a/scripts/run.js", "1"],
    ["ab/SKILL.md", skill("ab")],
  ]);
  const catalog = loadCatalog(undefined, () => files);
  expect(catalog.list(null, 10).map(({ skill }) => skill.name)).toEqual(["a", "ab"]);
  expect([...catalog.get("a").texts.keys()]).toEqual(["SKILL.md", "scripts/run.js"]);
});

test("a broken skill throws, or is left out and reported", () => {
  const read = () =>
    new Map([
      ["a/SKILL.md", skill("a")],
      ["b/SKILL.md", skill("another-name")],
      ["c/notes.md", "no SKILL.md"],
    ]);
  expect(() => loadCatalog(undefined, read).list(null, 10)).toThrow('expected name to be that of the folder, "b"');
  const broken: string[] = [];
  const catalog = loadCatalog((name) => broken.push(name), read);
  expect(catalog.list(null, 10).map(({ skill }) => skill.name)).toEqual(["a"]);
  expect(broken).toEqual(["b", "c"]);
  expect(() => catalog.get("b")).toThrow("skill not found");
});
