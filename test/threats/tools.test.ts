/** What is promised of every call of a tool (docs/contract/runtime.md, Agent loop), seen on the compiled binary. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Call, startWorld, type World } from "./world.ts";

const LONG = Array.from({ length: 4_000 }, (_, at) => `line ${at} of a long answer`).join("\n");

let world: World;
/** Requests that are answered once eight of them are there. */
const held: (() => void)[] = [];
const web = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  async fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname === "/long") return new Response(LONG);
    if (pathname === "/together") {
      const { promise, resolve } = Promise.withResolvers<void>();
      if (held.push(resolve) === 8) for (const letGo of held) letGo();
      await promise;
    }
    return new Response("same");
  },
});
const at = (path: string) => `http://127.0.0.1:${web.port}${path}`;
const get = (path: string): Call => ["http_request", { method: "GET", url: at(path) }];
beforeAll(async () => {
  world = await startWorld({ egress: [`127.0.0.1:${web.port}`] });
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await web.stop(true);
});

test("an output over 16,000 characters is cut with a mark, and all of it is kept as a file that the agent and its owner read", async () => {
  const agent = await world.newAgent();
  const { results } = await agent.run(["web_fetch", { url: at("/long") }]);
  const [shown = ""] = results;
  expect(shown.length).toBeLessThanOrEqual(16_000);
  const [, length, name] =
    /cut here: these are the first of (\d+) characters; all of it is in (\S+):/.exec(shown) ?? [];
  expect([Number(length) > LONG.length, name]).toEqual([true, expect.stringMatching(/^tool-output\//)]);
  const kept = await world.ask("GET", `${agent.path}/files/${name}`);
  expect([kept.status, kept.body.endsWith(LONG)]).toEqual([200, true]);
  const read = await agent.run(["read_file", { name, fromLine: 3_990, toLine: 3_991 }]);
  // It is a stranger's text still.
  expect(read.results[0]).toMatch(/<untrusted-[\s\S]*line 39\d\d of a long answer/);
  // One at the limit is whole, and no file.
  const script = `"x".repeat(${16_000 - 'result: ""'.length})`;
  const { results: whole } = await agent.run(["run_javascript", { code: script }]);
  expect([whole[0]?.length, whole[0]?.includes("cut here")]).toEqual([16_000, false]);
});

test("the third identical call with an identical result warns the model, and the fifth ends the run as loop_detected", async () => {
  const agent = await world.newAgent();
  const call: Call = ["list_files", { folder: "nowhere" }];
  const { ending, frames, results } = await agent.run(...Array.from({ length: 7 }, () => call));
  expect([ending, results.length, frames.at(-1)?.data.error]).toEqual([
    "run.failed",
    5,
    { code: "loop_detected", message: expect.stringContaining("list_files 5 times") },
  ]);
  expect(world.warnings()).toEqual([
    expect.stringContaining("You have made this call 3 times"),
    expect.stringContaining("You have made this call 4 times"),
  ]);
  // By another way to the same tool, it is the same loop.
  const named: Call = ["call_tool", { name: call[0], input: call[1] }];
  const mixed = await agent.run(call, named, call, named, call);
  expect(mixed.frames.at(-1)?.data.error?.code).toBe("loop_detected");
  // What changes is no loop.
  const other = Array.from({ length: 7 }, (_, at): Call => ["list_files", { folder: `nowhere${at}` }]);
  expect((await agent.run(...other)).ending).toBe("run.completed");
});

test("calls of a step that only read run at the same time, and one after the other as soon as one of them changes something", async () => {
  const agent = await world.newAgent();
  const reads = Array.from({ length: 8 }, (_, at) => get(`/together?${at}`));
  // None of them would be answered before the eighth has come.
  const { ending, frames } = await agent.run(reads);
  expect(ending).toBe("run.completed");
  const kinds = (all: typeof frames) => all.map(({ event }) => event).filter((event) => event.startsWith("tool."));
  expect(kinds(frames)).toEqual([...Array(8).fill("tool.started"), ...Array(8).fill("tool.completed")]);

  const mixed = await agent.run([get("/a"), ["write_file", { name: "notes.md", text: "x" }], get("/b")]);
  expect(kinds(mixed.frames)).toEqual(Array(3).fill(["tool.started", "tool.completed"]).flat());
  const order = mixed.frames.filter(({ event }) => event === "tool.completed").map(({ data }) => data.name);
  expect(order).toEqual(["http_request", "write_file", "http_request"]);
});
