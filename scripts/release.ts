/**
 * Builds what a release has, in `dist/release`: an executable for each platform, SHA256SUMS, a bill of materials
 * (CycloneDX) and the licences of everything inside. The Bun of another platform comes from the package registry.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import packageFile from "../package.json" with { type: "json" };
import { compile, type Platform } from "./compile.ts";
import { recordStart } from "./record-start.ts";

const ROOT = resolve(import.meta.dir, "..");
const FOLDER = join(ROOT, "dist/release");

const PLATFORMS: readonly Platform[] = [
  { os: "linux", arch: "x64" },
  { os: "linux", arch: "arm64" },
  { os: "darwin", arch: "arm64" },
];

/** A third-party part of the executables. */
interface Component {
  name: string;
  version: string;
  description: string;
  /** An SPDX expression. */
  license: string;
  /** https://github.com/package-url/purl-spec */
  purl: string;
  /** The texts that its licence asks to be passed on. */
  texts: string[];
}

const LICENSE_FILE = /^(licen[cs]e|copying|notice|copyright)/i;

const licenseTexts = (folder: string): string[] =>
  readdirSync(folder)
    .filter((name) => LICENSE_FILE.test(name) && statSync(join(folder, name)).isFile())
    .sort()
    .map((name) => readFileSync(join(folder, name), "utf8").trim());

/** The packages that these files belong to, by name. */
function packagesOf(files: readonly string[]): Component[] {
  const folders = new Set(
    files.flatMap((file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(file.replace(/^[^/]*:/, ""))?.[0] ?? []),
  );
  // The console and the build's plugins take files in ways that the bundler does not list.
  for (const name of ["marked", "onnxruntime-node", "swagger-ui-dist"]) folders.add(join("node_modules", name));
  const found = new Map<string, Component>();
  for (const folder of folders) {
    const path = resolve(ROOT, folder);
    const { name, version, description = "", license } = JSON.parse(readFileSync(join(path, "package.json"), "utf8"));
    if (typeof license !== "string") throw new Error(`${name} names no licence: look it up, and add it here`);
    const purl = `pkg:npm/${name.replace("@", "%40")}@${version}`;
    found.set(purl, { name, version, description, license, purl, texts: licenseTexts(path) });
  }
  return [...found.values()];
}

/** What is inside besides packages. */
function otherParts(): Component[] {
  const bun = packageFile.devDependencies.bun;
  const model = (name: string, license: string): Component => ({
    name,
    version: "1",
    description: "an embedded model",
    license,
    purl: `pkg:generic/${name}@1`,
    texts: licenseTexts(join(ROOT, "models", name)),
  });
  return [
    {
      name: "bun",
      version: bun,
      description: "the JavaScript runtime",
      license: "MIT AND LGPL-2.1-only",
      purl: `pkg:github/oven-sh/bun@bun-v${bun}`,
      texts: [
        "Bun is under the MIT licence; it links JavaScriptCore (LGPL-2.1). See https://bun.com/docs/project/license.",
      ],
    },
    model("smollm2-135m-instruct", "Apache-2.0"),
    model("all-minilm-l6-v2", "Apache-2.0"),
  ];
}

/** https://cyclonedx.org/docs/1.6/json */
const billOfMaterials = (components: readonly Component[]) => ({
  $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
  bomFormat: "CycloneDX",
  specVersion: "1.6",
  version: 1,
  metadata: {
    component: {
      type: "application",
      "bom-ref": `roost@${packageFile.version}`,
      name: "roost",
      version: packageFile.version,
      description: packageFile.description,
      licenses: [{ license: { id: packageFile.license } }],
    },
  },
  components: components.map(({ name, version, description, license, purl }) => ({
    type: purl.startsWith("pkg:generic/") ? "machine-learning-model" : "library",
    "bom-ref": purl,
    name,
    version,
    description,
    licenses: [/[ ()]/.test(license) ? { expression: license } : { license: { id: license } }],
    purl,
  })),
});

const RULE = "=".repeat(80);

const licensesText = (components: readonly Component[]): string =>
  components
    .map(({ name, version, license, texts }) =>
      [RULE, `${name} ${version}: ${license}`, RULE, "", ...texts, ""].join("\n"),
    )
    .join("\n");

async function release(): Promise<void> {
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true });
  const files = new Set<string>();
  const names: string[] = [];
  const recording = mkdtempSync(join(FOLDER, ".start-"));
  const order = await recordStart(recording);
  for (const platform of PLATFORMS) {
    const name = `roost-${platform.os}-${platform.arch}`;
    const started = performance.now();
    for (const file of await compile(join(FOLDER, name), platform, order)) files.add(file);
    names.push(name);
    console.error(`${name}: ${((performance.now() - started) / 1000).toFixed(0)} s, ${megabytes(join(FOLDER, name))}`);
  }
  rmSync(recording, { recursive: true });
  const components = [...otherParts(), ...packagesOf([...files])].sort((one, other) =>
    one.name < other.name ? -1 : 1,
  );
  const written = {
    "roost.cdx.json": `${JSON.stringify(billOfMaterials(components), null, 2)}\n`,
    "THIRD-PARTY-LICENSES.txt": licensesText(components),
  };
  for (const [name, text] of Object.entries(written)) writeFileSync(join(FOLDER, name), text);
  const sums = [...names, ...Object.keys(written)].map((name) => `${sumOf(join(FOLDER, name))}  ${name}\n`);
  writeFileSync(join(FOLDER, "SHA256SUMS"), sums.join(""));
  console.error(`dist/release: ${components.length} third-party parts in the bill of materials`);
}

const megabytes = (path: string): string => `${Math.round(statSync(path).size / 1e6)} MB`;

const sumOf = (path: string): string => new Bun.CryptoHasher("sha256").update(readFileSync(path)).digest("hex");

await release();
