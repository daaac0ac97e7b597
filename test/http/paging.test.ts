import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type Person, startTestServer, type TestServer } from "../support/test-server.ts";

let server: TestServer;
let owner: Person;
let instanceId: string;
let agents: string;
let agent: string;

beforeAll(async () => {
  server = await startTestServer();
  owner = await server.signUp();
  ({ instanceId } = (await owner.ask("POST", "/v1/instances", { name: "one" })).body);
  await owner.ask("POST", "/v1/instances", { name: "two" });
  await owner.ask("POST", "/v1/instances", { name: "three" });
  agents = `/v1/instances/${instanceId}/agents`;
  const files = { "b.md": "b", "a/c.md": "c", "a.md": "a" };
  const { body } = await owner.ask("POST", agents, { name: "Ada", useDefaults: false, files });
  for (const name of ["Bob", "Cyd"]) await owner.ask("POST", agents, { name, useDefaults: false });
  for (const name of ["k1", "k2", "k3"]) await owner.ask("POST", "/v1/auth/keys", { name });
  await owner.ask("POST", `/v1/instances/${instanceId}/secrets`, { secrets: { C: "3", A: "1", B: "2" } });
  agent = `${agents}/${body.agentId}`;
});
afterAll(() => server.stop());

/** Every list, with the field that identifies a row, and its order. */
const lists: [() => string, string, string[] | null][] = [
  [() => "/v1/instances", "name", ["three", "two", "one"]],
  [() => agents, "name", ["Ada", "Bob", "Cyd"]],
  [() => `${agent}/files`, "name", ["a.md", "a/c.md", "b.md"]],
  [() => "/v1/auth/keys", "name", ["k3", "k2", "k1"]],
  [() => `/v1/instances/${instanceId}/secrets`, "key", ["A", "B", "C"]],
  [() => "/v1/skills", "name", null],
];

type Row = Record<string, string>;
const pageOf = async (path: string, query: Record<string, string | number>) => {
  const { status, body } = await owner.ask("GET", `${path}?${new URLSearchParams(query as Record<string, string>)}`);
  if (status !== 200) throw new Error(`${status}: ${JSON.stringify(body)}`);
  return body as { data: Row[]; hasMore: boolean; nextCursor: string | null };
};

/** Reads a list page by page; `between` runs before each page but the first. */
async function walk(path: string, limit: () => number, between: (page: number) => unknown = () => {}): Promise<Row[]> {
  const seen: Row[] = [];
  let after: string | null = null;
  for (let page = 0; page < 1_000; page++) {
    if (page > 0) await between(page);
    const most = limit();
    const answer = await pageOf(path, { limit: most, ...(after === null ? {} : { after }) });
    expect(answer.data.length).toBeLessThanOrEqual(most);
    expect(answer.hasMore).toBe(answer.nextCursor !== null);
    seen.push(...answer.data);
    if (answer.nextCursor === null) return seen;
    expect(answer.data).toHaveLength(most);
    after = answer.nextCursor;
  }
  throw new Error("the list does not end");
}

