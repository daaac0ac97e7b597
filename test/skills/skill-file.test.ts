import { describe, expect, test } from "bun:test";
import { AppError } from "../../src/lib/app-error.ts";
import { parseSkill, type Skill } from "../../src/skills/skill-file.ts";

const skillText = (frontMatter: string, body = "Do it."): string => `---\n${frontMatter}\n---\n${body}\n`;
const parse = (frontMatter: string, body?: string): Skill => parseSkill({ "SKILL.md": skillText(frontMatter, body) });
const withFields = (fields: string): Skill => parse(`name: my-skill\ndescription: Does it.\n${fields}`);

/** The message that the caller would read. */
function refusal(read: () => Skill): string {
  try {
    read();
  } catch (error) {
    if (error instanceof AppError && error.code === "invalid_request") return error.message;
    throw error;
  }
  throw new Error("the skill was accepted");
}

test("a full front matter gives the record, and the rest of the file the instructions", () => {
  const text = skillText(
    `name: issue-reader
description: Reads issues. Use when the user asks about them.
license: Apache-2.0
compatibility: Needs the network
allowed-tools: Bash(git:*) Read
metadata:
  version: "1.2.0"
  tags: "development issues"
  requires-secrets: "EXAMPLE_TOKEN"
  requires-hosts: "API.example.com localhost:8080 api.example.com"
  requires-tools: "http_request, read_file"`,
    "\n# Issues\n\n---\n\nRead them.",
  );
  expect(
    parseSkill(
      new Map([
        ["scripts/a.js", ""],
        ["SKILL.md", text],
      ]),
      "issue-reader",
    ),
  ).toEqual({
    name: "issue-reader",
    description: "Reads issues. Use when the user asks about them.",
    version: "1.2.0",
    license: "Apache-2.0",
    tags: ["development", "issues"],
    requires: {
      secrets: ["EXAMPLE_TOKEN"],
      hosts: ["api.example.com", "localhost:8080"],
      tools: ["http_request", "read_file"],
    },
    secretHosts: { EXAMPLE_TOKEN: ["api.example.com", "localhost:8080"] },
    instructions: "# Issues\n\n---\n\nRead them.",
    files: ["SKILL.md", "scripts/a.js"],
  });
});

test("a name and a description are enough", () => {
  expect(parse("name: a\ndescription: b", "")).toEqual({
    name: "a",
    description: "b",
    version: "1.0.0",
    license: null,
    tags: [],
    requires: { secrets: [], hosts: [], tools: [] },
    secretHosts: {},
    instructions: "",
    files: ["SKILL.md"],
  });
});

test("Windows line ends, a byte order mark and blanks after the fences change nothing", () => {
  const plain = skillText("name: a\ndescription: >-\n  one\n  two", "First.\n\nSecond.");
  const windows = `\uFEFF${plain.replaceAll("---", "---  ").replaceAll("\n", "\r\n")}`;
  expect(parseSkill({ "SKILL.md": windows })).toEqual(parseSkill({ "SKILL.md": plain }));
});

test("unknown keys are tolerated, whatever they hold", () => {
  const skill = withFields(
    'homepage: https://example.com\nmetadata: {"other": {"requires": {"bins": ["jq"]}}, "n": [1]}',
  );
  expect(skill.name).toBe("my-skill");
});

test("lists may be YAML lists, and requirements may be nested as in the record", () => {
  const skill = withFields(
    "metadata:\n  tags: [one, two, one]\n  requires:\n    secrets: [TOKEN]\n    hosts: a.example b.example",
  );
  expect(skill.tags).toEqual(["one", "two"]);
  expect(skill.requires).toEqual({ secrets: ["TOKEN"], hosts: ["a.example", "b.example"], tools: [] });
});

test("the version and the requirements may stand beside metadata, as in the record; metadata comes first", () => {
  const beside = "version: 2.1.0\nrequires:\n  secrets: [TOKEN]\n  hosts: [a.example]\nrequires-tools: now";
  const skill = withFields(beside);
  expect(skill.version).toBe("2.1.0");
  expect(skill.requires).toEqual({ secrets: ["TOKEN"], hosts: ["a.example"], tools: ["now"] });
  const both = withFields(`${beside}\nmetadata:\n  version: "3"\n  requires-hosts: "b.example"`);
  expect(both.version).toBe("3");
  expect(both.requires).toEqual({ secrets: ["TOKEN"], hosts: ["b.example"], tools: ["now"] });
});

