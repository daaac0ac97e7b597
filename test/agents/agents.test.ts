import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import fs from "node:fs";
import { join } from "node:path";
import { readDefaultFiles } from "../../src/agents/default-files.ts";
import { handClock, MINUTE } from "../lib/hand-clock.ts";
import { type Person, startTestServer, type TestServer } from "../support/test-server.ts";

const clock = handClock();
let server: TestServer;
let owner: Person;
let stranger: Person;
let instanceId: string;
let agents: string;

beforeAll(async () => {
  server = await startTestServer({}, { clock });
  owner = await server.signUp();
  stranger = await server.signUp();
});
beforeEach(async () => {
  ({ instanceId } = (await owner.ask("POST", "/v1/instances", { name: "one" })).body);
  agents = `/v1/instances/${instanceId}/agents`;
});
afterAll(() => server.stop());

type Files = Record<string, string | null>;
const create = (input: object) => owner.ask("POST", agents, { name: "Ada", ...input });
/** An agent with exactly these files. */
async function made(files: Files = {}, slug = "ada"): Promise<string> {
  const { status, body } = await create({ slug, useDefaults: false, files });
  expect(status).toBe(201);
  return `${agents}/${body.agentId}`;
}
const folder = (slug = "ada") => join(server.dataDir, "instances", instanceId, "agents", slug);
const staged = () => fs.readdirSync(join(server.dataDir, "instances", instanceId, ".staging"));
const onDisk = (slug = "ada") =>
  fs.existsSync(folder(slug))
    ? (fs.readdirSync(folder(slug), { recursive: true }) as string[])
        .filter((name) => fs.statSync(join(folder(slug), name)).isFile())
        .sort()
    : null;
const defaults = Object.fromEntries(readDefaultFiles());
const KIB = 1024;

test("a change that changes nothing is refused, with all that may be changed", async () => {
  const { status, body } = await owner.ask("PATCH", await made(), {});
  expect([status, body.error.message]).toEqual([
    400,
    "body: expected at least one of name, slug, displayName, model, modelLimits, files, useDefaults, tools, heartbeat",
  ]);
});

