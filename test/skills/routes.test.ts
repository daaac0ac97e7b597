import { expect, test } from "bun:test";
import { type Caller, SCOPES, type Scope } from "../../src/limits/caller.ts";
import { loadCatalog } from "../../src/skills/catalog.ts";
import { fingerprint } from "../../src/skills/fingerprint.ts";
import { skillRoutes } from "../../src/skills/routes.ts";
import { createSkills } from "../../src/skills/skills.ts";
import { openGround, serve } from "../support/route-harness.ts";

const GITHUB = `---
name: github
description: Reads issues.
license: MIT
metadata:
  version: "1.2.0"
  tags: "development issues"
  requires-secrets: "GITHUB_TOKEN GITHUB_USER"
  requires-hosts: "api.github.com"
  requires-tools: "http_request"
---
Ask the API.
`;
const skill = (name: string) => `---\nname: ${name}\ndescription: Does ${name}.\n---\nDo ${name}.\n`;
const CATALOG = new Map([
  ["github/SKILL.md", GITHUB],
  ["github/references/api.md", "notes"],
  ...["alpha", "beta", "delta", "zeta"].map((name): [string, string] => [`${name}/SKILL.md`, skill(name)]),
]);

function openRoom() {
  const ground = openGround();
  const catalog = loadCatalog(undefined, () => CATALOG);
  const secretNames: string[] = [];
  const skills = createSkills({ ...ground, catalog, secretNames: () => secretNames, toolNames: () => ["now"] });
  const server = serve(skillRoutes(catalog, skills, ground.instances), ground);
  const owner = ground.account();
  const { instanceId } = ground.instances.create(owner, "one");
  const path = `/v1/instances/${instanceId}/skills`;
  return {
    ...server,
    ground,
    secretNames,
    owner,
    instanceId,
    path,
    post: (body: unknown) => server.send(owner, "POST", path, body),
    names: () => skills.list(instanceId, null, 1000).map(({ name }) => name),
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await ground[Symbol.asyncDispose]();
    },
  };
}

const withScopes = (caller: Caller, ...scopes: Scope[]): Caller => ({ ...caller, scopes: new Set(scopes) });
const UNKNOWN = "inst_019378a0000070008000000000000000";
const GITHUB_RECORD = {
  name: "github",
  description: "Reads issues.",
  version: "1.2.0",
  license: "MIT",
  tags: ["development", "issues"],
  requires: { secrets: ["GITHUB_TOKEN", "GITHUB_USER"], hosts: ["api.github.com"], tools: ["http_request"] },
  secretHosts: { GITHUB_TOKEN: ["api.github.com"], GITHUB_USER: ["api.github.com"] },
  sha256: fingerprint(
    new Map([
      ["SKILL.md", GITHUB],
      ["references/api.md", "notes"],
    ]),
  ),
};

test("the catalog is open to all, paged by name", async () => {
  await using room = openRoom();
  const seen: string[] = [];
  let query = "?limit=2";
  for (let page = 0; page < 3; page++) {
    const { status, body } = await room.send(null, "GET", `/v1/skills${query}`);
    expect(status).toBe(200);
    seen.push(...body.data.map(({ name }: { name: string }) => name));
    expect(body.hasMore).toBe(page < 2);
    expect(body.nextCursor === null).toBe(page === 2);
    query = `?limit=2&after=${body.nextCursor}`;
  }
  expect(seen).toEqual(["alpha", "beta", "delta", "github", "zeta"]);
  const { body } = await room.send(null, "GET", "/v1/skills");
  expect(body.data[3]).toEqual(GITHUB_RECORD);
  expect(body.data[0]).toMatchObject({
    license: null,
    version: "1.0.0",
    requires: { secrets: [], hosts: [], tools: [] },
  });
});

test("one skill of the catalog comes with its instructions and the names of its files: 200, unknown 404", async () => {
  await using room = openRoom();
  const { status, body } = await room.send(null, "GET", "/v1/skills/github");
  expect(status).toBe(200);
  expect(body).toEqual({ ...GITHUB_RECORD, instructions: body.instructions, files: ["SKILL.md", "references/api.md"] });
  expect(body.instructions.trim()).toBe("Ask the API.");
  for (const name of ["unknown", "constructor", "..", "%2e%2e%2fgithub"]) {
    expect((await room.send(null, "GET", `/v1/skills/${name}`)).status).toBe(404);
  }
});

test("a limit out of range, or another list's cursor: 400", async () => {
  await using room = openRoom();
  await room.post({ name: "alpha" });
  await room.post({ name: "beta" });
  const { body } = await room.send(null, "GET", "/v1/skills?limit=1");
  for (const query of ["limit=0", "limit=101", "limit=x", "after=", "after=x"]) {
    expect((await room.send(null, "GET", `/v1/skills?${query}`)).status).toBe(400);
    expect((await room.send(room.owner, "GET", `${room.path}?${query}`)).status).toBe(400);
  }
  expect((await room.send(room.owner, "GET", `${room.path}?after=${body.nextCursor}`)).status).toBe(400);
});