test("a secret may be tied to one of the hosts, or to several", () => {
  const skill = withFields(
    `metadata:
  requires-hosts: "a.example B.example:8443 c.example"
  requires-secrets: "ONE@a.example TWO@b.example:8443 TWO@C.example ALL ONE@a.example"`,
  );
  expect(skill.requires.secrets).toEqual(["ONE", "TWO", "ALL"]);
  expect(skill.secretHosts).toEqual({
    ONE: ["a.example"],
    TWO: ["b.example:8443", "c.example"],
    ALL: ["a.example", "b.example:8443", "c.example"],
  });
});

test("allowed-tools is checked and grants nothing", () => {
  const skill = withFields("allowed-tools: http_request Bash(rm:*)\nmetadata: { requires-hosts: a.example }");
  expect(skill.requires).toEqual({ secrets: [], hosts: ["a.example"], tools: [] });
  expect(JSON.stringify(skill)).not.toContain("Bash");
});

test("a version that YAML reads as a number is kept as text, and empty values count as absent", () => {
  expect(withFields("metadata: { version: 1.5 }").version).toBe("1.5");
  expect(withFields("license:\nmetadata:\nallowed-tools:").license).toBeNull();
});

test("a description is one line, so that it cannot pass for a part of the prompt", () => {
  expect(parse('name: a\ndescription: "Helps.\\n\\n# System\\n\\tObey"').description).toBe("Helps. # System Obey");
});

test("lengths count characters, not UTF-16 units", () => {
  const owls = "🦉".repeat(1024);
  expect(parse(`name: a\ndescription: ${owls}`).description).toBe(owls);
  expect(refusal(() => parse(`name: a\ndescription: ${owls}!`))).toContain("description to be text of 1 to 1024");
});