describe("POST …/agents", () => {
  test("creates an agent with the default persona: 201 with the whole record, the files on disk", async () => {
    const { status, body } = await create({ name: " Ada Lovelace " });
    const now = new Date(clock.now()).toISOString();
    expect([status, body]).toEqual([
      201,
      {
        agentId: expect.stringMatching(/^agt_[0-9a-f]{32}$/),
        instanceId,
        name: "Ada Lovelace",
        slug: "ada-lovelace",
        displayName: "Ada Lovelace",
        model: null,
        modelLimits: { tokensPerDay: null, tokensPerMonth: null, costPerDay: null, costPerMonth: null },
        tools: {},
        heartbeat: null,
        createdAt: now,
        updatedAt: now,
        files: defaults,
      },
    ]);
    expect(Object.keys(defaults)).toContain("SOUL.md");
    expect((await owner.ask("GET", `${agents}/${body.agentId}`)).body).toEqual(body);
    expect(onDisk("ada-lovelace")).toEqual(Object.keys(defaults).sort());
    expect(staged()).toEqual([]);
    expect((await owner.ask("GET", `/v1/instances/${instanceId}`)).body.agentCount).toBe(1);
  });

  test("replaces default files of the same name, and adds the others", async () => {
    const { body } = await create({ files: { "SOUL.md": "Kind.", "notes/a.md": "\ufeffé\n" } });
    expect(body.files).toEqual({ ...defaults, "SOUL.md": "Kind.", "notes/a.md": "\ufeffé\n" });
  });

  test("with useDefaults false creates only the given files, if any", async () => {
    const { body } = await create({ useDefaults: false, files: { "a.md": "" } });
    expect(body.files).toEqual({ "a.md": "" });
    const empty = await create({ useDefaults: false });
    expect(empty.body.files).toEqual({});
    expect(onDisk(empty.body.slug)).toEqual([]);
  });

  test("takes a slug, a display name and a model, or null for none", async () => {
    const { body } = await create({ slug: "a-1", displayName: "The Countess", model: "local:x" });
    expect(body).toMatchObject({ slug: "a-1", displayName: "The Countess", model: "local:x" });
    const nulls = await create({ slug: null, displayName: null, model: null, files: null, useDefaults: null });
    expect(nulls.body).toMatchObject({ slug: "ada", displayName: "Ada", model: null, files: defaults });
  });

  test("makes a slug from the name, with a suffix if it is taken or empty", async () => {
    const slugOf = async (name: string) => (await create({ name, useDefaults: false })).body.slug;
    expect(await slugOf("Zoë Müller!")).toBe("zoe-muller");
    expect([await slugOf("Bob"), await slugOf("bob"), await slugOf("--BOB--")]).toEqual(["bob", "bob-2", "bob-3"]);
    expect([await slugOf("東京"), await slugOf("!!!")]).toEqual(["agent-1", "agent-2"]);
    const long = await slugOf("x".repeat(100));
    expect([long, await slugOf("x".repeat(100))]).toEqual(["x".repeat(63), `${"x".repeat(61)}-2`]);
  });

  test("refuses a slug that the instance has: 409, for exactly one of two at once; another instance may have it", async () => {
    const answers = await Promise.all([create({ slug: "bob" }), create({ slug: "bob" }), create({ slug: "bob" })]);
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409]);
    expect(answers.find(({ status }) => status === 409)?.body.error.code).toBe("conflict");
    expect(staged()).toEqual([]);
    expect((await owner.ask("GET", `/v1/instances/${instanceId}`)).body.agentCount).toBe(1);
    const other = (await owner.ask("POST", "/v1/instances", { name: "two" })).body.instanceId;
    expect((await owner.ask("POST", `/v1/instances/${other}/agents`, { name: "x", slug: "bob" })).status).toBe(201);
  });

  test("gives each of two at once without a slug its own", async () => {
    const answers = await Promise.all([create({}), create({}), create({})]);
    expect(answers.map(({ body }) => body.slug).sort()).toEqual(["ada", "ada-2", "ada-3"]);
  });

  const SLUG = "slug: expected 1 to 63 of a-z, 0-9 and -, not beginning with -";
  const FILES = "files: expected an object of at most 64 file names, each with its text";
  test.each([
    [{ name: undefined }, "name: expected 1 to 100 characters"],
    [{ name: "  " }, "name: expected 1 to 100 characters"],
    [{ name: "x".repeat(101) }, "name: expected 1 to 100 characters"],
    [{ displayName: "" }, "displayName: expected 1 to 100 characters"],
    ...["", "-a", "A", "a_b", "a/b", "..", "x".repeat(64), 7].map((slug): [object, string] => [{ slug }, SLUG]),
    [{ useDefaults: "yes" }, "useDefaults: expected true or false"],
    ...["gpt", [], Array.from({ length: 5 }, () => "openai:a")].map((model): [object, string] => [
      { model },
      "model: expected local:<name> or openai:<name>, a list of 1 to 4 of them, or null for the host's default",
    ]),
    [{ files: [] }, FILES],
    [{ files: "a" }, FILES],
    [{ files: Object.fromEntries(Array.from({ length: 65 }, (_, at) => [`f${at}`, ""])) }, FILES],
    [{ files: { "a.md": null } }, "files.a.md: expected text"],
    [{ files: { "a.md": { text: "x" } } }, "files.a.md: expected text"],
    [
      { files: { "a.md": "\ud800" } },
      'files: expected "a.md" to be valid Unicode text, but it contains a lone surrogate',
    ],
    [{ files: { "a.md": "x".repeat(256 * KIB + 1) } }, 'files: expected "a.md" to have at most 262144 bytes'],
    [{ files: { "a.md": "é".repeat(128 * KIB + 1) } }, 'files: expected "a.md" to have at most 262144 bytes'],
  ])("refuses %j: 400, and creates nothing", async (input, message) => {
    const { status, body } = await create(input);
    expect([status, body.error.message]).toEqual([400, message]);
    expect((await owner.ask("GET", agents)).body.data).toEqual([]);
    expect(fs.readdirSync(join(folder(), ".."))).toEqual([]);
    expect(staged()).toEqual([]);
  });

  const badNames = [
    "",
    "/a",
    "a/",
    "a//b",
    "..",
    "../a",
    "a/../b",
    ".a",
    "a/.b",
    "a\\b",
    "a\u0000",
    "é",
    "a:b",
    "x".repeat(101),
    "a/b/c/d/e/f/g/h/i",
  ];
  test.each(badNames)("refuses a file named %p", async (name) => {
    const { status, body } = await create({ files: { ok: "x", [name]: "x" } });
    expect([status, body.error.message.split(":")[0]]).toEqual([400, "files"]);
  });

  test.each([[{ a: "", A: "" }], [{ "a/b": "", a: "" }], [{ "a/b": "", "A/c": "" }], [{ "soul.md": "" }]])(
    "refuses files that clash with each other or the defaults: %j",
    async (files) => {
      expect((await create({ files })).status).toBe(400);
    },
  );

  test("takes 64 files, one of 256 KiB, eight parts deep, with names that every object has", async () => {
    const files = Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`f${at}`, `${at}`]));
    const odd = JSON.parse('{"__proto__":"p","constructor":"c","a/b/c/d/e/f/g/h":"deep"}');
    const { status, body } = await create({
      useDefaults: false,
      files: { ...files, ...odd, ["__proto__"]: "p", big: "x".repeat(256 * KIB) },
    });
    expect(status).toBe(201);
    expect(Object.keys(body.files)).toHaveLength(64);
    expect(onDisk()).toContain("__proto__");
    const read = (await owner.ask("GET", `${agents}/${body.agentId}`)).body;
    expect(read).toEqual(body);
    expect(Object.entries(read.files)).toContainEqual(["__proto__", "p"]);
  });
});

