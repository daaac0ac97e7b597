import { describe, expect, test } from "bun:test";
import type { ToolDescription } from "../../src/models/engine.ts";
import { callByName } from "../../src/tools/call-tool.ts";
import { cutOutput } from "../../src/tools/long-output.ts";
import { now } from "../../src/tools/now.ts";
import { createSearchTools } from "../../src/tools/search-tools.ts";
import type { Policy, Tool, ToolContext } from "../../src/tools/tool.ts";
import { rankTools } from "../../src/tools/tool-ranking.ts";
import { createToolbox } from "../../src/tools/toolbox.ts";
import { MANY_TOOLS } from "../support/many-tools.ts";
import { scriptedTool } from "../support/scripted-tools.ts";

const many = MANY_TOOLS.map(([name, description]) => scriptedTool(name, "outside", async () => name, { description }));
/** The same as if the host had them. */
const ofTheHost = many.map((tool) => ({ ...tool, name: tool.name.replace("__", "_") }));
const core = scriptedTool("read_notes", "nothing", async () => "notes", { isCore: true });

function open(tools: readonly Tool[], policies: Record<string, Policy> | null = null) {
  const search = createSearchTools(() => toolbox.searchable(policies)) as Tool;
  const toolbox = createToolbox([core, ...tools, search, callByName as Tool]);
  return {
    offered: (contextTokens: number) => toolbox.offerTo(policies, contextTokens),
    find: async (query: string) => String(await search.run({ query }, { agentId: "agt_a" } as ToolContext)),
  };
}
const namesOf = (tools: readonly Pick<ToolDescription, "name">[]) => tools.map(({ name }) => name);
const THREE = ["read_notes", "search_tools", "call_tool"];

describe("what a model is told of", () => {
  test("is every tool while they take up to 8 % of its context, else the core few, the first of the others, and how to find the rest", () => {
    const many = ofTheHost;
    const { offered } = open(many);
    const all = offered(1_000_000);
    expect(namesOf(all)).toEqual(["read_notes", ...namesOf(many)]);
    const characters = all.reduce((sum, one) => sum + JSON.stringify(one).length, 0);
    const enough = Math.ceil(characters / 3.5 / 0.08);
    expect(namesOf(offered(enough))).toEqual(namesOf(all));
    expect(namesOf(offered(1_000))).toEqual(THREE);
    const some = namesOf(offered(enough - 1));
    const shown = some.slice(1, -2);
    expect(some).toEqual(["read_notes", ...namesOf(many).slice(0, shown.length), "search_tools", "call_tool"]);
    expect(shown.length).toBeGreaterThan(0);
    // What is left out is named, and takes no more than there is room for.
    const search = offered(enough - 1).at(-2)?.description;
    for (const name of namesOf(many)) expect(search?.includes(name)).toBe(!shown.includes(name));
    const more = namesOf(offered(Math.ceil(enough / 2))).slice(1, -2);
    expect(more.length).toBeLessThan(shown.length);
  });

  test("names the others, as many as there is room for", () => {
    const search = open(ofTheHost).offered(1_000)[1];
    expect(search?.description).toContain("There are: github_create_issue, github_list_issues, ");
    const crowd = Array.from({ length: 2_000 }, (_, at) =>
      scriptedTool(`server__tool${at}`, "outside", async () => ""),
    );
    const found = open(crowd).offered(32_768).at(-2);
    expect(found?.description).toMatch(/There are: server__tool\d+, .*, and 1\d\d\d more\.$/);
    expect(found?.description.length).toBeLessThan(1_300);
  });

  test("has tools of MCP servers before others of the host, and a few of them where the core fills its room", () => {
    const [, ...hosts] = ofTheHost;
    const large = scriptedTool("read_all", "nothing", async () => "", { isCore: true, description: "x".repeat(1_100) });
    const { offered } = open([large, ...hosts, ...many]);
    const few = namesOf(offered(4_096)).slice(2, -2);
    expect(few.length).toBeGreaterThan(2);
    expect(few).toEqual(namesOf(many).slice(0, few.length));
    // In half of the context that may be half as much, and in a large one it is all of them, and others too.
    expect(namesOf(offered(2_048)).slice(2, -2)).toEqual(few.slice(0, Math.floor(few.length / 2)));
    const most = namesOf(offered(52_000)).slice(2, -2);
    expect(most).toEqual([...namesOf(hosts).slice(0, most.length - many.length), ...namesOf(many)]);
    expect(most.length).toBeGreaterThan(many.length);
    // With these few there is nothing left to search.
    expect(namesOf(open([large, ...many.slice(0, 2)]).offered(4_096))).toHaveLength(4);
  });

  test("holds no tool that was denied; where searching is denied, it is every other one", () => {
    expect(open(many, { mail__send: "deny" }).offered(1_000)[1]?.description).not.toContain("mail__send");
    for (const tool of ["search_tools", "call_tool"]) {
      expect(open(many, { [tool]: "deny" }).offered(1_000)).toHaveLength(MANY_TOOLS.length + 1);
    }
  });
});

describe("a search", () => {
  const tools = createToolbox(many).offerTo(null, 1_000_000);
  test.each([
    ["open a ticket about a bug on GitHub", "github__create_issue"],
    ["merging pull requests", "github__merge_pull_request"],
    ["tell the team on Slack", "slack__post_message"],
    ["when are all of us free for a meeting", "calendar__find_free_time"],
    ["send an e-mail", "mail__send"],
    ["find an e-mail by its sender", "mail__search"],
    ["give the customer their money back: refund", "stripe__refund_payment"],
    ["SQL", "postgres__query"],
    ["will it rain? weather forecast", "weather__forecast"],
    ["coordinates of an address", "maps__geocode"],
    ["dim the lamps", "home__set_light"],
    ["restarting a deployment", "kubernetes__restart_deployment"],
    ["exportPdf", "drive__export_pdf"],
    ["jira__log_work", "jira__log_work"],
    ["what does mail__draft_reply need, to list events of a calendar", "mail__draft_reply"],
  ])("for %p finds %s among its first three", (query, name) => {
    expect(namesOf(rankTools(tools, query)).slice(0, 3)).toContain(name);
  });

  test("tells description and input of at most eight tools, which fit an output", async () => {
    const { find } = open(many);
    const found = await find("create a new page, issue, event, invoice, branch, message or request; list and search");
    expect(found.match(/^input: /gm)).toHaveLength(8);
    expect(await find("mail__send")).toStartWith(
      'mail__send: Send an e-mail, with copies and attachments.\ninput: {"type":"object"',
    );
    const long = Array.from({ length: 8 }, (_, at) =>
      scriptedTool(`long${at}`, "outside", async () => "", { description: `letters ${"x".repeat(5_000)}` }),
    );
    const cut = await open(long).find("letters");
    expect(cut.match(/^input: /gm)).toHaveLength(2);
    expect(cutOutput(cut)).toBe(cut);
  });

  test("that finds nothing says what there is", async () => {
    expect(await open([now as Tool]).find("zzz ¿?")).toBe(
      'No tool fits "zzz ¿?": say it in other words, or name one of these: now',
    );
    expect(await open([]).find("letters")).toContain("name one of these: none");
  });

  test("finds neither what was denied nor what the model knows already", async () => {
    const { find } = open(many, { mail__send: "deny" });
    expect(await find("mail__send")).not.toContain("mail__send:");
    expect(await find("read_notes call_tool search_tools")).not.toMatch(/^(?:read_notes|call_tool|search_tools):/m);
  });
});
