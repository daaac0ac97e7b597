import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { MAX_OUTPUT } from "../../src/tools/long-output.ts";
import { scriptedTool } from "../support/scripted-tools.ts";
import { type Asking, startAsking } from "./asking.ts";

let it: Asking;
beforeAll(async () => {
  // An answer may hold a file that is larger than one may be.
  it = await startAsking(undefined, {}, { ROOST_ANSWER_TOKENS: "65536" });
});
afterAll(() => it.stop());
beforeEach(() => it.begin());

/** The results of these calls, made one after the other in one run. */
async function make(...calls: [string, object][]): Promise<string[]> {
  it.calls("do it", ...calls);
  await it.until("run.completed", await it.queue("do it"));
  return it.results("do it");
}
const file = (name: string) => it.person.ask("GET", it.at(`/files/${name}`));
const put = (name: string, text: string | Uint8Array) =>
  it.person.ask("PUT", it.at(`/files/${name}`), text, { "Content-Type": "text/plain" });

describe("an agent's files", () => {
  test("are written, read, edited, listed and deleted by it, and everybody sees it at once", async () => {
    const results = await make(
      ["write_file", { name: "notes/a.md", text: "one\ntwo\n" }],
      ["read_file", { name: "notes/a.md" }],
      ["edit_file", { name: "notes/a.md", find: "two", replace: "$& 2" }],
      ["list_files", { folder: "notes/" }],
      ["write_file", { name: "b.md", text: "b" }],
      ["delete_file", { name: "b.md" }],
    );
    expect(results).toEqual([
      "Created notes/a.md, 8 bytes.",
      "one\ntwo",
      "Changed notes/a.md.",
      "notes/a.md (9 bytes)",
      "Created b.md, 1 bytes.",
      "Deleted b.md.",
    ]);
    const { body, headers } = await file("notes/a.md");
    expect([body, headers.get("etag")]).toEqual(["one\n$& 2\n", expect.any(String)]);
    const names = (await it.person.ask("GET", it.at("/files"))).body.data.map((one: { name: string }) => one.name);
    expect([names.includes("notes/a.md"), names.includes("b.md")]).toEqual([true, false]);
    expect((await file("b.md")).status).toBe(404);
  });

  test("are listed by folder, with those in its folders and none beside it", async () => {
    for (const name of ["n/a.md", "n/in/b.md", "n-1/a.md", "n.md", "n0/a.md"]) await put(name, "x");
    const [inside, nothing] = await make(["list_files", { folder: "n" }], ["list_files", { folder: "m" }]);
    expect([inside, nothing]).toEqual(["n/a.md (1 bytes)\nn/in/b.md (1 bytes)", "There are no files in m."]);
  });

  test("are read by lines, and as much as fits", async () => {
    await put("long.md", Array.from({ length: 3_000 }, (_, at) => `line ${at + 1}`).join("\n"));
    await put("wide.md", "x".repeat(MAX_OUTPUT + 1));
    await put("empty.md", "");
    const [some, all, wide, behind, backwards, empty] = await make(
      ["read_file", { name: "long.md", fromLine: 7, toLine: 8 }],
      ["read_file", { name: "long.md" }],
      ["read_file", { name: "wide.md" }],
      ["read_file", { name: "long.md", fromLine: 3_001 }],
      ["read_file", { name: "long.md", fromLine: 3, toLine: 2 }],
      ["read_file", { name: "empty.md" }],
    );
    expect(some).toBe("line 7\nline 8\n[Lines 7 to 8 of 3000.]");
    const next = Number(/Read on with fromLine (\d+)\.]$/.exec(all ?? "")?.[1]);
    expect(all?.length).toBeLessThanOrEqual(MAX_OUTPUT);
    expect(all).toContain(`line ${next - 1}\n[Lines 1 to ${next - 1} of 3000.`);
    expect(wide).toContain(`\n[Line 1 of 1 is cut here: it has ${MAX_OUTPUT + 1} characters. Read on with `);
    expect(behind).toContain("there is no line 3001");
    expect(backwards).toContain("toLine");
    expect(empty).toBe("[empty.md is empty.]");
  });

  test("are read to their end also where a line is longer than fits, each part by the call that the last one names", async () => {
    const line = `x${"😀".repeat(20_000)}`;
    await put("wide.md", `first\n${line}\nlast`);
    let from: object = { fromLine: 2 };
    let read = "";
    for (let isEnd = false; !isEnd; ) {
      const [shown = ""] = await make(["read_file", { name: "wide.md", ...from }]);
      expect(shown.length).toBeLessThanOrEqual(MAX_OUTPUT);
      const [note = "", nextLine, nextCharacter] =
        /\n\[Lines? 2 [^\n]*?(?:fromLine (\d+), fromCharacter (\d+)\.)?\]$/.exec(shown) ?? [];
      read += shown.slice(0, shown.length - note.length);
      from = { fromLine: Number(nextLine), fromCharacter: Number(nextCharacter) };
      isEnd = nextLine === undefined;
    }
    expect(read).toBe(`${line}\nlast`);
    const [behind] = await make(["read_file", { name: "wide.md", fromLine: 3, fromCharacter: 6 }]);
    expect(behind).toContain("line 3 of wide.md has 4 characters; there is no character 6");
  });

  test("that are no text are named as such, not shown", async () => {
    await it.person.ask("PUT", it.at("/files/a.bin"), "a\0b", { "Content-Type": "text/plain" });
    const [read, edited] = await make(
      ["read_file", { name: "a.bin" }],
      ["edit_file", { name: "a.bin", find: "a", replace: "b" }],
    );
    const said = "a.bin is binary, 3 bytes: only text can be read and edited";
    expect([read, edited]).toEqual([said, said]);
  });

  test("are edited only where the text occurs once, however it overlaps", async () => {
    await put("a.md", "aaa b b c");
    const results = await make(
      ["edit_file", { name: "a.md", find: "x", replace: "y" }],
      ["edit_file", { name: "a.md", find: "b", replace: "y" }],
      ["edit_file", { name: "a.md", find: "aa", replace: "y" }],
      ["edit_file", { name: "a.md", find: "", replace: "y" }],
      ["edit_file", { name: "none.md", find: "a", replace: "y" }],
      ["edit_file", { name: "a.md", find: "c", replace: "d" }],
    );
    expect(results).toEqual([
      expect.stringContaining("is not in a.md"),
      expect.stringContaining("occurs more than once in a.md"),
      expect.stringContaining("occurs more than once in a.md"),
      expect.stringContaining("the input of edit_file is wrong: find"),
      "file not found",
      "Changed a.md.",
    ]);
    expect((await file("a.md")).body).toBe("aaa b b d");
  });

  test.each(["../x.md", "/etc/passwd", "a/../../x", ".hidden", "a//b", "a\0b", "x".repeat(101)])(
    "have no name like %j",
    async (name) => {
      const results = await make(
        ["write_file", { name, text: "x" }],
        ["read_file", { name }],
        ["delete_file", { name }],
      );
      expect(results).toEqual(Array(3).fill(expect.stringContaining("expected a relative file name")));
    },
  );

  test("keep to the same limits as a person's", async () => {
    const [large, clash] = await make(
      ["write_file", { name: "a.md", text: "é".repeat(131_073) }],
      ["write_file", { name: "soul.md", text: "x" }],
    );
    expect(large).toContain("at most 262144 bytes");
    expect(clash).toContain("differs from");
  });
});

