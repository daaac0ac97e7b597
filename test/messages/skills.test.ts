import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { type Conversation, startConversation } from "./conversation.ts";

let it: Conversation;
beforeAll(async () => {
  it = await startConversation();
});
afterAll(() => it.stop());
beforeEach(() => it.begin());

const OWN = "---\nname: own\ndescription: Sorts socks.\n---\nPair them by colour.\n";
const reading = (input: object) => ({
  kind: "tools" as const,
  text: "",
  calls: [{ id: "c1", name: "read_skill", arguments: input }],
});

test("a model with tools is told a skill's name and description, and reads the rest when it needs it", async () => {
  const skills = `/v1/instances/${it.instance}/skills`;
  const files = { "SKILL.md": OWN, "references/socks.md": "Wool first." };
  expect((await it.person.ask("POST", skills, { files })).status).toBe(201);
  it.when("sort", reading({ name: "own" }), { kind: "text", tokens: ["Sorted."] });
  expect((await it.send("sort")).body.message).toBe("Sorted.");
  const [first, second] = it.mock.requests.slice(-2).map(({ body }) => body);
  expect(first.tools.map(({ function: { name } }: { function: { name: string } }) => name)).toContain("read_skill");
  expect(first.messages[0].content).toContain("first read it with read_skill, then follow it:\n- own: Sorts socks.\n");
  expect(JSON.stringify(first.messages)).not.toContain("colour");
  expect(second.messages.at(-1).content).toBe("Pair them by colour.\n\nFiles of this skill: references/socks.md");

  it.when("wool", reading({ name: "own", file: "references/socks.md" }), { kind: "text", tokens: ["Wool."] });
  await it.send("wool");
  expect(it.mock.requests.at(-1)?.body.messages.at(-1).content).toBe("Wool first.");

  await it.person.ask("DELETE", `${skills}/own`);
  it.when("gone", reading({ name: "own" }), { kind: "text", tokens: ["Gone."] });
  await it.send("gone");
  const { messages } = it.mock.requests.at(-1)?.body ?? {};
  expect(messages.at(-1).content).toContain('there is no skill "own"; none is installed');
  expect(messages[0].content).not.toContain("Sorts socks");
});