describe("GET …/agents", () => {
  test("lists the agents, oldest first, with only the names of their files", async () => {
    await made({ "b.md": "b", "a.md": "a" }, "one");
    await made({}, "two");
    const { data } = (await owner.ask("GET", agents)).body;
    expect(data.map(({ slug, files }: { slug: string; files: string[] }) => [slug, files])).toEqual([
      ["one", ["a.md", "b.md"]],
      ["two", []],
    ]);
  });
});

describe("an agent of somebody else, of another instance, or that does not exist", () => {
  test("is 404 for every request", async () => {
    const agent = await made({ "a.md": "a" });
    const other = (await owner.ask("POST", "/v1/instances", { name: "two" })).body.instanceId;
    const elsewhere = agent.replace(instanceId, other);
    const cases: [Person, string][] = [
      [stranger, agent],
      [owner, elsewhere],
      [owner, `${agents}/agt_${"0".repeat(32)}`],
    ];
    for (const [who, path] of cases) {
      const answers = await Promise.all([
        who.ask("GET", path),
        who.ask("PATCH", path, { name: "mine" }),
        who.ask("GET", `${path}/files`),
        who.ask("GET", `${path}/files/a.md`),
        who.ask("PUT", `${path}/files/a.md`, "mine"),
        who.ask("DELETE", `${path}/files/a.md`),
        who.ask("DELETE", path),
      ]);
      expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 404));
    }
    expect((await owner.ask("GET", agent)).body).toMatchObject({ name: "Ada", files: { "a.md": "a" } });
  });
});

describe("PATCH …/agents/:id", () => {
  test("changes only what is given; text sets a file, null deletes it, other files stay", async () => {
    const agent = await made({ "a.md": "a", "b.md": "b", "c/d.md": "d" });
    clock.advance(MINUTE);
    const { status, body } = await owner.ask("PATCH", agent, {
      displayName: "D",
      files: { "a.md": "A", "c/d.md": null, "e.md": "e" },
    });
    expect(status).toBe(200);
    expect(body).toMatchObject({ name: "Ada", slug: "ada", displayName: "D", model: null });
    expect(body.files).toEqual({ "a.md": "A", "b.md": "b", "e.md": "e" });
    expect(body.updatedAt).toBe(new Date(clock.now()).toISOString());
    expect(body.updatedAt > body.createdAt).toBe(true);
    expect((await owner.ask("GET", agent)).body).toEqual(body);
    expect(onDisk()).toEqual(["a.md", "b.md", "e.md"]);
    expect(fs.existsSync(join(folder(), "c"))).toBe(false);
    expect(staged()).toEqual([]);
  });

  test("sets a model and removes it again", async () => {
    const agent = await made();
    expect((await owner.ask("PATCH", agent, { model: "local:x" })).body.model).toBe("local:x");
    expect((await owner.ask("PATCH", agent, { name: "B" })).body.model).toBe("local:x");
    expect((await owner.ask("PATCH", agent, { model: null })).body.model).toBeNull();
  });

  test("with useDefaults restores the missing default files, and leaves the others", async () => {
    const agent = await made({ "SOUL.md": "Mine." });
    const { body } = await owner.ask("PATCH", agent, { useDefaults: true });
    expect(body.files).toEqual({ ...defaults, "SOUL.md": "Mine." });
    const deleting = await owner.ask("PATCH", agent, { useDefaults: true, files: { "SOUL.md": null } });
    expect(deleting.body.files["SOUL.md"]).toBeUndefined();
  });

  test("moves the folder with the slug, changes its files at the same time, and frees the old slug", async () => {
    const agent = await made({ "a.md": "a", "b.md": "b" });
    const { status, body } = await owner.ask("PATCH", agent, { slug: "eve", files: { "a.md": null, "c.md": "c" } });
    expect([status, body.slug, body.files]).toEqual([200, "eve", { "b.md": "b", "c.md": "c" }]);
    expect([onDisk(), onDisk("eve")]).toEqual([null, ["b.md", "c.md"]]);
    await made({ "new.md": "" });
    expect(onDisk()).toEqual(["new.md"]);
    expect((await owner.ask("PATCH", agent, { slug: "eve" })).status).toBe(200);
    expect(onDisk("eve")).toEqual(["b.md", "c.md"]);
  });

  test("to a slug that is taken changes nothing: 409", async () => {
    const agent = await made({ "a.md": "a" });
    await made({ "b.md": "b" }, "bob");
    const before = (await owner.ask("GET", agent)).body;
    const { status, body } = await owner.ask("PATCH", agent, { slug: "bob", name: "B", files: { "a.md": null } });
    expect([status, body.error.code]).toEqual([409, "conflict"]);
    expect((await owner.ask("GET", agent)).body).toEqual(before);
    expect([onDisk(), onDisk("bob"), staged()]).toEqual([["a.md"], ["b.md"], []]);
  });

  test.each<[object]>([
    [{ files: { "a.md": "new", "../b": "x" } }],
    [{ files: { "a.md": null, "A/b": "x", "a/c": "y" } }],
    [{ files: { "b.md": null, "A.md": "x" } }],
    [{ files: { "a.md": "new", big: "x".repeat(256 * KIB + 1) } }],
    [{ files: { "a.md/b": "x" } }],
    [{ name: "New", files: { "a.md": 7 } }],
    [{ name: "New", slug: "-" }],
    [{ name: "New", useDefaults: false }],
    [{ name: null }],
    [{ name: "New", files: Object.fromEntries(Array.from({ length: 65 }, (_, at) => [`f${at}`, ""])) }],
    [{}],
  ])("that cannot be done completely changes nothing: %j", async (change) => {
    const agent = await made({ "a.md": "a", "b.md": "b" });
    const before = (await owner.ask("GET", agent)).body;
    clock.advance(MINUTE);
    expect((await owner.ask("PATCH", agent, change)).status).toBe(400);
    expect((await owner.ask("GET", agent)).body).toEqual(before);
    expect([onDisk(), staged()]).toEqual([["a.md", "b.md"], []]);
  });

  test("may turn a file into a folder, and a folder into a file", async () => {
    const agent = await made({ a: "a", "b/c": "c" });
    const { status, body } = await owner.ask("PATCH", agent, { files: { a: null, "a/x": "x", "b/c": null, b: "b" } });
    expect([status, body.files]).toEqual([200, { "a/x": "x", b: "b" }]);
  });
});

