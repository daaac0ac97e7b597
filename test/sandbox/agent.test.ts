import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Conversation, startConversation } from "../messages/conversation.ts";

let talk: Conversation;
beforeAll(async () => {
  talk = await startConversation();
});
afterAll(() => talk.stop());

/** The model calls the tool with this, then answers; returns what it was told. */
async function call(input: object): Promise<{ output: string; isError: boolean; offered: string[] }> {
  await talk.begin();
  talk.when(
    "Compute",
    { kind: "tools", calls: [{ name: "run_javascript", arguments: input }] },
    { kind: "text", tokens: ["Done."] },
  );
  expect((await talk.send("Compute")).body.message).toBe("Done.");
  const frames = await talk.until("run.completed");
  const { data } = frames.find(({ event }) => event === "tool.completed") ?? expect.unreachable();
  const asked = talk.mock.requests.at(-1)?.body;
  const told = asked.messages.findLast(({ role }: { role: string }) => role === "tool").content;
  expect(told).toContain(data.output);
  const offered = asked.tools.map((tool: { function: { name: string } }) => tool.function.name);
  return { output: data.output, isError: data.isError, offered };
}

test("an agent runs JavaScript, and its model gets the result and the console", async () => {
  const code = "console.log('adding', input.length);\ninput.reduce((sum, one) => sum + one, 0)";
  expect(await call({ code, input: [1, 2, 39] })).toEqual({
    output: "result: 42\nconsole:\nadding 3",
    isError: false,
    offered: expect.arrayContaining(["now", "run_javascript"]),
  });
});

test("the model gets what a script threw, and where", async () => {
  const { output, isError } = await call({ code: "const all = null;\n\nall.length" });
  expect(isError).toBe(true);
  expect(output).toBe(
    "TypeError: cannot read property 'length' of null\n    at <eval> (script.js:3:4)\nline 3: all.length",
  );
});

test("the level that was found is in /readyz and in the metrics", async () => {
  const { body } = await talk.server.ask("GET", "/readyz");
  expect(body).toEqual({ status: "ready", sandbox: "landlock" });
  const metrics = (await talk.server.ask("GET", "/metrics")).body as string;
  expect(metrics).toContain('roost_sandbox{level="landlock"} 1');
  expect(metrics).toMatch(/^roost_scripts_total\{ending="result"\} [1-9]/m);
});
