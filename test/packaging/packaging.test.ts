import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { allSettings } from "../../src/config.ts";

const FOLDER = join(import.meta.dir, "../../packaging");

test("every setting that the packaging files name exists", () => {
  const settings = allSettings().map(({ name }) => name);
  const named = readdirSync(FOLDER, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .flatMap(({ parentPath, name }) => readFileSync(join(parentPath, name), "utf8").match(/\bROOST_[A-Z_]+/g) ?? []);
  expect(named).not.toBeEmpty();
  expect(named.filter((name) => !settings.includes(name))).toEqual([]);
});

const analyze = Bun.which("systemd-analyze");

test.skipIf(analyze === null)("systemd gives the unit an exposure of at most 2.0", async () => {
  const child = Bun.spawn([analyze ?? "", "security", "--offline=yes", "--no-pager", join(FOLDER, "roost.service")], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  const output = await Bun.readableStreamToText(child.stdout);
  expect(Number(/Overall exposure level for roost\.service: ([\d.]+)/.exec(output)?.[1])).toBeLessThanOrEqual(2);
});