test("a skill from the catalog is installed by name: 201 with the record; again 409", async () => {
  await using room = openRoom();
  const { status, body } = await room.post({ name: "github" });
  expect(status).toBe(201);
  expect(body).toEqual({
    name: "github",
    version: "1.2.0",
    description: "Reads issues.",
    source: "catalog",
    installedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    requires: GITHUB_RECORD.requires,
    secretHosts: GITHUB_RECORD.secretHosts,
    sha256: GITHUB_RECORD.sha256,
    missingSecrets: ["GITHUB_TOKEN", "GITHUB_USER"],
    missingTools: ["http_request"],
  });
  const again = await room.post({ name: "github" });
  expect([again.status, again.body.error.code]).toEqual([409, "conflict"]);
  expect((await room.send(room.owner, "GET", room.path)).body).toEqual({
    data: [body],
    hasMore: false,
    nextCursor: null,
  });
});

test("if two install the same at once, one gets 201 and one 409", async () => {
  await using room = openRoom();
  const statuses = (await Promise.all([room.post({ name: "alpha" }), room.post({ name: "alpha" })])).map(
    ({ status }) => status,
  );
  expect(statuses.sort()).toEqual([201, 409]);
});

test("missing secrets are shown live: a stored one no longer, a deleted one again", async () => {
  await using room = openRoom();
  room.secretNames.push("GITHUB_USER", "OTHER");
  expect((await room.post({ name: "github" })).body.missingSecrets).toEqual(["GITHUB_TOKEN"]);
  const missing = async () => (await room.send(room.owner, "GET", room.path)).body.data[0].missingSecrets;
  room.secretNames.push("GITHUB_TOKEN");
  expect(await missing()).toEqual([]);
  room.secretNames.length = 0;
  expect(await missing()).toEqual(["GITHUB_TOKEN", "GITHUB_USER"]);
});

test("a custom skill is installed from its files, under the name in its front matter: 201; again 409", async () => {
  await using room = openRoom();
  const files = { "SKILL.md": GITHUB.replace("name: github", "name: my-own"), "scripts/a b.js": "1" };
  const { status, body } = await room.post({ files });
  expect(status).toBe(201);
  expect(body).toMatchObject({ name: "my-own", version: "1.2.0", source: "upload" });
  expect(body.missingSecrets).toEqual(["GITHUB_TOKEN", "GITHUB_USER"]);
  expect((await room.post({ files })).status).toBe(409);
});

test("a custom skill may take the place of a built-in one that is not installed", async () => {
  await using room = openRoom();
  const { status, body } = await room.post({ files: { "SKILL.md": skill("alpha") } });
  expect([status, body.source]).toEqual([201, "upload"]);
  expect((await room.post({ name: "alpha" })).status).toBe(409);
});

test("a name that is not in the catalog: 404", async () => {
  await using room = openRoom();
  for (const name of ["unknown", "Alpha", "constructor", "../alpha"]) {
    const { status, body } = await room.post({ name });
    expect([status, body.error.code, body.error.message]).toEqual([404, "not_found", "skill not found"]);
  }
});

const own = skill("own");
const files = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`f${at}.md`, ""]));
const FILES = "files: expected an object of 1 to 64 file names, SKILL.md among them, each with its text";

test.each([
  ["nothing", {}, "body: expected either name or files"],
  ["both", { name: "alpha", files: { "SKILL.md": own } }, "body: expected either name or files"],
  ["a name that is a number", { name: 5 }, "name: expected the name of a skill of the catalog"],
  ["an empty name", { name: "" }, "name: expected the name of a skill of the catalog"],
  ["a list of files", { files: ["SKILL.md"] }, FILES],
  ["no files", { files: {} }, FILES],
  ["no SKILL.md", { files: { "skill.md": own } }, FILES],
  ["65 files", { files: { "SKILL.md": own, ...files(64) } }, FILES],
  ["a file that is no text", { files: { "SKILL.md": own, "a.md": 5 } }, /^files\.a\.md: expected text/],
  [
    "a file too large",
    { files: { "SKILL.md": own, "a.md": "é".repeat(131_073) } },
    /^files\.a\.md: expected text of at most 262144/,
  ],
  [
    "half a character",
    `{"files":{"SKILL.md":${JSON.stringify(own)},"a.md":"\\ud800"}}`,
    /^files\.a\.md: expected text/,
  ],
  ["a skill within a folder, as archives have it", { files: { "own/SKILL.md": own } }, FILES],
  [
    "a file that hides text",
    { files: { "SKILL.md": own, "a.md": "one\nt\u200Bwo" } },
    "files.a.md: expected only visible text; line 2 has U+200B (zero-width character); remove it",
  ],
  ["a path upwards", { files: { "SKILL.md": own, "../a.md": "" } }, /^files: expected a relative file name/],
  ["an absolute path", { files: { "SKILL.md": own, "/etc/a": "" } }, /^files: expected a relative file name/],
  ["names that differ by case", { files: { "SKILL.md": own, "skill.md": "" } }, /^files: expected a name that differs/],
  [
    "a file and folder of one name",
    { files: { "SKILL.md": own, a: "", "a/b": "" } },
    /^files: expected "a" to be either/,
  ],
  ["no front matter", { files: { "SKILL.md": "Do it." } }, /^files\.SKILL\.md: expected /],
  ["a bad name inside", { files: { "SKILL.md": skill("My Skill") } }, /^files\.SKILL\.md: expected name/],
])("%s: 400 that names the field, and nothing is installed", async (_, input, message) => {
  await using room = openRoom();
  const { status, body } = await room.post(input);
  expect([status, body.error.code]).toEqual([400, "invalid_request"]);
  expect(body.error.message).toMatch(message);
  expect(room.names()).toEqual([]);
});