describe("a list", () => {
  test("is the same in one page or row by row, in the same order", async () => {
    for (const [path, field, order] of lists) {
      const whole = await pageOf(path(), {});
      expect([whole.hasMore, whole.nextCursor]).toEqual([false, null]);
      const names = whole.data.map((row) => row[field]);
      if (order) expect(names).toEqual(order);
      expect((await walk(path(), () => 1)).map((row) => row[field])).toEqual(names);
      expect((await walk(path(), () => 2)).map((row) => row[field])).toEqual(names);
      expect((await pageOf(path(), { limit: names.length })).hasMore).toBe(false);
    }
  });

  test.each(["0", "101", "-1", "1.5", "ten", "", "1e2", "0x10", "99999999999", " 5", "５"])(
    "refuses a limit of %p",
    async (limit) => {
      for (const [path] of lists) {
        const { status, body } = await owner.ask("GET", `${path()}?limit=${encodeURIComponent(limit)}`);
        expect([status, body.error?.message]).toEqual([400, "limit: expected a whole number from 1 to 100"]);
      }
    },
  );

  test.each(["1", "100"])("accepts a limit of %s", async (limit) => {
    for (const [path] of lists) expect((await owner.ask("GET", `${path()}?limit=${limit}`)).status).toBe(200);
  });

  test("accepts only its own cursors", async () => {
    const cursors = await Promise.all(
      lists.map(async ([path]) => (await pageOf(path(), { limit: 1 })).nextCursor ?? ""),
    );
    const nonsense = [
      "",
      "x",
      "AAAA",
      "inst_1",
      "%00",
      "null",
      "=".repeat(10),
      Buffer.from("0000000:").toString("base64url"),
    ];
    for (const [at, [path]] of lists.entries()) {
      const own = cursors[at] ?? "";
      const others = cursors.filter((cursor) => cursor !== own);
      for (const after of [...others, ...nonsense, `${own}A`, `${own}=`, own.slice(0, 8), ` ${own}`]) {
        const { status, body } = await owner.ask("GET", `${path()}?limit=1&after=${encodeURIComponent(after)}`);
        expect([path(), after, status, body.error?.message]).toEqual([
          path(),
          after,
          400,
          "after: expected a nextCursor of this list",
        ]);
      }
      expect((await owner.ask("GET", `${path()}?limit=1&after=${own}`)).status).toBe(200);
    }
  });

  test("refuses a cursor of another account, another parent or another filter", async () => {
    const stranger = await server.signUp();
    for (const name of ["x", "y"]) await stranger.ask("POST", "/v1/instances", { name });
    const theirs = (await stranger.ask("GET", "/v1/instances?limit=1")).body.nextCursor;
    const own = (await pageOf("/v1/instances", { limit: 1 })).nextCursor;
    const running = (await pageOf("/v1/instances", { limit: 1, status: "running" })).nextCursor;
    const ofAda = (await pageOf(`${agent}/files`, { limit: 1 })).nextCursor;
    const { data } = await pageOf(agents, {});
    const bob = `${agents}/${data[1]?.agentId}/files`;
    for (const path of [
      `/v1/instances?after=${theirs}`,
      `/v1/instances?after=${running}`,
      `/v1/instances?status=running&after=${own}`,
      `${bob}?after=${ofAda}`,
    ]) {
      expect((await owner.ask("GET", path)).status).toBe(400);
    }
  });

  test("continues after a row that is gone by now", async () => {
    const { body } = await owner.ask("POST", "/v1/auth/keys", { name: "gone" });
    const first = await pageOf("/v1/auth/keys", { limit: 1 });
    expect(first.data[0]?.name).toBe("gone");
    await owner.ask("DELETE", `/v1/auth/keys/${body.keyId}`);
    const next = await pageOf("/v1/auth/keys", { limit: 1, after: first.nextCursor ?? "" });
    expect(next.data[0]?.name).toBe("k3");
  });
});

describe("to which rows are added shows every earlier row exactly once:", () => {
  const plan = fc.record({
    rows: fc.integer({ min: 0, max: 7 }),
    limits: fc.infiniteStream(fc.integer({ min: 1, max: 4 })),
    added: fc.infiniteStream(fc.integer({ min: 0, max: 2 })),
  });
  const kinds: [string, (person: Person) => Promise<string>, object, string][] = [
    ["API keys, newest first", () => Promise.resolve("/v1/auth/keys"), {}, "keyId"],
    ["instances, newest first", () => Promise.resolve("/v1/instances"), { name: "x" }, "instanceId"],
    [
      "agents, oldest first",
      async (person) => {
        const { body } = await person.ask("POST", "/v1/instances", { name: "x" });
        return `/v1/instances/${body.instanceId}/agents`;
      },
      { name: "x", useDefaults: false },
      "agentId",
    ],
  ];
  test.each(kinds)("%s", async (_, pathOf, input, idField) => {
    await fc.assert(
      fc.asyncProperty(plan, async ({ rows, limits, added }) => {
        owner = await server.signUp();
        const path = await pathOf(owner);
        const add = async () => (await owner.ask("POST", path, input)).body[idField] as string;
        const before: string[] = [];
        for (let at = 0; at < rows; at++) before.push(await add());
        let adding = 12;
        const seen = await walk(
          path,
          () => limits.next().value as number,
          async () => {
            for (let left = added.next().value as number; left > 0 && adding > 0; left--, adding--) await add();
          },
        );
        const ids = seen.map((row) => row[idField] ?? "");
        expect(new Set(ids).size).toBe(ids.length);
        expect(before.filter((id) => !ids.includes(id))).toEqual([]);
      }),
      { numRuns: 12 },
    );
  });
});