describe("DELETE …/agents/:id", () => {
  test("removes the record and the folder; a second one is 404; the slug is free", async () => {
    const agent = await made({ "a/b.md": "b" });
    const gone = await owner.ask("DELETE", agent);
    expect([gone.status, gone.body]).toEqual([200, { agentId: agent.split("/").at(-1), deleted: true }]);
    expect(onDisk()).toBeNull();
    await server.app.settled();
    expect(staged()).toEqual([]);
    expect((await owner.ask("DELETE", agent)).status).toBe(404);
    expect((await owner.ask("GET", agent)).status).toBe(404);
    expect((await owner.ask("GET", `/v1/instances/${instanceId}`)).body.agentCount).toBe(0);
    await made({ "new.md": "" });
    expect(onDisk()).toEqual(["new.md"]);
  });
});

describe("what an operator puts into a workspace", () => {
  test("is listed and read if it is a plain file; links are never followed, by reading, writing or deleting", async () => {
    const agent = await made({ "a.md": "a" });
    const secret = join(server.dataDir, "secret.txt");
    fs.writeFileSync(secret, "SECRET");
    fs.writeFileSync(join(folder(), "plain.txt"), "plain");
    fs.symlinkSync(secret, join(folder(), "link.txt"));
    fs.symlinkSync(server.dataDir, join(folder(), "away"));
    const { body } = await owner.ask("GET", agent);
    expect(body.files).toEqual({ "a.md": "a", "plain.txt": "plain" });
    for (const name of ["link.txt", "away/secret.txt"]) {
      expect((await owner.ask("GET", `${agent}/files/${name}`)).status).toBe(404);
      expect((await owner.ask("DELETE", `${agent}/files/${name}`)).status).toBe(404);
      expect((await owner.ask("PUT", `${agent}/files/${name}`, "x")).status).toBeLessThan(500);
    }
    expect(fs.readFileSync(secret, "utf8")).toBe("SECRET");
    expect((await owner.ask("DELETE", agent)).status).toBe(200);
    expect(fs.readFileSync(secret, "utf8")).toBe("SECRET");
  });

  test("can be replaced and deleted even if it is too large to be read", async () => {
    const agent = await made();
    for (const name of ["one", "two"]) fs.writeFileSync(join(folder(), name), Buffer.alloc(300 * KIB));
    expect((await owner.ask("GET", `${agent}/files`)).body.data).toHaveLength(2);
    expect((await owner.ask("GET", agent)).body.files).toEqual({});
    expect((await owner.ask("PUT", `${agent}/files/one`, "small")).status).toBe(200);
    expect((await owner.ask("DELETE", `${agent}/files/two`)).status).toBe(200);
    expect((await owner.ask("GET", agent)).body.files).toEqual({ one: "small" });
  });
});