describe("what a person writes meanwhile", () => {
  test("is not overwritten by a file that the run has not read, or not as it is now", async () => {
    await put("a.md", "a person's");
    const [unread, read, written, again] = await make(
      ["write_file", { name: "a.md", text: "mine" }],
      ["read_file", { name: "a.md" }],
      ["write_file", { name: "a.md", text: "mine" }],
      ["write_file", { name: "a.md", text: "mine again" }],
    );
    expect([unread, read, written, again]).toEqual([
      expect.stringContaining("read it with read_file"),
      "a person's",
      "Replaced a.md, 4 bytes.",
      "Replaced a.md, 10 bytes.",
    ]);
  });

  test("stays, when it comes between the agent's reading and writing", async () => {
    await put("a.md", "before");
    const call = (name: string, input: object) => ({ kind: "tools" as const, calls: [{ name, arguments: input }] });
    it.when("do it", call("read_file", { name: "a.md" }), call("write_file", { name: "a.md", text: "mine" }), {
      ...{ kind: "text", tokens: ["Done."] },
    });
    const runId = await it.queue("do it");
    await it.until("tool.completed", runId);
    // Whichever comes first: if the person is first, the agent is refused; if not, the person's text is the last.
    await put("a.md", "a person's");
    await it.until("run.completed", runId);
    expect((await file("a.md")).body).toBe("a person's");
  });

  test("after an approval was asked for is not overwritten by what was approved", async () => {
    await it.person.ask("PATCH", it.at(""), { tools: { write_file: "ask", delete_file: "ask" } });
    for (const [tool, input, changed] of [
      ["write_file", { name: "new.md", text: "mine" }, true],
      ["delete_file", { name: "old.md" }, true],
      ["write_file", { name: "old.md", text: "mine" }, false],
    ] as const) {
      await put("old.md", "a person's");
      it.calls("do it", [tool, input]);
      const runId = await it.queue("do it");
      const { approvalId, inputHash } = await it.asked(runId);
      // What the run has read is forgotten; what the person was shown is not.
      if (!changed) await it.server.restart();
      else await put(input.name, "a person's, later");
      await it.decide(approvalId, { decision: "approve", inputHash });
      await it.until("run.completed", runId);
      const [result] = it.results("do it");
      if (changed) {
        expect(result).toContain("is not as you read it last");
        expect((await file(input.name)).body).toBe("a person's, later");
      } else {
        expect([result, (await file(input.name)).body]).toEqual(["Replaced old.md, 4 bytes.", "mine"]);
      }
    }
  });

  test("is kept by an edit of another part", async () => {
    await put("a.md", Array.from({ length: 20 }, (_, at) => `[${at}]`).join("\n"));
    const edits = Array.from({ length: 10 }, (_, at): [string, object] => [
      "edit_file",
      { name: "a.md", find: `[${at}]`, replace: `<${at}>` },
    ]);
    it.calls("do it", ...edits);
    const runId = await it.queue("do it");
    for (let at = 10; at < 20; at++) {
      for (;;) {
        const { body, headers } = await file("a.md");
        const etag = headers.get("etag") ?? "";
        const changed = (body as string).replace(`[${at}]`, `{${at}}`);
        const { status } = await it.person.ask("PUT", it.at("/files/a.md"), changed, {
          ...{ "Content-Type": "text/plain", "If-Match": etag },
        });
        if (status === 200) break;
        expect(status).toBe(412);
      }
    }
    await it.until("run.completed", runId);
    expect(it.results("do it")).toEqual(edits.map(() => "Changed a.md."));
    const lines = Array.from({ length: 20 }, (_, at) => (at < 10 ? `<${at}>` : `{${at}}`));
    expect((await file("a.md")).body).toBe(lines.join("\n"));
  });
});

