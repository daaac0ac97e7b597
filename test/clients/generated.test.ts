import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { UNKEYED } from "../../clients/typescript/src/requests.ts";
import { CLIENT_TYPES, clientTypes, runTool, writeDocument } from "../../scripts/client.ts";

const folder = mkdtempSync(join(tmpdir(), "roost-generated-"));
const document = join(folder, "openapi.json");
beforeAll(() => writeDocument(document));
afterAll(() => rmSync(folder, { recursive: true }));

test("the client's types are those of the API as it is: `npm run client` writes them", async () => {
  expect(await Bun.file(CLIENT_TYPES).text()).toBe(await clientTypes(document));
});

test("the client sends no key with exactly those POSTs that take none", async () => {
  const { paths } = (await Bun.file(document).json()) as { paths: Record<string, { post?: { parameters: object[] } }> };
  const unkeyed = Object.entries(paths).filter(
    ([, { post }]) => post && !post.parameters.some((one) => JSON.stringify(one).includes("idempotencyKey")),
  );
  expect(unkeyed.map(([path]) => path).toSorted()).toEqual([...UNKEYED].toSorted());
});

test("Redocly finds nothing to complain about in the document, by its recommended rules", async () => {
  const report = await runTool("@redocly/cli/bin/cli.js", "lint", document, "--format", "json");
  const { totals, problems } = JSON.parse(report.slice(report.indexOf("{"))) as { totals: object; problems: object[] };
  expect(problems).toEqual([]);
  expect(totals).toMatchObject({ errors: 0, warnings: 0 });
});

test("a second generator accepts the document, and its client compiles", async () => {
  const made = join(folder, "hey-api");
  await runTool(
    "@hey-api/openapi-ts/bin/run.js",
    "--input",
    document,
    "--output",
    made,
    "--client",
    "@hey-api/client-fetch",
  );
  const compilerOptions = {
    ...{ module: "esnext", moduleResolution: "bundler", target: "es2022", types: [], noEmit: true, strict: true },
    lib: ["ES2022", "DOM", "DOM.Iterable", "DOM.AsyncIterable"],
  };
  await Bun.write(join(made, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["."] }));
  await runTool("typescript/bin/tsc", "--project", made);
});