test("64 files, one of the largest size: 201; a body over a mebibyte: 413", async () => {
  await using room = openRoom();
  const most = { "SKILL.md": own, ...files(62), "large.md": "é".repeat(131_072) };
  expect((await room.post({ files: most })).status).toBe(201);
  expect((await room.post({ files: { "SKILL.md": "x".repeat(1024 * 1024) } })).status).toBe(413);
});

test("installed skills are paged by name", async () => {
  await using room = openRoom();
  for (const name of ["zeta", "beta", "github"]) await room.post({ name });
  const first = await room.send(room.owner, "GET", `${room.path}?limit=2`);
  await room.post({ name: "alpha" });
  const second = await room.send(room.owner, "GET", `${room.path}?limit=2&after=${first.body.nextCursor}`);
  const names = [first, second].map(({ body }) => body.data.map(({ name }: { name: string }) => name));
  expect(names).toEqual([["beta", "github"], ["zeta"]]);
  expect([first.body.hasMore, second.body.hasMore]).toEqual([true, false]);
});

test("a skill is removed once: 200, then 404", async () => {
  await using room = openRoom();
  await room.post({ name: "alpha" });
  const first = await room.send(room.owner, "DELETE", `${room.path}/alpha`);
  expect([first.status, first.body]).toEqual([200, { name: "alpha", deleted: true }]);
  const second = await room.send(room.owner, "DELETE", `${room.path}/alpha`);
  expect([second.status, second.body.error.message]).toEqual([404, "skill not found"]);
  expect((await room.post({ name: "alpha" })).status).toBe(201);
});

test("an instance that does not exist, is somebody else's or is hidden from the key: 404 before the body is checked", async () => {
  await using room = openRoom();
  await room.post({ name: "alpha" });
  const other = room.ground.instances.create(room.owner, "two");
  const limited: Caller = { ...room.owner, instanceId: other.instanceId, keyId: "key_1" };
  const asked: [Caller, string][] = [
    [room.ground.account(), room.path],
    [limited, room.path],
    [room.owner, `/v1/instances/${UNKNOWN}/skills`],
    [room.owner, "/v1/instances/nonsense/skills"],
  ];
  for (const [caller, path] of asked) {
    const answers = [
      await room.send(caller, "POST", path, { name: "beta" }),
      await room.send(caller, "POST", path, {}),
      await room.send(caller, "POST", path, "{"),
      await room.send(caller, "GET", path),
      await room.send(caller, "GET", `${path}?limit=0`),
      await room.send(caller, "DELETE", `${path}/alpha`),
    ];
    for (const { status, body } of answers) {
      expect([status, body.error.code, body.error.message]).toEqual([404, "not_found", "instance not found"]);
    }
  }
  expect(room.names()).toEqual(["alpha"]);
  expect((await room.send(limited, "GET", `/v1/instances/${other.instanceId}/skills`)).status).toBe(200);
});

test("without credentials: 401; writing without the scope write: 403", async () => {
  await using room = openRoom();
  const remove = `${room.path}/alpha`;
  for (const [method, path] of [
    ["POST", room.path],
    ["GET", room.path],
    ["DELETE", remove],
  ] as const) {
    expect((await room.send(null, method, path)).status).toBe(401);
  }
  for (const scope of SCOPES) {
    const caller = withScopes(room.owner, scope);
    const statuses = [
      await room.send(caller, "POST", room.path, { name: "alpha" }),
      await room.send(caller, "GET", room.path),
      await room.send(caller, "DELETE", remove),
    ].map(({ status }) => status);
    expect(statuses).toEqual(scope === "write" ? [201, 200, 200] : [403, 200, 403]);
  }
});