test("a plan is shown to whoever follows, and bounded", async () => {
  const items = [{ text: "look", done: true }, { text: "write" }];
  it.calls("do it", ["update_plan", { items }]);
  const runId = await it.queue("do it");
  const frames = await it.until("run.completed", runId);
  expect(frames.find(({ event }) => event === "plan.updated")?.data).toMatchObject({
    runId,
    items: [
      { text: "look", done: true },
      { text: "write", done: false },
    ],
  });
  expect(it.results("do it")).toEqual(["The plan is shown: 1 of 2 steps are done."]);
  const [tooMany] = await make(["update_plan", { items: Array.from({ length: 21 }, () => ({ text: "x" })) }]);
  expect(tooMany).toContain("the input of update_plan is wrong");
});

test("an output that is too long is kept as a file, which the mark names; the newest 32 of them", async () => {
  const whole = Array.from({ length: 4_000 }, (_, at) => `row ${at}`).join("\n");
  const server = await startAsking([scriptedTool("dump", "nothing", async () => whole)]);
  try {
    server.calls("do it", ["dump", {}]);
    const nameOf = async () => {
      await server.until("run.completed", await server.queue("do it"));
      const [result = ""] = server.results("do it");
      expect(result.length).toBeLessThanOrEqual(MAX_OUTPUT);
      return /all of it is in (tool-output\/\S+-dump\.txt): read_file/.exec(result)?.[1] ?? expect.unreachable();
    };
    const first = await nameOf();
    expect((await server.person.ask("GET", server.at(`/files/${first}`))).body).toBe(whole);
    for (let more = 0; more < 32; more++) {
      server.calls("do it", ["dump", {}]);
      await nameOf();
    }
    const { data } = (await server.person.ask("GET", server.at("/files?limit=100"))).body;
    const kept = data.filter(({ name }: { name: string }) => name.startsWith("tool-output/"));
    expect([kept.length, kept.some(({ name }: { name: string }) => name === first)]).toEqual([32, false]);
  } finally {
    await server.stop();
  }
});
