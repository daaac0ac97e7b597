import { afterAll, beforeAll, expect, test } from "bun:test";
import { LOCAL_MODEL } from "../../src/models/local-models.ts";
import { type Conversation, type Frame, startConversation } from "../messages/conversation.ts";

const NOON = Date.UTC(2026, 10, 22, 12, 0, 0);
let it: Conversation;
beforeAll(async () => {
  const clock = { now: () => NOON, monotonicNs: () => process.hrtime.bigint() };
  it = await startConversation({ ROOST_MODEL: LOCAL_MODEL }, undefined, undefined, { clock });
  // The first message waits at most 20 s for the vectors of the tools' examples: not for loading the model as well.
  const loaded = await it.person.ask("POST", "/v1/embeddings", { model: "local:all-minilm-l6-v2", input: "load" });
  expect(loaded).toMatchObject({ status: 200 });
});
afterAll(() => it.stop());

/** The answer to a message, and the calls that were made for it. */
async function ask(message: string): Promise<{ text: string; calls: [name: string, input: unknown][] }> {
  const frames: Frame[] = await (await it.stream(message)).rest();
  const started = frames.filter(({ event }) => event === "tool.started");
  const completed = frames.findLast(({ event }) => event === "message.completed");
  return {
    text: completed?.data.message.message ?? expect.unreachable(),
    calls: started.map(({ data }) => [data.name, data.input]),
  };
}

test("an agent on the embedded model knows the day, calculates, and reads its files", async () => {
  await it.person.ask("PUT", it.at("/files/shopping-list.md"), "- flour\n- lemons\n", { "Content-Type": "text/plain" });
  expect(await ask("What day is it today?")).toEqual({
    calls: [["now", {}]],
    text: "Today is Sunday, 22 November 2026.",
  });
  expect(await ask("What is 17 times 23?")).toEqual({
    calls: [["run_javascript", { code: "17 * 23" }]],
    text: "17 × 23 = 391",
  });
  expect((await ask("Which files do you have?")).text).toEndWith("\n- shopping-list.md");
  expect(await ask("What is on my shopping list?")).toEqual({
    calls: [
      ["list_files", {}],
      ["read_file", { name: "shopping-list.md" }],
    ],
    text: "shopping-list.md:\n\n- flour\n- lemons",
  });
});

test("it keeps a list, writes what it composes into a file, and deletes it", async () => {
  await it.person.ask("PUT", it.at("/files/jobs.md"), "- rent\n", { "Content-Type": "text/plain" });
  expect(await ask("Add paint and nails to my list of jobs.")).toEqual({
    calls: [
      ["list_files", {}],
      ["read_file", { name: "jobs.md" }],
      ["write_file", { name: "jobs.md", text: "- rent\n- paint\n- nails\n" }],
    ],
    text: "I have added paint and nails to jobs.md.",
  });
  const composed = await ask("Write a short poem about the sea and save it as sea.md.");
  const poem = await (await it.person.fetch("GET", it.at("/files/sea.md"))).text();
  expect(poem.length).toBeGreaterThan(20);
  expect(composed.text).toBe(`I have written this into sea.md:\n\n${poem.trim()}`);
  expect((await ask("Write 'calm' into sea.md.")).text).toStartWith("There is a file sea.md already.");
  expect((await ask("Delete sea.md.")).text).toBe("I have deleted sea.md.");
  expect(await it.person.ask("GET", it.at("/files/sea.md"))).toMatchObject({ status: 404 });
});

test("what it was told to remember answers a question in another conversation", async () => {
  expect((await ask("Remember that the plumber comes on Friday.")).text).toBe(
    "I will remember that. I have noted it in memory/2026-11-22.md.",
  );
  await it.server.app.settled();
  expect((await ask("What did I tell you about the plumber?")).text).toBe(
    "I have found this:\n- the plumber comes on Friday (memory/2026-11-22.md, line 3)",
  );
});

test("talk is answered in the model's own words", async () => {
  const { text, calls } = await ask("Hello! How was your day?");
  expect(calls).toEqual([]);
  expect(text).not.toBe("");
});

test("what its owner denies is not called, and what its owner wants to be asked about waits", async () => {
  await it.person.ask("PATCH", it.at(""), { tools: { now: "deny", list_files: "ask" } });
  expect((await ask("What day is it today?")).calls).toEqual([]);
  const runId = await it.queue("Which files do you have?");
  const asked = (await it.until("approval.requested", runId)).at(-1)?.data.approval;
  expect(asked).toMatchObject({ tool: "list_files", input: {} });
  const { approvalId, inputHash } = asked;
  await it.person.ask("POST", `/v1/approvals/${approvalId}/decision`, { decision: "approve", inputHash });
  const done = (await it.until("message.completed", runId)).at(-1);
  expect(done?.data.message.message).toStartWith("I have these files:\n");
});
