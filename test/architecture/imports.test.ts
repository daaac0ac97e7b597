import { expect, test } from "bun:test";
import { importsOf, readSources, type SourceFile } from "./source.ts";

/**
 * The arrows of ARCHITECTURE.md: a room may import from the rooms below it, never from its own line or above. The
 * `routes.ts` of every feature (`…-routes.ts` too) is a room of its own, `routes`, and so is the composition root, `app`: the files at the
 * top of src/ but main.ts and config.ts.
 */
const FLOORS: readonly (readonly string[])[] = [
  ["main"],
  ["cli"],
  ["app"],
  ["config"],
  ["routes", "console", "reference"],
  ["openai"],
  ["http"],
  ["messages"],
  ["agents", "skills", "secrets"],
  ["instances"],
  ["payments"],
  ["meter"],
  ["ledger"],
  ["accounts"],
  ["runtime"],
  ["tools"],
  ["workspace", "sandbox", "models", "chain", "mail"],
  ["limits"],
  ["storage"],
  ["lib"],
];

/** Where a room may see less than what is below it. */
const ONLY: Readonly<Record<string, readonly string[]>> = {
  // Settings are handed down as arguments: only who starts the server reads them (see also HIDDEN).
  config: ["models", "chain", "limits", "lib"],
  // The server's plumbing knows who calls, and nothing else of the features.
  http: ["accounts", "limits", "storage", "lib"],
  runtime: ["tools", "sandbox", "models", "limits", "storage", "lib"],
  // The jail knows no agent: tools stand on it too.
  workspace: ["limits", "lib"],
};

/** Rooms that only the named ones may import. */
const HIDDEN: Readonly<Record<string, readonly string[]>> = {
  main: [],
  app: ["cli"],
  cli: ["main"],
  config: ["cli", "app"],
  http: ["routes", "openai", "console", "reference", "app", "cli"],
};

/**
 * A package lives in one room, so that replacing it is the work of one room. `schema` is the `schema.ts` of any room. The
 * longest name that fits counts: Drizzle's tables are declared in schemas, its operators (`eq`, `and`) are the language of
 * the queries beside them.
 */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  elysia: ["http", "routes"],
  "@elysiajs/jwt": ["accounts"],
  "drizzle-orm/sqlite-core": ["storage", "schema"],
  "drizzle-orm/bun-sqlite": ["storage"],
  "drizzle-orm": [
    "storage",
    "messages",
    "agents",
    "skills",
    "secrets",
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
  "onnxruntime-node": ["models"],
  "onnxruntime-common": ["models"],
  nodemailer: ["mail"],
  commander: ["cli"],
  picocolors: ["cli"],
  pino: ["lib"],
  "pino-pretty": ["lib"],
  "prom-client": ["http"],
};

/** Parsing at the edge is every edge's work. `bun` is the runtime. */
const EVERYWHERE: ReadonlySet<string> = new Set(["zod", "bun"]);

const files = await readSources();

function roomOf(path: string): string {
  const [first = "", ...rest] = path.split("/");
  if (rest.length === 0) return first === "main.ts" || first === "config.ts" ? first.slice(0, -3) : "app";
  return /(^|-)routes\.ts$/.test(rest.at(-1) ?? "") ? "routes" : first;
}

const floorOf = (room: string): number => FLOORS.findIndex((rooms) => rooms.includes(room));

function mayImport(from: string, to: string): boolean {
  if (from === to) return true;
  return floorOf(to) > floorOf(from) && (ONLY[from]?.includes(to) ?? true) && (HIDDEN[to]?.includes(from) ?? true);
}

const wrongArrows = (file: SourceFile): string[] =>
  file.imports
    .filter(({ kind, to }) => kind === "file" && to.endsWith(".ts") && !to.startsWith(".."))
    .filter(({ to }) => !mayImport(roomOf(file.path), roomOf(to)))
    .map(({ to }) => `${file.path} (${roomOf(file.path)}) imports ${to} (${roomOf(to)})`);

test("every import goes down, from room to room", () => {
  expect(files.flatMap(wrongArrows)).toEqual([]);
});

test("every folder of src/ has its place on a floor", () => {
  expect([...new Set(files.map((file) => roomOf(file.path)))].filter((room) => floorOf(room) < 0)).toEqual([]);
});

test("a package is imported in its own room only", () => {
  const wrong = files.flatMap((file) => {
    const rooms = [roomOf(file.path), ...(file.path.endsWith("/schema.ts") ? ["schema"] : [])];
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

/** Packages, not what Bun (`bun:`, `node:`) or the build (`model:`, `native:`) brings. */
const packagesOf = (file: SourceFile): string[] =>
  file.imports.filter(({ kind, to }) => kind === "package" && !to.includes(":")).map(({ to }) => to);

/** `viem/chains` stands under `viem` unless it has a line of its own. */
const lineOf = (to: string): string => (to in PACKAGES ? to : to.split("/", to.startsWith("@") ? 2 : 1).join("/"));

test("the worker's program reaches no database, no network and no file", () => {
  const worker = "runtime/worker.ts";
  const byPath = new Map(files.map((file) => [file.path, file]));
  const reached = new Set([worker]);
  for (const path of reached) {
    for (const { kind, to, runs } of byPath.get(path)?.imports ?? []) if (kind === "file" && runs) reached.add(to);
  }
  const rooms = new Set([...reached].map(roomOf));
  const packages = [...reached].flatMap((path) =>
    (byPath.get(path)?.imports ?? []).filter(({ kind, runs }) => kind === "package" && runs).map(({ to }) => to),
  );
  expect([...rooms].filter((room) => !["runtime", "models", "lib"].includes(room))).toEqual([]);
  expect(packages.filter((name) => name !== "zod" && name !== "node:crypto")).toEqual([]);
});

test("no file runs on one that runs on it: what is loaded first never matters", () => {
  const byPath = new Map(
    files.map((file) => [file.path, file.imports.filter(({ kind, runs }) => kind === "file" && runs)]),
  );
  const reaches = (from: string): Set<string> => {
    const reached = new Set((byPath.get(from) ?? []).map(({ to }) => to));
    for (const path of reached) for (const { to } of byPath.get(path) ?? []) reached.add(to);
    return reached;
  };
  expect([...byPath.keys()].filter((path) => reaches(path).has(path))).toEqual([]);
});

test("these tests see every form of import", () => {
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
