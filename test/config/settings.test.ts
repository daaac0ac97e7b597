import { expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { Glob } from "bun";
import { SETTINGS_PAGE, settingsPage } from "../../scripts/settings-page.ts";
import { settingsHelp } from "../../src/cli/settings-help.ts";
import { GROUPS, SETTINGS } from "../../src/config/settings.ts";
import { allSettings, loadConfig } from "../../src/config.ts";

const ROOT = join(import.meta.dir, "../..");
const names = allSettings(SETTINGS).map(({ name }) => name);

test("docs/settings.md is what `npm run docs` generates", async () => {
  expect(await Bun.file(SETTINGS_PAGE).text()).toBe(settingsPage());
});

test("every setting is in exactly one group, in the help and on the page, with a meaning", () => {
  expect(GROUPS.flatMap(([, settings]) => allSettings(settings).map(({ name }) => name))).toEqual(names);
  expect(new Set(names).size).toBe(names.length);
  const [help, page] = [settingsHelp(80), settingsPage()];
  for (const { name, meaning, expects } of allSettings(SETTINGS)) {
    expect([name, new RegExp(`^  ${name}( |$)`, "m").test(help), page.includes(`\`${name}\``)]).toEqual([
      name,
      true,
      true,
    ]);
    expect([name, meaning.length > 10, expects.length > 3]).toEqual([name, true, true]);
  }
});

test("ROOST_EGRESS is none, public, or hosts; public may be among them, none not", () => {
  const read = (value: string) => SETTINGS.egress.read(value);
  expect(["none", "public"].map(read)).toEqual(["none", "public"]);
  expect(read("public, printer.lan:8080,[::1]:9")).toEqual(["public", "printer.lan:8080", "[::1]:9"]);
  for (const wrong of [
    "",
    "none,example.org",
    "https://example.org",
    "example.org/path",
    "example.org:99999",
    "a b",
    "*",
  ]) {
    expect([wrong, read(wrong)]).toEqual([wrong, undefined]);
  }
});

test.each([60, 80, 120])("the help fits a terminal of %i columns", (columns) => {
  const long = settingsHelp(columns)
    .split("\n")
    .filter((line) => Bun.stringWidth(line) > columns);
  expect(long).toEqual([]);
});

test.each([
  ["0x0000000000000000000000000000000000000000", "the zero address"],
  ["0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", "the USDC contract of base"],
  ["0x3c499c542cef5e3811e1192ce70d8cc03d5c3359", "the USDC contract of polygon"],
])("ROOST_WALLET may not be %s, %s: what is paid there is lost", (address, what) => {
  expect(() => loadConfig({ ROOST_DATA_DIR: "/nowhere", ROOST_WALLET: address })).toThrow(
    `ROOST_WALLET is "${address}", ${what}: expected an address of yours`,
  );
});

test("every default is valid", () => {
  expect(() => loadConfig({ ROOST_DATA_DIR: "/nowhere" })).not.toThrow();
});

test("every ROOST_ name in the sources and documents is accepted at a start", async () => {
  const taken = [...names, "ROOST_URL", "ROOST_API_KEY", "ROOST_PROFILE"];
  const places = ["src/**/*.{ts,tsx,html}", "*.md", "docs/*.md", "{skills,workspaces}/**/*.md", "examples/*"];
  const paths = places.flatMap((pattern) => [...new Glob(pattern).scanSync(ROOT)]);
  const spoken = await Promise.all(
    paths.map(async (path) => {
      const text = await Bun.file(join(ROOT, path)).text();
      return [...text.matchAll(/\bROOST_[A-Z_]*[A-Z]\b/g)].map(([name]) => ({ path, name }));
    }),
  );
  // `ROOST_BASE` is a prefix of several.
  const isTaken = (name: string) => taken.some((one) => one === name || one.startsWith(`${name}_`));
  expect(spoken.flat().length).toBeGreaterThan(100);
  expect(spoken.flat().filter(({ name }) => !isTaken(name))).toEqual([]);
});

test("every setting is used by something, or says that it is without effect", async () => {
  const paths = [...new Glob("src/**/*.ts").scanSync(ROOT)].filter((path) => !path.startsWith("src/config"));
  const texts = await Promise.all(paths.map((path) => Bun.file(join(ROOT, path)).text()));
  const program = texts.join("\n").replaceAll(/^\s*(?:\/?\*|\/\/).*$/gm, "");
  const idle = Object.entries(SETTINGS).filter(([key]) => !new RegExp(`\\b${key}\\b`).test(program));
  const silent = idle.filter(
    ([, group]) => !allSettings(group).every(({ meaning }) => meaning.includes("without effect")),
  );
  expect(silent.map(([key]) => key)).toEqual([]);
});

test("a setting is read from the command line before the environment, and from there before the file", () => {
  const env = { ROOST_DATA_DIR: "/nowhere", ROOST_PORT: "2" };
  expect(loadConfig(env, { ROOST_PORT: "1" }).config.port).toBe(1);
  expect(loadConfig(env).config.port).toBe(2);
});

test("a public URL is stored without a trailing slash: links are made by appending to it", () => {
  const of = (ROOST_PUBLIC_URL: string) =>
    loadConfig({ ROOST_DATA_DIR: "/nowhere", ROOST_PUBLIC_URL }).config.publicUrl;
  expect([of("https://roost.example/"), of("https://example.org//"), of("")]).toEqual([
    "https://roost.example",
    "https://example.org",
    null,
  ]);
});

test("a node's URL is shown without its key", () => {
  const url = "https://user:secret@node.example:8545/v2/secret?key=secret, http://127.0.0.1:8545,https://b.example/";
  const { settings } = loadConfig({ ROOST_DATA_DIR: "/nowhere", ROOST_BASE_RPC_URL: url });
  expect(settings.find(({ name }) => name === "ROOST_BASE_RPC_URL")?.value).toBe(
    "https://********@node.example:8545/********, http://127.0.0.1:8545,https://b.example/",
  );
});

test("paths of the settings file are relative to it, and those from elsewhere to where the program runs", () => {
  const home = mkdtempSync(join(tmpdir(), "roost-paths-"));
  const paths = (env: Record<string, string>) => {
    const { config, settings } = loadConfig({ ROOST_DATA_DIR: home, ...env });
    const { backupTo, backupPassphraseFile, modelPrices } = config;
    const shown = ["ROOST_BACKUP_TO", "ROOST_BACKUP_PASSPHRASE_FILE", "ROOST_MODEL_PRICES"].map(
      (name) => settings.find((one) => one.name === name)?.value,
    );
    expect(shown).toEqual([backupTo ?? "", backupPassphraseFile ?? "", modelPrices ?? ""]);
    return [backupTo, backupPassphraseFile, modelPrices];
  };
  try {
    mkdirSync(join(home, "own"));
    writeFileSync(join(home, "own/prices.json"), "{}");
    writeFileSync(
      join(home, "roost.toml"),
      "backup_to = '../kept'\nbackup_passphrase_file = '/etc/pass'\nmodel_prices = 'own/prices.json'\n",
    );
    expect(paths({})).toEqual([resolve(home, "../kept"), "/etc/pass", join(home, "own/prices.json")]);
    expect(paths({ ROOST_BACKUP_TO: "kept", ROOST_BACKUP_PASSPHRASE_FILE: "", ROOST_MODEL_PRICES: "" })).toEqual([
      resolve("kept"),
      null,
      null,
    ]);
    expect(paths({ ROOST_BACKUP_TO: "s3://bucket/host" })[0]).toBe("s3://bucket/host");
  } finally {
    rmSync(home, { recursive: true });
  }
});

test("the data folder is shown as it is from everywhere", () => {
  const { config, settings } = loadConfig({ ROOST_DATA_DIR: "nowhere" });
  expect(settings[0]).toEqual({ name: "ROOST_DATA_DIR", value: resolve("nowhere"), source: "environment" });
  expect(config.dataDir).toBe(resolve("nowhere"));
});
