import { expect, test } from "bun:test";
import { join, normalize } from "node:path";
import { importsOf, ROOT, readSources, type SourceFile } from "./source.ts";

/**
 * The arrows of ARCHITECTURE.md. A room is a folder of src/, and may import from the rooms on lines below its own. Imports of
 * types count like all others: a type belongs to the room that everybody who needs it may see.
 */
const FLOORS: readonly (readonly string[])[] = [
  ["main"],
  ["cli"],
  ["app"],
  ["config"],
  ["console", "reference"],
  ["openai", "mcp-server", "bundles"],
  ["schedules", "delegation", "memory"],
  ["messages"],
  ["usage"],
  ["agents", "skills", "secrets", "mcp", "approvals", "backup"],
  ["instances"],
  ["payments"],
  ["meter"],
  ["ledger"],
  ["accounts"],
  ["runtime"],
  ["tools"],
  ["workspace", "egress", "sandbox", "models", "chain", "mail"],
  ["http"],
  ["traces"],
  ["limits"],
  ["storage"],
  ["lib"],
];

/** Rooms that may import less than what is below them. */
const ONLY: Readonly<Record<string, readonly string[]>> = {
  // Settings are handed down as arguments: only the code that starts a server reads them (see also HIDDEN).
  config: ["mail", "models", "chain", "limits", "lib"],
  runtime: ["tools", "models", "traces", "limits", "storage", "lib"],
  // Requests know nothing of who keeps their secrets, nor of agents.
  egress: ["limits", "lib"],
  // The process that runs scripts loads these files, and nothing else of Roost.
  sandbox: ["limits", "lib"],
  // A workspace knows nothing of agents: skills and tools use it too.
  workspace: ["limits", "lib"],
};

/** Rooms that may be imported only by these. `routes` stands for the routes.ts and …-routes.ts of every room. */
const HIDDEN: Readonly<Record<string, readonly string[]>> = {
  main: [],
  app: ["cli"],
  cli: ["main"],
  config: ["cli", "app"],
  // Rules know nothing of HTTP.
  http: ["routes", "console", "reference", "app", "cli"],
};

/**
 * Each package is imported in one room, so that replacing it is the work of one room. `routes` and `schema` stand for these
 * files of every room. Of several lines that fit, the longest counts: Drizzle's tables are declared in schemas, while its
 * operators (`eq`, `and`) are the language of queries everywhere.
 */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  elysia: ["http", "routes"],
  "@elysiajs/jwt": ["accounts"],
  "drizzle-orm/sqlite-core": ["storage", "schema"],
  "drizzle-orm/bun-sqlite": ["storage"],
  "drizzle-orm": [
    "storage",
    "openai",
    "schedules",
    "delegation",
    "memory",
    "messages",
    "usage",
    "agents",
    "skills",
    "secrets",
    "mcp",
    "approvals",
    "instances",
    "payments",
    "meter",
    "ledger",
    "accounts",
    "mail",
    "http",
    "limits",
  ],
  viem: ["chain"],
  "@xenova/transformers": ["models"],
  "@huggingface/tokenizers": ["models"],
  "@huggingface/jinja": ["models"],
  "onnxruntime-node": ["models"],
  "onnxruntime-common": ["models"],
  nodemailer: ["mail"],
  commander: ["cli"],
  picocolors: ["cli"],
  croner: ["schedules"],
  pino: ["lib"],
  "pino-pretty": ["lib"],
  "prom-client": ["http"],
  "@mozilla/readability": ["tools"],
  linkedom: ["tools"],
  "modern-tar": ["backup"],
  "age-encryption": ["backup"],
  "@modelcontextprotocol/client": ["mcp"],
};

/** Input is parsed with zod wherever it arrives; `bun` is the runtime. */
const EVERYWHERE: ReadonlySet<string> = new Set(["zod", "bun"]);

const files = await readSources();

/** The folder of src/; `main` and `config` for the two files beside the folders. */
const roomOf = (path: string): string => path.replace(/(\/.*|\.ts)$/, "");

/** What a file counts as: its room, and one of the kinds of file that every room may have. */
const kindsOf = (path: string): string[] => [
  roomOf(path),
  ...(/[/-]routes\.ts$/.test(path) ? ["routes"] : []),
  ...(path.endsWith("/schema.ts") ? ["schema"] : []),
];

const floorOf = (room: string): number => FLOORS.findIndex((rooms) => rooms.includes(room));

function mayImport(file: string, imported: string): boolean {
  const [from, to] = [roomOf(file), roomOf(imported)];
  if (from === to) return true;
  const importers = HIDDEN[to];
  return (
    floorOf(to) > floorOf(from) &&
    (ONLY[from]?.includes(to) ?? true) &&
    (importers === undefined || kindsOf(file).some((kind) => importers.includes(kind)))
  );
}

const wrongArrows = (file: SourceFile): string[] =>
  file.imports
    .filter(({ kind, to }) => kind === "file" && to.endsWith(".ts") && !to.startsWith(".."))
    .filter(({ to }) => !mayImport(file.path, to))
    .map(({ to }) => `${file.path} imports ${to}`);

test("every import goes down, from room to room", () => {
  expect(files.flatMap(wrongArrows)).toEqual([]);
});

test("the floors list every room of src/ once, and nothing else", () => {
  expect(FLOORS.flat().sort()).toEqual([...new Set(files.map(({ path }) => roomOf(path)))].sort());
});

