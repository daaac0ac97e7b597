import { afterAll, beforeAll, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { type Person, startTestServer, type TestServer } from "../support/test-server.ts";

let server: TestServer;
let owner: Person;
let agents: string;
let files: string;
let agentsMade = 0;
const KIB = 1024;

beforeAll(async () => {
  server = await startTestServer();
  owner = await server.signUp();
  const { instanceId } = (await owner.ask("POST", "/v1/instances", { name: "one" })).body;
  agents = `/v1/instances/${instanceId}/agents`;
});
beforeEach(async () => {
  const input = { name: "Ada", slug: `ada-${++agentsMade}`, useDefaults: false, files: { "a.md": "a" } };
  files = `${agents}/${(await owner.ask("POST", agents, input)).body.agentId}/files`;
});
afterAll(() => server.stop());

const get = (name: string, headers = {}) => owner.ask("GET", `${files}/${name}`, undefined, headers);
const put = (name: string, text: string | Uint8Array, headers = {}) =>
  owner.ask("PUT", `${files}/${name}`, text, headers);
const remove = (name: string, headers = {}) => owner.ask("DELETE", `${files}/${name}`, undefined, headers);
const etagOf = async (name: string) => (await get(name)).headers.get("etag") ?? "";

describe("a workspace file", () => {
  test("is read as it was written, with an ETag of its content, as text that no browser runs", async () => {
    const text = "<script>alert(1)</script>\r\n\ufeffé\u{1F600}\n";
    expect((await put("page.html", text)).status).toBe(201);
    const { status, body, headers } = await get("page.html");
    expect([status, body]).toEqual([200, text]);
    expect(headers.get("etag")).toMatch(/^"[\w-]+"$/);
    expect(headers.get("content-type")).toBe("text/plain; charset=utf-8");
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("content-security-policy")).toContain("sandbox");
    await put("same.html", text);
    expect(await etagOf("same.html")).toBe(headers.get("etag") ?? "");
  });

  test("says its length before it is sent, by which its reader is charged", async () => {
    const route = server.app.routes.find(({ name }) => name === "getAgentFile");
    if (!route) throw new Error("no such route");
    await put("long.md", "é".repeat(50 * KIB));
    const { handle } = route;
    const lengths: unknown[] = [];
    const spy = spyOn(route, "handle").mockImplementation((call) => {
      const answer = handle(call);
      lengths.push(answer instanceof Response && answer.headers.get("content-length"));
      return answer;
    });
    const { headers } = await get("long.md");
    await get("long.md", { "If-None-Match": headers.get("etag") ?? "" });
    spy.mockRestore();
    expect(lengths).toEqual([String(100 * KIB), null]);
  });

  test("is created: 201; or replaced: 200; with its record and ETag", async () => {
    const created = await put("notes/b.md", "é");
    expect([created.status, created.body]).toEqual([
      201,
      { name: "notes/b.md", size: 2, updatedAt: expect.any(String) },
    ]);
    expect(created.headers.get("etag")).toBe(await etagOf("notes/b.md"));
    const replaced = await put("notes/b.md", "");
    expect([replaced.status, replaced.body.size]).toEqual([200, 0]);
    expect((await get("notes/b.md")).body).toBe("");
    const { data } = (await owner.ask("GET", files)).body;
    expect(data.map(({ name, size }: { name: string; size: number }) => [name, size])).toEqual([
      ["a.md", 1],
      ["notes/b.md", 0],
    ]);
    expect(data[1].updatedAt).toBe(replaced.body.updatedAt);
  });

  test("is deleted once, with the folders that become empty", async () => {
    await put("x/y/z.md", "z");
    const gone = await remove("x/y/z.md");
    expect([gone.status, gone.body]).toEqual([200, { name: "x/y/z.md", deleted: true }]);
    expect([(await remove("x/y/z.md")).status, (await get("x/y/z.md")).status]).toEqual([404, 404]);
    expect((await put("x", "now a file")).status).toBe(201);
  });

  test("is shown in the agent's record, whose updatedAt changes", async () => {
    const agent = files.slice(0, -"/files".length);
    const before = (await owner.ask("GET", agent)).body;
    await put("b.md", "b");
    await remove("a.md");
    const after = (await owner.ask("GET", agent)).body;
    expect(after.files).toEqual({ "b.md": "b" });
    expect(after.updatedAt >= before.updatedAt).toBe(true);
  });

  test("may have a name with spaces, dots and characters that a URL encodes", async () => {
    for (const name of ["My notes.md", "a..b", "100 - x_y.txt"]) {
      const encoded = encodeURIComponent(name);
      expect((await put(encoded, name)).body.name).toBe(name);
      expect((await get(encoded)).body).toBe(name);
    }
    expect((await put("one%2Ftwo", "x")).body.name).toBe("one/two");
  });

  test("of 256 KiB is accepted, one byte more is refused, and more than a body may hold is 413", async () => {
    expect((await put("big", "x".repeat(256 * KIB))).status).toBe(201);
    expect((await put("big", "x".repeat(256 * KIB + 1))).status).toBe(400);
    expect((await put("big", "x".repeat(1024 * KIB + 1))).status).toBe(413);
    expect((await get("big")).body).toHaveLength(256 * KIB);
  });

  test.each([
    "..%2f..%2fx",
    ".env",
    "a%2F%2Fb",
    "a%5Cb",
    "caf%C3%A9",
    "%00",
    "a%252Fb",
    "%ff",
    "x".repeat(101),
    "a/b/c/d/e/f/g/h/i",
    "a/",
  ])("cannot be named %p: 400", async (name) => {
    expect([(await get(name)).status, (await put(name, "x")).status, (await remove(name)).status]).toEqual([
      400, 400, 400,
    ]);
  });

  test.each(["A.md", "a.md/b"])("cannot have a name that clashes with a.md: %s", async (name) => {
    expect((await put(name, "x")).status).toBe(400);
    expect((await get("a.md")).body).toBe("a");
  });

  test("must be UTF-8", async () => {
    expect((await put("b", new Uint8Array([0xff, 0xfe, 0x61]))).status).toBe(400);
    expect((await get("b")).status).toBe(404);
  });
});

