import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { embeddedFolder, readEmbeddedFolder } from "../../src/lib/embedded-folder.ts";
import { findHidden } from "../../src/lib/hidden-characters.ts";
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

/** Of an agent (docs/contract/runtime.md, Tools), and those that a host may add. */
const TOOLS = "list_files read_file write_file edit_file delete_file web_fetch http_request run_javascript now".split(
  " ",
);

test("the catalog holds the skills that the documentation lists", async () => {
  const readme = await Bun.file(join(embeddedFolder("skills"), "README.md")).text();
  const listed = Array.from(readme.matchAll(/^\| \[`([a-z-]+)`\]\(\1\/SKILL\.md\) \|/gm), ([, name]) => name);
  expect(listed).toEqual(folders.toSorted());
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
    const links = [...skill.instructions.matchAll(/\]\((?!https?:|<)([^)#]+)\)/g)].map((match) => match[1] ?? "");
    expect(links.filter((link) => !files.has(link))).toEqual([]);
    expect(skill.files.filter((name) => name.startsWith("references/") && !links.includes(name))).toEqual([]);
  });

  test("ties each of its secrets to hosts, and writes its placeholder", () => {
    const placeholders = new Set(Array.from(skill.instructions.matchAll(/\{\{secret:(\w+)\}\}/g), ([, name]) => name));
    for (const name of skill.requires.secrets) {
      expect(skill.secretHosts[name]).not.toBeEmpty();
      expect(placeholders).toContain(name);
    }
  });

  test("requires the tools that it tells the agent to call, and no others", () => {
    const told = Array.from(skill.instructions.matchAll(/`([a-z]+(?:_[a-z]+)*)`/g), ([, name]) => name ?? "");
    const called = TOOLS.filter((tool) => told.includes(tool));
    expect(called.toSorted()).toEqual(skill.requires.tools.toSorted());
  });

  test("calls each of its scripts by name, and no others", () => {
    const called = Array.from(skill.instructions.matchAll(/skill:([a-z-]+\/[a-z-]+\.js)/g), ([, script]) => script);
    const scripts = skill.files.flatMap((file) => /^scripts\/(.+)$/.exec(file)?.[1] ?? []);
    expect([...new Set(called)].sort()).toEqual(scripts.map((script) => `${folder}/${script}`));
  });

  test("gives every call as JSON", () => {
    const blocks = Array.from(
      skill.instructions.matchAll(/^ *```json\n([\s\S]*?)^ *```$/gm),
      ([, block]) => block ?? "",
    );
    for (const block of blocks) expect(() => JSON.parse(block)).not.toThrow();
  });

  test("hides nothing from whoever reads it", () => {
    for (const text of files.values()) expect(findHidden(text)).toBeUndefined();
  });
});