test("a package is imported in its own room only", () => {
  const wrong = files.flatMap((file) => {
    const rooms = kindsOf(file.path);
    return packagesOf(file)
      .map((to) => ({ to, owners: PACKAGES[lineOf(to)] }))
      .filter(({ owners }) => owners !== undefined && !owners.some((room) => rooms.includes(room)))
      .map(({ to, owners }) => `${file.path} imports ${to}, which belongs to ${owners?.join(", ")}`);
  });
  expect(wrong).toEqual([]);
});

test("a package without a line in PACKAGES is imported by one room", () => {
  const rooms = new Map<string, Set<string>>();
  for (const file of files) {
    for (const to of packagesOf(file).filter((to) => !(lineOf(to) in PACKAGES) && !EVERYWHERE.has(to))) {
      rooms.set(to, (rooms.get(to) ?? new Set()).add(roomOf(file.path)));
    }
  }
  expect([...rooms].filter(([, users]) => users.size > 1).map(([name, users]) => [name, ...users])).toEqual([]);
});

/** Packages only: no modules of Bun (`bun:`, `node:`) or of the build (`model:`, `native:`). */
const packagesOf = (file: SourceFile): string[] =>
  file.imports.filter(({ kind, to }) => kind === "package" && !to.includes(":")).map(({ to }) => to);

/** The line of PACKAGES that counts: `viem/chains` is listed under `viem` unless it has a line of its own. */
const lineOf = (to: string): string => (to in PACKAGES ? to : to.split("/", to.startsWith("@") ? 2 : 1).join("/"));

test.each([
  ["runtime/worker.ts", ["runtime", "models", "lib"], ["zod", "node:crypto"]],
  ["tools/page/worker.ts", ["tools"], ["@mozilla/readability", "linkedom"]],
])("the program of %s reaches no database, no network and no file", (worker, allowedRooms, allowedPackages) => {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const reached = new Set([worker]);
  for (const path of reached) {
    for (const { kind, to, runs } of byPath.get(path)?.imports ?? []) if (kind === "file" && runs) reached.add(to);
  }
  const rooms = new Set([...reached].map(roomOf));
  const packages = [...reached].flatMap((path) =>
    (byPath.get(path)?.imports ?? []).filter(({ kind, runs }) => kind === "package" && runs).map(({ to }) => to),
  );
  expect([...rooms].filter((room) => !allowedRooms.includes(room))).toEqual([]);
  expect(packages.filter((name) => !allowedPackages.includes(name))).toEqual([]);
});

test("no two files import each other, directly or through others, types included", () => {
  const byPath = new Map(files.map((file) => [file.path, file.imports.filter(({ kind }) => kind === "file")]));
  const reaches = (from: string): Set<string> => {
    const reached = new Set((byPath.get(from) ?? []).map(({ to }) => to));
    for (const path of reached) for (const { to } of byPath.get(path) ?? []) reached.add(to);
    return reached;
  };
  expect([...byPath.keys()].filter((path) => reaches(path).has(path))).toEqual([]);
});

test("every form of import is found", () => {
  const text = `
import a from "./a.ts";
import type { B } from "../b.ts";
import { type C } from "./c.ts";
import {
  type D,
} from "./d/d.ts";
export { e } from "./e.ts";
export type * from "./f.ts";
const g = await import("./g.ts");
import h from "drizzle-orm/sqlite-core";
import "@scope/i/j";
console.log(a, g, h);`;
  expect(
    importsOf("room/file.ts", text)
      .map(({ to, runs }) => `${to} ${runs}`)
      .sort(),
  ).toEqual([
    "@scope/i/j true",
    "b.ts false",
    "drizzle-orm/sqlite-core true",
    "room/a.ts true",
    "room/c.ts false",
    "room/d/d.ts false",
    "room/e.ts true",
    "room/f.ts false",
    "room/g.ts true",
  ]);
});

/** The files that are loaded with this one, before any of them runs, and the packages. */
async function loadedWith(entry: string): Promise<{ loaded: Set<string>; packages: Set<string> }> {
  const loaded = new Set<string>();
  const packages = new Set<string>();
  const transpiler = new Bun.Transpiler({ loader: "ts" });
  async function visit(path: string): Promise<void> {
    if (loaded.has(path)) return;
    loaded.add(path);
    const text = await Bun.file(join(ROOT, "src", path)).text();
    const now = transpiler.scanImports(text).filter(({ kind }) => kind === "import-statement");
    for (const { path: to } of now) {
      if (!to.startsWith(".")) packages.add(to);
      else if (to.endsWith(".ts")) await visit(normalize(join(path, "..", to)));
    }
  }
  await visit(entry);
  return { loaded, packages };
}

test("a command loads the database, the web framework and their kin only when it needs them", async () => {
  const { loaded, packages } = await loadedWith("cli/cli.ts");
  expect(loaded.size).toBeGreaterThan(10);
  expect([...packages].filter((name) => /^(drizzle-orm|elysia|zod|viem|pino|nodemailer|bun:)/.test(name))).toEqual([]);
});

test("a host starts without the patterns of requests to small models, which take 10 ms to load", async () => {
  const { loaded } = await loadedWith("app/start.ts");
  expect(loaded).toContain("models/added.ts");
  const patterns = [...loaded].filter((path) => path.startsWith("models/local/tools/"));
  expect(patterns.sort()).toEqual(["models/local/tools/made-call.ts", "models/local/tools/offered.ts"]);
});

test("an instance's worker loads no module of Node: each takes a megabyte of every worker", async () => {
  const worker = join(import.meta.dir, "../../src/runtime/worker.ts");
  const { outputs } = await Bun.build({ entrypoints: [worker], target: "bun" });
  const code = (await outputs[0]?.text()) ?? "";
  expect(code).toContain("runAgent");
  expect(code.match(/^import .*$/gm)).toBeNull();
});
