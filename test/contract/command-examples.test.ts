import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildBinary, runBinary, startBinary } from "../support/binary.ts";
import { NO_NODES } from "../support/no-nodes.ts";
import { differences } from "./comparing.ts";
import { codeIn, readContract, sectionOf } from "./pages.ts";

/** A folder in which `roost` is the current binary, and `./data` that of a server: stopped, it adds nothing to it meanwhile. */
const folder = mkdtempSync(join(tmpdir(), "roost-contract-"));
symlinkSync(await buildBinary(), join(folder, "roost"));
const server = await startBinary({ dataDir: join(folder, "data") });
await server.stop();
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const { operations } = await readContract();
const examples = operations.blocks.flatMap(({ language, content }, at) => {
  const next = operations.blocks[at + 1];
  return language === "sh" ? [{ command: content.trim(), shown: next?.language === "json" ? next.content : null }] : [];
});

test("the page has examples", () => expect(examples.length).toBeGreaterThan(1));

test.each(examples)("`$command` prints what the page shows", async ({ command, shown }) => {
  const child = Bun.spawn(["bash", "-euo", "pipefail", "-c", command], {
    cwd: folder,
    env: { HOME: folder, PATH: `${folder}:${process.env.PATH ?? "/usr/bin:/bin"}`, ...NO_NODES },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [code, printed, errors] = await Promise.all([
    child.exited,
    Bun.readableStreamToText(child.stdout),
    Bun.readableStreamToText(child.stderr),
  ]);
  expect({ code, errors }).toEqual({ code: 0, errors: "" });
  if (shown !== null) expect(differences(JSON.parse(shown), JSON.parse(printed))).toEqual([]);
});

test("the checks of the doctor are those on the page, in their order", async () => {
  const { output } = await runBinary(["doctor", "--data", server.dataDir, "--json"]);
  const checks = (JSON.parse(output) as { check: string }[]).map(({ check }) => check);
  const rows = sectionOf(operations, "Doctor").matchAll(/^\| `(\w+)` \|/gm);
  expect(Array.from(rows, ([, name]) => name)).toEqual(checks);
});

test("all files that a server leaves in its data folder are on the page", () => {
  const rows = sectionOf(operations, "Data folder").matchAll(/^\| (`.+?) \|/gm);
  const told = Array.from(rows, ([, cell = ""]) => cell).flatMap((cell) =>
    codeIn(cell).map((name) => name.replace(/\/.*/, "")),
  );
  expect(readdirSync(server.dataDir).filter((name) => !told.includes(name))).toEqual([]);
});
