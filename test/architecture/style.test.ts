import { expect, test } from "bun:test";
import { join } from "node:path";
import { ROOT, readSources } from "./source.ts";

const paths = (await readSources()).map(({ path }) => path);
const MAX_LINES = 300;
const VAGUE = /(^|[-/])(utils?|helpers?|managers?|services?|common|misc|shared|index)([-./]|$)/;
const KEBAB_CASE = /^([a-z0-9]+(-[a-z0-9]+)*\/)*[a-z0-9]+(-[a-z0-9]+)*(\.d)?\.tsx?$/;

test(`no file of src/ is longer than ${MAX_LINES} lines`, async () => {
  const long: string[] = [];
  for await (const path of new Bun.Glob("src/**/*.{ts,tsx,js,css,html}").scan({ cwd: ROOT })) {
    const lines = (await Bun.file(join(ROOT, path)).text()).trimEnd().split("\n").length;
    if (lines > MAX_LINES) long.push(`${path}: ${lines}`);
  }
  expect(long).toEqual([]);
});

test("every name says what the file holds", () => {
  expect(paths.filter((path) => VAGUE.test(path))).toEqual([]);
});

test("files and folders are named in kebab-case", () => {
  expect(paths.filter((path) => !KEBAB_CASE.test(path))).toEqual([]);
});

test("bun.lock names no registry, so that any mirror can serve it", async () => {
  const lock = await Bun.file(join(ROOT, "bun.lock")).text();
  expect(lock.match(/https?:\/\/[^"\s]+/g) ?? []).toEqual([]);
});

test("every version in package.json is exact", async () => {
  const { dependencies, devDependencies } = await Bun.file(join(ROOT, "package.json")).json();
  const versions = Object.entries({ ...dependencies, ...devDependencies }) as [string, string][];
  expect(versions.filter(([, version]) => !/^(npm:@?[^@]+@)?\d+\.\d+\.\d+$/.test(version))).toEqual([]);
});
