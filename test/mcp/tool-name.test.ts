import { expect, test } from "bun:test";
import { isOfServer } from "../../src/lib/tool-names.ts";
import { exposedName } from "../../src/mcp/tool-name.ts";

test("a tool has its server's name in front", () => {
  expect(exposedName("docs", "search_all-now")).toBe("docs__search_all-now");
});

test("a name that is too long, or has other characters, ends with a hash and is a name of a function", () => {
  const long = ["docs__", "x".repeat(59)].join("");
  const names = [exposedName("docs", "x".repeat(59)), exposedName("docs", "a/b"), exposedName("docs", "a.b")];
  for (const name of names) expect(name).toMatch(/^docs__[A-Za-z0-9_-]+_[0-9a-f]{8}$/);
  expect(names[0]).toHaveLength(64);
  expect(names[0]).not.toBe(long);
  expect(new Set(names).size).toBe(names.length);
  const longest = exposedName("d".repeat(31), "x".repeat(128));
  expect(longest).toHaveLength(64);
  // So that an owner may say something about each.
  for (const name of [...names, longest]) expect(isOfServer(name)).toBe(true);
});
