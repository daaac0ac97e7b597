import { expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { createPaging, toPage } from "../../src/http/paging.ts";
import { startTestServer } from "../support/test-server.ts";

const startPage = createPaging(randomBytes(32));
const cursorOf = (list: string, position: string) => startPage(list, { limit: 1 }).cursorBehind(position);
const read = (list: string, after: string) => startPage(list, { limit: 1, after }).position;

test("a cursor returns its position in its own list, whatever that is", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), fc.string({ unit: "grapheme" }), (list, position) => {
      expect(read(list, cursorOf(list, position))).toBe(position);
    }),
  );
});

test("a cursor of another host or list, or with one changed bit, is refused", () => {
  const cursor = cursorOf("keys acct_a", "key_1");
  const elsewhere = createPaging(randomBytes(32))("keys acct_a", { limit: 1 }).cursorBehind("key_1");
  expect(() => read("keys acct_a", elsewhere)).toThrow("after: expected a nextCursor of this list");
  expect(() => read("keys acct_b", cursor)).toThrow("after: expected a nextCursor of this list");
  const bytes = Buffer.from(cursor, "base64url");
  for (let bit = 0; bit < bytes.byteLength * 8; bit++) {
    const changed = Buffer.from(bytes);
    changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    expect(() => read("keys acct_a", changed.toString("base64url"))).toThrow("nextCursor");
  }
  for (const text of [`${cursor}=`, `${cursor} `, cursor.slice(0, -1), cursor.slice(0, 16), cursor.slice(0, 8), ""]) {
    expect(() => read("keys acct_a", text)).toThrow("nextCursor");
  }
});

test("a cursor is signed with at least 96 bits, which nobody can compute without the host's key", async () => {
  const server = await startTestServer();
  try {
    const owner = await server.signUp();
    for (const name of ["one", "two", "three"]) await owner.ask("POST", "/v1/instances", { name });
    const page = async (query: string) => owner.ask("GET", `/v1/instances?limit=1${query}`);
    const { data, nextCursor } = (await page("")).body;
    const position: string = data[0].instanceId;
    const mark = Buffer.from(nextCursor, "base64url").subarray(0, -position.length);
    expect(mark.byteLength).toBeGreaterThanOrEqual(12);
    // As cursors were before there was a key: with a hash that anybody can compute.
    const known = Bun.hash.xxHash32(`instances ${owner.accountId} null\n${position}`).toString(36).padStart(7, "0");
    const forged = Buffer.from(known + position).toString("base64url");
    expect((await page(`&after=${forged}`)).status).toBe(400);
    await server.restart();
    expect((await page(`&after=${nextCursor}`)).body.data[0].name).toBe("two");
  } finally {
    await server.stop();
  }
});

test("a page shows what was asked for, and has a cursor if there is more", () => {
  const start = startPage("numbers", { limit: 2 });
  const show = (rows: number[]) => toPage(start, rows, String, (row) => row * 10);
  expect(show([1, 2])).toEqual({ data: [10, 20], hasMore: false, nextCursor: null });
  expect(show([1, 2, 3])).toEqual({ data: [10, 20], hasMore: true, nextCursor: cursorOf("numbers", "2") });
  expect(show([])).toEqual({ data: [], hasMore: false, nextCursor: null });
});
