import { expect, test } from "bun:test";
import type { ListedTool } from "../../src/mcp/client.ts";
import { readListing } from "../../src/mcp/listing.ts";

const toolOf = (name: string, description = "Does it."): ListedTool => ({
  ...{ name, description, inputSchema: { type: "object" } },
});

/** What is read of a list, and the definitions that were searched for secrets. */
async function read(tools: ListedTool[]) {
  const searched: string[] = [];
  const listing = await readListing(tools, {
    server: "docs",
    async redact(text) {
      if (text.startsWith("{")) searched.push(text);
      return text.replace("s3cret", "[secret TOKEN]");
    },
  });
  return { ...listing, searched };
}

test("what is left out for its name or its size is not searched for secrets", async () => {
  const again = Array.from({ length: 1_000 }, () => toolOf("one"));
  expect((await read(again)).searched.length).toBe(1);
  const large = Array.from({ length: 1_000 }, (_, at) => toolOf(`tool_${at}`, "x".repeat(7_900)));
  const { searched, tools } = await read(large);
  expect([searched.length, tools.length]).toEqual([32, 32]);
});

test("of tools that hold secrets no more is searched than is taken of a server's tools", async () => {
  const { searched, tools, notes } = await read(
    Array.from({ length: 1_000 }, (_, at) => toolOf(`tool_${at}`, `s3cret ${"x".repeat(7_900)}`)),
  );
  expect([searched.length, tools]).toEqual([32, []]);
  expect(notes).toContain("968 more tools were left out");
});

test("a tool whose name is the value of a secret is left out, and the owner is told without it", async () => {
  const { tools, notes } = await read([toolOf("s3cret")]);
  expect([tools, notes]).toEqual([[], '"[secret TOKEN]" was left out: its definition holds the value of a secret']);
});

test("a definition that is not valid Unicode is left out", async () => {
  const { tools, notes } = await read([toolOf("half", "a \ud83e b"), toolOf("whole")]);
  expect(tools.map(({ name }) => name)).toEqual(["whole"]);
  expect(notes).toBe('"half" was left out: its definition is not valid Unicode');
});
