import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { embeddedFolder, readEmbeddedFolder } from "../../src/lib/embedded-folder.ts";
import { parseSkill } from "../../src/skills/skill-file.ts";

const folders = readdirSync(embeddedFolder("skills"), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map((entry) => entry.name);
const embedded = readEmbeddedFolder("skills");

const filesOf = (folder: string): Map<string, string> =>
  new Map(
    [...embedded]
      .filter(([path]) => path.startsWith(`${folder}/`))
      .map(([path, text]) => [path.slice(folder.length + 1), text]),
  );

test("the catalog holds the skills that need no tool", () => {
  expect(folders).toEqual(expect.arrayContaining(["code-review", "meeting-notes", "translation"]));
});

describe.each(folders)("the built-in skill %s", (folder) => {
  const files = filesOf(folder);
  const skill = parseSkill(files, folder);

  test("says when to use it, under which license and in which version", () => {
    expect(skill.description).toContain("Use when");
    expect(skill.license).toBe("Apache-2.0");
    expect(skill.version).toMatch(/^\d+\.\d+\.\d+$/);
    expect(skill.tags).not.toBeEmpty();
  });

  test("has steps, an example and edge cases, and is short enough for a prompt", () => {
    for (const section of ["## Steps", "## Example", "## Edge cases"]) {
      expect(skill.instructions.split("\n")).toContain(section);
    }
    // 1,500 tokens at the four characters that a token of English has.
    expect(skill.instructions.length).toBeLessThanOrEqual(6_000);
  });

  test("refers only to files that it has, and to all of them", () => {
    const links = [...skill.instructions.matchAll(/\]\((?!https?:)([^)#]+)\)/g)].map((match) => match[1] ?? "");
    expect(links.filter((link) => !files.has(link))).toEqual([]);
    expect(skill.files.filter((name) => name.startsWith("references/") && !links.includes(name))).toEqual([]);
  });

  test("names a host to which its secrets go", () => {
    if (skill.requires.secrets.length > 0) expect(skill.requires.hosts).not.toBeEmpty();
  });
});
