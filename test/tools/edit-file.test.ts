import { expect, test } from "bun:test";
import type { WorkspacePort } from "../../src/tools/ports.ts";
import type { ToolContext } from "../../src/tools/tool.ts";
import { workspaceTools } from "../../src/tools/workspace-files.ts";

/** What `edit_file` makes of a file with this content. */
async function edited(content: string, find: string, replace: string): Promise<string> {
  let after = "";
  const workspace: Pick<WorkspacePort, "edit"> = {
    async edit(_context, _name, change) {
      after = Buffer.from(change(Buffer.from(content))).toString();
    },
  };
  const tool = workspaceTools(workspace as WorkspacePort).find(({ name }) => name === "edit_file");
  await tool?.run({ name: "a.md", find, replace }, { signal: new AbortController().signal } as ToolContext);
  return after;
}

test.each([
  ["one é two", "é", "ж", "one ж two"],
  ["\ufeffone", "one", "$& two", "\ufeff$& two"],
  ["a\u{1f426}b", "\u{1f426}", "", "ab"],
])("in %j, %j becomes %j", async (content, find, replace, after) => {
  expect(await edited(content, find, replace)).toBe(after);
});

test.each([
  ["half of a pair", "\u{1f426}", "\ud83d"],
  ["half of a pair, beside its mark", "a\ufffdb", "\udc26"],
  ["what is not there", "abc", "ac"],
])("%s is not found", async (_, content, find) => {
  await expect(edited(content, find, "x")).rejects.toThrow("is not in a.md");
});

test("what occurs twice is not replaced, also where one overlaps the other", async () => {
  await expect(edited("ééé", "éé", "x")).rejects.toThrow("more than once");
});

test("a long text is looked for in one that nearly repeats it, over and over", async () => {
  // A search that compares the two at every place takes hours.
  const [part, text] = ["b".repeat(2_000_000), "b".repeat(16_000_000)];
  await expect(edited(text, `${part}a${part}`, "x")).rejects.toThrow("is not in a.md");
  expect(await edited(`${text}a${part}b`, `${part}a${part}`, "x")).toBe(`${text.slice(part.length)}xb`);
});