describe("If-Match", () => {
  test("is written or deleted if it has the version named, one of several, or any version with a star", async () => {
    expect((await put("a.md", "b", { "If-Match": await etagOf("a.md") })).status).toBe(200);
    expect((await put("a.md", "c", { "If-Match": `"x", ${await etagOf("a.md")}` })).status).toBe(200);
    const compressed = (await etagOf("a.md")).replace(/"$/, '-zstd"');
    expect((await put("a.md", "d", { "If-Match": compressed })).status).toBe(200);
    expect((await put("a.md", "e", { "If-Match": compressed })).status).toBe(412);
    expect((await put("a.md", "d", { "If-Match": "*" })).status).toBe(200);
    expect((await remove("a.md", { "If-Match": await etagOf("a.md") })).status).toBe(200);
  });

  test("is not written for another version, a weak one or a file that does not exist: 412, and nothing changes", async () => {
    const etag = await etagOf("a.md");
    for (const tag of ['"old"', "old", "", `W/${etag}`]) {
      const answer = await put("a.md", "b", { "If-Match": tag });
      expect([answer.status, answer.body.error.code]).toEqual([412, "precondition_failed"]);
      expect((await remove("a.md", { "If-Match": tag })).status).toBe(412);
    }
    expect((await put("new.md", "x", { "If-Match": "*" })).status).toBe(412);
    expect([(await get("a.md")).body, (await get("new.md")).status]).toEqual(["a", 404]);
  });

  test("is written by only one of two writers that name the same version", async () => {
    const headers = { "If-Match": await etagOf("a.md") };
    const answers = await Promise.all(["x", "y", "z"].map((text) => put("a.md", text, headers)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 412, 412]);
  });
});

describe("If-None-Match", () => {
  test("is only created, not replaced, with a star in If-None-Match", async () => {
    expect((await put("a.md", "x", { "If-None-Match": "*" })).status).toBe(412);
    expect((await put("a.md", "x", { "If-None-Match": `"old", W/${await etagOf("a.md")}` })).status).toBe(412);
    expect((await put("a.md", "x", { "If-Match": `W/${await etagOf("a.md")}` })).status).toBe(412);
    expect((await put("b.md", "b", { "If-None-Match": "*" })).status).toBe(201);
    expect((await get("a.md")).body).toBe("a");
  });

  test("is not sent again to a reader that has it: 304 without a body, for weak and strong ETags", async () => {
    const etag = await etagOf("a.md");
    for (const tag of [etag, `W/${etag}`, `"x", ${etag}`, "*"]) {
      const { status, body, headers } = await get("a.md", { "If-None-Match": tag });
      expect([status, body, headers.get("etag")]).toEqual([304, "", etag]);
    }
    expect((await get("a.md", { "If-None-Match": '"old"' })).status).toBe(200);
  });
});
