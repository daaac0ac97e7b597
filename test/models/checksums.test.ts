import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";

const models = resolve(import.meta.dir, "../../models");
const lines = readFileSync(join(models, "SHA256SUMS"), "utf8").trim().split("\n");

test.each(lines.map((line) => line.split(/\s+/) as [string, string]))("%s is the checksum of %s", (sum, file) => {
  const hash = new Bun.CryptoHasher("sha256").update(readFileSync(join(models, file)));
  expect(hash.digest("hex")).toBe(sum);
});

test("every file that the binary embeds has a checksum", async () => {
  const source = await Bun.file(resolve(models, "../src/models/local/embedded.ts")).text();
  // The weights of a model come from its one file: the build takes them out.
  const embedded = [...source.matchAll(/"model:([^"]+)"/g)].map(([, file]) => file?.replace(/_data$/, ""));
  expect(embedded.length).toBeGreaterThan(0);
  expect(lines.map((line) => line.split(/\s+/)[1])).toEqual(expect.arrayContaining(embedded));
});