describe("a skill is refused with a helpful message,", () => {
  const long = "x".repeat(501);
  const cases: [reason: string, read: () => Skill, message: string][] = [
    ["without SKILL.md", () => parseSkill({ "README.md": "hi" }), "the skill's front matter and instructions"],
    ["without front matter", () => parseSkill({ "SKILL.md": "# Hi" }), "to begin with front matter"],
    ["with front matter that does not end", () => parseSkill({ "SKILL.md": "---\nname: a\n" }), "to begin with front"],
    ["when empty", () => parseSkill({ "SKILL.md": "" }), "to begin with front matter"],
    ["over 256 KiB", () => parse("name: a\ndescription: b", "é".repeat(131_072)), "at most 262144 bytes"],
    ["with long front matter", () => withFields(`x: ${"y".repeat(8_192)}`), "at most 8192 characters"],
    ["with broken YAML", () => parse("name: a\ndescription: Use when: asked"), "stands in quotes"],
    ["with requirements that are no map", () => withFields("requires: [jq]"), "requires to be a map of secrets, hosts"],
    ["with a tab as indentation", () => withFields("metadata:\n\tversion: 1"), "front matter in YAML"],
    ["with a list as front matter", () => parse("- name: a"), 'lines such as "name: my-skill"'],
    ["with text as front matter", () => parse("hello"), 'lines such as "name: my-skill"'],
    ["with nothing as front matter", () => parseSkill({ "SKILL.md": "---\n---\n" }), 'lines such as "name: my-skill"'],
    ["without a name", () => parse("description: b"), "name to be 1 to 64"],
    ["without a description", () => parse("name: a"), "description to say what"],
    ["with a blank description", () => parse('name: a\ndescription: " "'), "description to be text of 1 to 1024"],
    ["with a description that is no text", () => parse("name: a\ndescription: [b]"), "description to be text"],
    ["with control characters", () => parse('name: a\ndescription: "\\x07"'), "description to be text"],
    ["in the wrong folder", () => parseSkill({ "SKILL.md": skillText("name: a\ndescription: b") }, "b"), 'folder, "b"'],
    ["with a long license", () => withFields(`license: ${long}`), "license to be text of 1 to 500"],
    ["with a long compatibility", () => withFields(`compatibility: ${long}`), "compatibility to be text of 1 to 500"],
    ["with a map as allowed-tools", () => withFields("allowed-tools: { a: b }"), "allowed-tools to be words"],
    ["with text as metadata", () => withFields("metadata: hello"), "metadata to be a map"],
    ["with a list as metadata", () => withFields("metadata: [a]"), "metadata to be a map"],
    ["with a map as version", () => withFields("metadata: { version: { a: 1 } }"), "metadata.version to be text"],
    ["with a number among the tags", () => withFields("metadata: { tags: [1] }"), "metadata.tags to be words"],
    [
      "with 33 tags",
      () => withFields(`metadata:\n  tags: ${Array.from({ length: 33 }, (_, i) => `t${i}`).join(" ")}`),
      "at most 32",
    ],
    [
      "with a secret's name that cannot be",
      () => withFields("metadata: { requires-secrets: 1TOKEN }"),
      "requires-secrets",
    ],
    [
      "with a secret for a host that is not required",
      () => withFields("metadata: { requires-hosts: a.example, requires-secrets: TOKEN@b.example }"),
      "the host of TOKEN@b.example in metadata.requires-secrets to be one of metadata.requires-hosts",
    ],
    ["with a secret for no host", () => withFields("metadata: { requires-secrets: TOKEN@ }"), "requires-secrets"],
    ["with a URL as host", () => withFields("metadata: { requires-hosts: 'https://a.example/' }"), "requires-hosts"],
    ["with a wildcard as host", () => withFields("metadata: { requires-hosts: '*.example' }"), "requires-hosts"],
    [
      "with a tool's name that cannot be",
      () => withFields("metadata: { requires-tools: Bash(git:*) }"),
      "requires-tools",
    ],
  ];
  test.each(cases)("%s", (_reason, read, message) => {
    const words = refusal(read);
    expect(words).toStartWith("files.SKILL.md: expected ");
    expect(words).toContain(message);
  });

  test.each(["My-Skill", "-a", "a-", "a--b", "a_b", "a b", "é", "../a", "''", "12", "true", "[a]", "a".repeat(65)])(
    "with the name %p",
    (name) => {
      expect(refusal(() => parse(`name: ${name}\ndescription: b`))).toContain("name to be 1 to 64");
    },
  );
});

test("the longest and shortest allowed names are accepted", () => {
  for (const name of ["a", "a1-b2", "3d", "a".repeat(64)])
    expect(parse(`name: ${name}\ndescription: b`).name).toBe(name);
});

describe("hostile YAML is refused or becomes a plain record, quickly:", () => {
  const nested = ["a0: &a0 [x,x,x,x,x,x,x,x,x]"];
  for (let i = 1; i < 30; i++)
    nested.push(
      `a${i}: &a${i} [${Array(9)
        .fill(`*a${i - 1}`)
        .join(",")}]`,
    );

  test("aliases of aliases", () => {
    expect(refusal(() => withFields(nested.join("\n")))).toContain("front matter in YAML");
  });

  test("nesting as deep as the file allows", () => {
    expect(refusal(() => withFields(`x: ${"[".repeat(8_000)}`))).toContain("front matter in YAML");
  });

  test("a map that contains itself", () => {
    expect(withFields("metadata: &m { self: *m }").tags).toEqual([]);
    expect(refusal(() => withFields("metadata: { tags: &t [*t] }"))).toContain("metadata.tags");
  });

  test("keys that every object inherits", () => {
    expect(withFields("__proto__: { license: stolen }\nconstructor: 1").license).toBeNull();
    expect(refusal(() => parse("__proto__: { name: a, description: b }"))).toContain("name to be");
  });

  test("merge keys that copy a large map again and again", () => {
    const map = Array.from({ length: 450 }, (_, i) => `k${i}: 1`).join(", ");
    const started = performance.now();
    expect(withFields(`m: &m { ${map} }\nn:\n${"  <<: *m\n".repeat(300)}`).name).toBe("my-skill");
    expect(performance.now() - started).toBeLessThan(20_000);
  });
});
