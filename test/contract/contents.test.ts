import { afterAll, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createProgram } from "../../src/cli/cli.ts";
import { allSettings } from "../../src/config.ts";
import { STATUS_OF_CODE } from "../../src/lib/app-error.ts";
import { PROMPT_FILES } from "../../src/runtime/prompt.ts";
import { startTestServer } from "../support/test-server.ts";
import { anchorOf, codeIn, FOLDER, type Page, ROOT, readContract, readPage, sectionOf } from "./pages.ts";

const server = await startTestServer();
afterAll(() => server.stop());
const contract = await readContract();
const pages = Object.values(contract);
const { api, operations, runtime } = contract;
const settings = await readPage(join(ROOT, "docs/settings.md"));

/** The code spans in the first column of tables that match this pattern. */
const firstCells = (text: string, form: RegExp): string[] =>
  text.split("\n").flatMap((line) => {
    const [, cell = ""] = /^\| (`.+?) \|/.exec(line) ?? [];
    return codeIn(cell).filter((code) => form.test(code));
  });

const METHOD_AND_PATH = /^(GET|POST|PATCH|PUT|DELETE) \/v1\//;

/** How a table says what a route requires of its caller. */
const NEEDS = {
  public: "–",
  read: "`read`",
  chat: "`chat`",
  write: "`write`",
  approve: "`approve`",
  account: "`write`, account",
  "account-read": "`read`, account",
  keys: "keys",
};

test("every route is in a table of the API's page, with what it needs, and the tables have no other", () => {
  const told = api.rows
    .map(([request = "", needs = ""]) => [request.replaceAll("`", ""), needs])
    .filter(([request = ""]) => METHOD_AND_PATH.test(request));
  const routes = server.app.routes.map(({ method, path, access }) => [`${method} ${path}`, NEEDS[access]]);
  expect(told.toSorted()).toEqual(routes.toSorted());
});

test("for every request that a page names, there is a route", () => {
  const routes = new Set(server.app.routes.map(({ method, path }) => `${method} ${path}`));
  const named = pages.flatMap(({ text }) => codeIn(text)).filter((code) => METHOD_AND_PATH.test(code));
  expect(named.filter((request) => !routes.has(request))).toEqual([]);
});

test("every error code is listed with its status, and no other", () => {
  const told = api.rows
    .filter(([code = "", status = ""]) => /^`[a-z_]+`$/.test(code) && /^\d{3}$/.test(status))
    .map(([code = "", status]) => [code.replaceAll("`", ""), Number(status)]);
  expect(Object.fromEntries(told)).toEqual(STATUS_OF_CODE);
  expect(told.length).toBe(Object.keys(STATUS_OF_CODE).length);
});

test("every kind of event is listed, and no other, and every member of its data is named", async () => {
  const { body: document } = await server.ask("GET", "/openapi.json");
  const { AgentEvent, ...schemas } = document.components.schemas;
  const variants: Node[] = AgentEvent.oneOf.map(({ $ref }: { $ref: string }) => schemas[$ref.split("/").at(-1) ?? ""]);
  const types = variants.map(({ properties }) => properties?.type as { const?: string; enum?: string[] });
  const kinds = types.flatMap(({ const: one, enum: some }) => some ?? one ?? []);
  const section = sectionOf(api, "Events");
  expect(firstCells(section, /^[a-z]+\.[a-z_]+$/).toSorted()).toEqual(kinds.toSorted());
  const members = [...nodesOf(variants)].flatMap(({ properties = {} }) => Object.keys(properties));
  const named = new Set(codeIn(section));
  expect(members.filter((member) => !named.has(member))).toEqual([]);
});

interface Node {
  properties?: Record<string, unknown>;
  enum?: unknown[];
  name?: string;
  in?: string;
}

/** Every object of the document that describes something. */
function* nodesOf(node: unknown): Generator<Node> {
  if (typeof node !== "object" || node === null) return;
  if (!Array.isArray(node)) yield node;
  for (const [key, value] of Object.entries(node)) if (key !== "example") yield* nodesOf(value);
}

/** Words of the x402 protocol. */
const NOT_OURS = new Set(
  "scheme maxAmountRequired resource description mimeType payTo maxTimeoutSeconds extra".split(" "),
);

test("every field, query, header and fixed value of /openapi.json is named on the API's page", async () => {
  const { body: document } = await server.ask("GET", "/openapi.json");
  const names = [...nodesOf({ paths: document.paths, components: document.components })].flatMap((node) => [
    ...Object.keys(node.properties ?? {}),
    ...(node.enum ?? []).map(String),
    ...(typeof node.name === "string" && node.in !== "path" ? [node.name] : []),
  ]);
  const isNamed = (name: string): boolean =>
    new RegExp(`(?<![\\w-])${name.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")}(?![\\w-])`).test(api.text);
  expect([...new Set(names)].filter((name) => !NOT_OURS.has(name) && !isNamed(name))).toEqual([]);
});

test("every setting is in docs/settings.md, each section of which is linked from the operator's page", () => {
  const told = firstCells(settings.text, /^(ROOST|OTEL)_/);
  expect(told).toEqual(allSettings().map(({ name }) => name));
  const sections = settings.headings.slice(1).map((heading) => `(../settings.md#${anchorOf(heading)})`);
  expect(sections.filter((link) => !operations.text.includes(link))).toEqual([]);
});

/** Read by user commands, maybe on another machine than the host's, so not settings. */
const OF_COMMANDS = new Set(["ROOST_URL", "ROOST_API_KEY", "ROOST_PROFILE"]);

test("whatever a page calls a setting is one", () => {
  const names = new Set(allSettings().map(({ name }) => name));
  const named = pages.flatMap(({ text }) => text.match(/ROOST_[A-Z_]+/g) ?? []);
  expect(named.filter((name) => !names.has(name) && !OF_COMMANDS.has(name))).toEqual([]);
});

test("limits and prices that have a setting are given with its default", () => {
  const defaults = new Map(allSettings().map(({ name, fallback }) => [name, fallback]));
  const inTables = pages.flatMap(({ rows }) =>
    rows.flatMap((row) => {
      const [name] = row.flatMap(codeIn).filter((code) => code.startsWith("ROOST_"));
      const [figure] = row.flatMap((cell) => /^\d[\d,.]*/.exec(cell) ?? []);
      return name === undefined || figure === undefined ? [] : [[name, figure.replaceAll(",", "")]];
    }),
  );
  const inText = pages.flatMap(({ text }) =>
    Array.from(text.matchAll(/`(ROOST_\w+)` \((\d+(?:\.\d+)?)\)/g), ([, name = "", figure = ""]) => [name, figure]),
  );
  const told = [...inTables, ...inText];
  expect(told.length).toBeGreaterThan(13);
  expect(told).toEqual(told.map(([name = ""]) => [name, String(defaults.get(name))]));
});

/** `invite create`, for each command that can be called. */
const commandsOf = (command: ReturnType<typeof createProgram>, words: string[] = []): string[] =>
  command.commands.length === 0
    ? [words.join(" ")]
    : command.commands.flatMap((child) => commandsOf(child, [...words, child.name()]));

/** Called by shells, not people. */
const isForPeople = (words: string): boolean => !words.startsWith("__");

test("every command is in a table of the operator's page, and no other", () => {
  const told = operations.rows.flatMap(([cell = ""]) => {
    const [first = "", ...others] = codeIn(cell);
    if (!first.startsWith("roost ")) return [];
    const words = first.slice("roost ".length);
    return [words, ...others.map((other) => words.replace(/\S+$/, other))];
  });
  expect(told.toSorted()).toEqual(commandsOf(createProgram()).filter(isForPeople).toSorted());
});

test("every metric of /metrics is in a table of the operator's page, and no other", async () => {
  const { body } = await server.ask("GET", "/metrics");
  const figures = Array.from((body as string).matchAll(/^# TYPE (\w+) /gm), ([, name = ""]) => name);
  const own = figures.filter((name) => !/^roost_(process|nodejs)_/.test(name));
  expect(firstCells(sectionOf(operations, "Metrics"), /^(roost|gen_ai)_/).toSorted()).toEqual(own.toSorted());
});

test("a new agent has the files listed on the runtime's page, and the prompt their order", async () => {
  const ada = await server.signUp();
  const instance = (await ada.ask("POST", "/v1/instances", { name: "home" })).body.instanceId;
  const { body } = await ada.ask("POST", `/v1/instances/${instance}/agents`, { name: "Plain" });
  const told = firstCells(sectionOf(runtime, "Workspace files"), /\.md$/);
  expect(told.toSorted()).toEqual(Object.keys(body.files).toSorted());
  const inPrompt = runtime.rows.filter((row) => /^\d$/.test(row[2] ?? ""));
  expect(inPrompt.flatMap(([name = ""]) => codeIn(name))).toEqual(PROMPT_FILES);
});

test("the tools of an agent are those listed on the runtime's page", async () => {
  const ada = await server.signUp();
  const instance = (await ada.ask("POST", "/v1/instances", { name: "home" })).body.instanceId;
  const { agentId } = (await ada.ask("POST", `/v1/instances/${instance}/agents`, { name: "Plain" })).body;
  const { body } = await ada.ask("GET", `/v1/instances/${instance}/agents/${agentId}/tools?limit=100`);
  const names = body.data.map(({ name }: { name: string }) => name);
  expect(firstCells(sectionOf(runtime, "Tools"), /^\w+$/).toSorted()).toEqual(names.toSorted());
});

/** The targets of a page's links within the project: `api.md#limits` as the file and the anchor. */
const linksOf = (page: Page): string[] =>
  Array.from(page.text.matchAll(/\]\(([^)\s]+)\)/g), ([, target = ""]) => target).filter((to) => !/^https?:/.test(to));

test.each(pages)("every link of $name leads somewhere", async (page) => {
  for (const link of linksOf(page)) {
    const [path = "", anchor] = link.split("#");
    const file = path === "" ? join(FOLDER, page.name) : join(FOLDER, path);
    expect({ link, exists: existsSync(file) }).toEqual({ link, exists: true });
    if (anchor === undefined) continue;
    const { headings } = await readPage(file);
    expect(headings.map(anchorOf)).toContain(anchor);
  }
});
