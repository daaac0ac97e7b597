import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { allSettings, loadConfig } from "../../src/config.ts";
import { buildBinary, runBinary } from "../support/binary.ts";
import { createTranscript, type Home, makeHome } from "./command-line.ts";

let home: Home;
beforeAll(() => {
  home = makeHome();
});
afterAll(() => home.remove());

interface Attempt {
  env?: Record<string, string>;
  file?: string;
  args?: string[];
}

/** The error lines of a start with wrong settings, without `roost: ` and with `FILE` for the settings file. */
async function refusal({ env = {}, file, args = [] }: Attempt, command = "serve"): Promise<string[]> {
  const path = join(home.dataDir, "roost.toml");
  if (file !== undefined) writeFileSync(path, file, { mode: 0o600 });
  const { code, output, errors } = await runBinary([command, "--data", home.dataDir, ...args], { env });
  rmSync(path, { force: true });
  expect({ code, output }).toEqual({ code: 78, output: "" });
  expect(errors).toEndWith("\n");
  const lines = errors.trimEnd().split("\n");
  for (const line of lines) expect(line).toStartWith("roost: ");
  return lines.map((line) => line.slice("roost: ".length).replaceAll(path, "FILE"));
}

const ALL = "to list all: roost config --help";
const WHOLE = "expected a whole number from 0 to 65535";

const SMTP_URL = "smtp://user:pass@host:587 or smtps://…, with user and password percent-encoded";
const FROM = "expected one e-mail address, or Name <address>";
const PUBLIC = "expected an http or https URL that browsers can open, without a path, user name, ? or #";
const LISTENED = "expected an address or name of this machine, without a port or brackets";
const ORIGINS = "expected origins such as https://app.example.com, comma-separated, without duplicates";
const EGRESS = "expected none, public, or hosts as host or host:port, comma-separated";

/** What could be read in one way only, and would then work in none; each is set alone in the environment. */
const ALONE: [name: string, value: string, shown: string, told: string][] = [
  ["ROOST_HOST", "127.0.0.1:8080", "127.0.0.1:8080", LISTENED],
  ["ROOST_HOST", "[::1]", "[::1]", LISTENED],
  ["ROOST_HOST", "a:b:c", "a:b:c", LISTENED],
  ["ROOST_HOST", "8080", "8080", LISTENED],
  ["ROOST_PUBLIC_URL", "https://ada:hush@roost.example", "https://********@roost.example", PUBLIC],
  ["ROOST_PUBLIC_URL", "https://*", "https://*", PUBLIC],
  ["ROOST_PUBLIC_URL", "https://example.org/roost", "https://example.org/roost", PUBLIC],
  ["ROOST_SMTP_URL", "smtp://mail.example:99999", "********", `expected ${SMTP_URL}`],
  ["ROOST_SMTP_URL", "smtp://:587", "********", `expected ${SMTP_URL}`],
  ["ROOST_MAIL_FROM", "ada@example.com,eve@example.com", "ada@example.com,eve@example.com", FROM],
  ["ROOST_MAIL_FROM", "ada@eve@example.com", "ada@eve@example.com", FROM],
  [
    "ROOST_OPENAI_BASE_URL",
    "http://ada:hush@models.example/v1?a=b",
    "http://********@models.example/v1?********",
    "expected an http or https URL, with its /v1, without ? or #",
  ],
  ["ROOST_CORS_ORIGINS", "https://app.example/", "https://app.example/", ORIGINS],
  ["ROOST_CORS_ORIGINS", "*", "*", ORIGINS],
  ["ROOST_EGRESS", "none,public", "none,public", EGRESS],
  ["ROOST_EGRESS", "example.com:99999", "example.com:99999", EGRESS],
];

test("values that could never work are refused by name, and show no password", () => {
  for (const [name, value, shown, told] of ALONE) {
    expect(() => loadConfig({ ROOST_DATA_DIR: home.dataDir, [name]: value })).toThrow(
      `${name} is "${shown}" (environment): ${told}`,
    );
  }
  const settings = loadConfig({
    ROOST_DATA_DIR: home.dataDir,
    ROOST_HOST: "::1",
    ROOST_PUBLIC_URL: "HTTPS://Roost.Example/",
    ROOST_MAIL_FROM: "Roost of Ada <roost@example.com>",
    ROOST_EGRESS: "example.com:443, [::1]:80",
    ROOST_OPENAI_BASE_URL: "http://ada:hush@models.example/v1",
  });
  expect(settings.config.publicUrl).toBe("https://Roost.Example");
  expect(JSON.stringify(settings.settings)).not.toContain("hush");
});

const WRONG: [what: string, attempt: Attempt, told: string[]][] = [
  ["a number out of range", { env: { ROOST_PORT: "99999" } }, [`ROOST_PORT is "99999" (environment): ${WHOLE}`]],
  ["a word for a number", { args: ["--port", "http"] }, [`ROOST_PORT is "http" (command line): ${WHOLE}`]],
  ["nothing for a number", { env: { ROOST_PORT: "" } }, [`ROOST_PORT is "" (environment): ${WHOLE}`]],
  ["a number in the file", { file: "port = 7373.5" }, [`ROOST_PORT is "7373.5" (FILE): ${WHOLE}`]],
  [
    "a misspelt variable",
    { env: { ROOST_PROT: "8080" } },
    [`ROOST_PROT (environment) is not a setting: the nearest is ROOST_PORT; ${ALL}`],
  ],
  ["a misspelt key", { file: "modle = 'x'" }, [`"modle" (FILE) is not a setting: the nearest is model; ${ALL}`]],
  [
    "a key as the environment writes it",
    { file: "ROOST_PUBLIC_ULR = 'http://x'" },
    [`"ROOST_PUBLIC_ULR" (FILE) is not a setting: the nearest is public_url; ${ALL}`],
  ],
  [
    "a section",
    { file: "[host]\nport = 1" },
    [expect.stringMatching(/^ROOST_HOST is not a single value \(FILE\): expected an/)],
  ],
  [
    "a list in the file",
    { file: "networks = ['base', 'polygon']" },
    [
      "ROOST_NETWORKS is not a single value (FILE): expected some of base, ethereum, polygon, comma-separated, without duplicates, " +
        "as a string in quotes",
    ],
  ],
  [
    "the data folder in its own file",
    { file: "data_dir = '/elsewhere'" },
    ["data_dir (FILE) is where this file is looked for: give it as ROOST_DATA_DIR or --data instead"],
  ],
  [
    "a file that is not TOML",
    { file: "# mine\nport = 7373\nhost 127.0.0.1\n" },
    [expect.stringMatching(/^the settings file FILE is not valid TOML, line 3: Expected '=' after a key/)],
  ],
  [
    "a file with a passphrase that is not there",
    { env: { ROOST_BACKUP_PASSPHRASE_FILE: "/nowhere" } },
    ["ROOST_BACKUP_PASSPHRASE_FILE: the passphrase file /nowhere cannot be read: there is no such file or folder"],
  ],
  [
    "a file without a passphrase",
    { env: { ROOST_BACKUP_PASSPHRASE_FILE: "/dev/null" } },
    [
      "ROOST_BACKUP_PASSPHRASE_FILE: the passphrase file /dev/null begins with an empty line; write the passphrase into its first line",
    ],
  ],
  ...["S3://bucket", "s3:/bucket", "S3:bucket", "gs://bucket"].map(
    (place) =>
      [
        `a place of backups that would become a folder: ${place}`,
        { env: { ROOST_BACKUP_TO: place } },
        [
          `ROOST_BACKUP_TO is "${place}" (environment): expected a folder, or s3://bucket with or without a prefix, ` +
            "where the bucket's name has 3 to 63 lower-case letters, digits, dots and hyphens, with a letter or digit at both ends",
        ],
      ] satisfies [string, Attempt, string[]],
  ),
  [
    "a bucket whose name cannot be one",
    { env: { ROOST_BACKUP_TO: "s3://my_bucket/host" } },
    [
      'ROOST_BACKUP_TO is "s3://my_bucket/host" (environment): expected a folder, or s3://bucket with or without a prefix, ' +
        "where the bucket's name has 3 to 63 lower-case letters, digits, dots and hyphens, with a letter or digit at both ends",
    ],
  ],
  [
    "backups more often than they are looked after",
    { env: { ROOST_BACKUP_EVERY: "59s" } },
    ['ROOST_BACKUP_EVERY is "59s" (environment): expected a number with s, m, h or d, such as 7d, from 1m to 3650d'],
  ],
  [
    "a local model whose name cannot be one",
    { env: { ROOST_MODEL: "local:../nope" } },
    ['ROOST_MODEL is "local:../nope" (environment): expected local:<name> of a model on this host, or openai:<name>'],
  ],
  [
    "a model without its kind",
    { env: { ROOST_MODEL: "llama3.1" } },
    ['ROOST_MODEL is "llama3.1" (environment): expected local:<name> of a model on this host, or openai:<name>'],
  ],
  [
    "a model of a server that is not named",
    { env: { ROOST_MODEL: "openai:llama3.1" } },
    ['ROOST_MODEL is "openai:llama3.1", which needs ROOST_OPENAI_BASE_URL: expected the server\'s URL, with its /v1'],
  ],
  [
    "a mail server without a sender",
    { env: { ROOST_SMTP_URL: "smtp://user:hush@mail.example:587" } },
    ["ROOST_MAIL_FROM is not set: expected the sender's e-mail address, because ROOST_SMTP_URL is set"],
  ],
  [
    "a secret of the wrong form, which is not shown",
    { env: { ROOST_SMTP_URL: "hush-hush" } },
    [`ROOST_SMTP_URL is "********" (environment): expected ${SMTP_URL}`],
  ],
  [
    "a node's URL of the wrong form, whose key is not shown",
    { env: { ROOST_BASE_RPC_URL: "wss://node.example/v2/hush-hush" } },
    [
      'ROOST_BASE_RPC_URL is "wss://node.example/********" (environment): expected http or https URLs, comma-separated, without duplicates',
    ],
  ],
  [
    "a public URL that nobody can open",
    { env: { ROOST_PUBLIC_URL: "http://0.0.0.0:7373" } },
    [expect.stringMatching(/^ROOST_PUBLIC_URL is .*: expected an http or https URL that browsers can open/)],
  ],
  [
    "a public URL that is none",
    { env: { ROOST_PUBLIC_URL: "http://:80" } },
    [expect.stringContaining("ROOST_PUBLIC_URL")],
  ],
  [
    "a network that is not known",
    { env: { ROOST_NETWORKS: "base,solana" } },
    [
      'ROOST_NETWORKS is "base,solana" (environment): expected some of base, ethereum, polygon, comma-separated, without duplicates',
    ],
  ],
  [
    "an amount with a sign",
    { env: { ROOST_PRICE_PER_HOUR: "$1" } },
    ['ROOST_PRICE_PER_HOUR is "$1" (environment): expected an amount in USDC with at most 6 decimals, such as 2.50'],
  ],
  [
    "yes for true",
    { env: { ROOST_TRUST_PROXY: "yes" } },
    ['ROOST_TRUST_PROXY is "yes" (environment): expected true or false'],
  ],
];

test.each(WRONG)("%s stops the start with 78, and is reported with what is expected", async (_, attempt, told) => {
  expect(await refusal(attempt)).toEqual(told);
});

test.each([
  ["a missing file", null, "it cannot be read: there is no such file or folder"],
  ["a file that is not JSON", "{ prompt: 1 }", "it is not JSON"],
  ["a list", "[]", "it holds no prices"],
  ["a model without its kind", '{ "gpt-x": { "prompt": 1, "completion": 1 } }', 'its "gpt-x" names no model'],
  [
    "another form",
    '{ "openai:x": { "input": 2, "output": 8 } }',
    'its "openai:x" needs prompt and completion prices from 0 to 1000000',
  ],
  [
    "a negative price",
    '{ "openai:x": { "prompt": -1, "completion": 1 } }',
    'its "openai:x" needs prompt and completion prices',
  ],
  [
    "a price as text",
    '{ "openai:x": { "prompt": "1", "completion": 1 } }',
    'its "openai:x" needs prompt and completion prices',
  ],
  [
    "a misspelt price",
    '{ "openai:x": { "prompt": 1, "completions": 1 } }',
    'its "openai:x" needs prompt and completion prices',
  ],
])("prices of models from %s stop the start with 78", async (_, text, told) => {
  const path = join(home.folder, "prices.json");
  if (text !== null) writeFileSync(path, text);
  const [line, ...others] = await refusal({ env: { ROOST_MODEL_PRICES: path } });
  rmSync(path, { force: true });
  expect([line, others]).toEqual([expect.stringContaining(`ROOST_MODEL_PRICES is "${path}": ${told}`), []]);
});

test("every problem is reported at once, by serve and by config", async () => {
  const attempt: Attempt = {
    env: { ROOST_PORT: "99999", ROOST_MODEL: "local:../nope", ROOST_PROT: "1" },
    file: "price_per_hour = 'much'\nprot = 1\n",
    args: ["--host", "a b"],
  };
  for (const command of ["serve", "config"]) {
    const told = await refusal(attempt, command);
    expect(told.map((line) => line.split(" ")[0]).sort()).toEqual(
      ['"prot"', "ROOST_HOST", "ROOST_MODEL", "ROOST_PORT", "ROOST_PRICE_PER_HOUR", "ROOST_PROT"].sort(),
    );
  }
});

test("an empty data folder name is refused, and the current folder is left unchanged", async () => {
  const here = join(home.folder, "here");
  mkdirSync(here);
  const told = 'roost: ROOST_DATA_DIR is "" (SOURCE): expected a folder\n';
  for (const command of ["serve", "config", "doctor", "outbox"]) {
    const given = await runBinary([command, "--data", ""], { cwd: here });
    expect([given.code, given.errors]).toEqual([78, told.replace("SOURCE", "command line")]);
    const set = await runBinary([command], { cwd: here, env: { ROOST_DATA_DIR: "" } });
    expect([set.code, set.errors]).toEqual([78, told.replace("SOURCE", "environment")]);
  }
  expect(readdirSync(here)).toEqual([]);
});

test("doctor says that the passphrase of backups cannot be read", async () => {
  const env = { ROOST_BACKUP_PASSPHRASE_FILE: "/nowhere" };
  const { output } = await runBinary(["doctor", "--data", home.dataDir, "--json"], { env });
  const findings = JSON.parse(output) as { check: string }[];
  expect(findings.find(({ check }) => check === "backups")).toMatchObject({
    ok: false,
    detail: "the passphrase file /nowhere cannot be read: there is no such file or folder",
  });
});

/** Needs root, or a kernel that lets anybody begin a namespace. */
const mayHide = Bun.spawnSync(["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/etc"]).success;
test.skipIf(!mayHide)("a user without a home needs no more than --data", async () => {
  const binary = await buildBinary();
  const run = (...words: string[]) => {
    const homeless = 'mount -t tmpfs none /etc && exec env -u HOME -u XDG_DATA_HOME "$0" "$@"';
    const { stderr, exitCode } = Bun.spawnSync(["unshare", "-rm", "sh", "-c", homeless, binary, ...words], {
      env: { PATH: process.env.PATH },
    });
    return [exitCode, stderr.toString()];
  };
  expect(run("config", "--data", home.dataDir, "--json")).toEqual([0, ""]);
  expect(run("config")).toEqual([78, 'roost: ROOST_DATA_DIR is "" (default): expected a folder\n']);
});

test("a start that is refused creates nothing", async () => {
  const taken = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const refused: Record<string, string>[] = [
    { ROOST_HOST: "no-such-name.invalid" },
    { ROOST_HOST: "203.0.113.1" },
    { ROOST_PORT: String(taken.port) },
    { ROOST_PORT: "http" },
    { ROOST_SMTP_URL: "smtp://:587", ROOST_MAIL_FROM: "a@example.com" },
    { ROOST_WALLET: "0x0eF3c71dd3e7a4c81C62de9424071512c5cF18A5" },
  ];
  const data = join(home.folder, "untouched");
  for (const env of refused) {
    const ran = await runBinary(["serve", "--data", data], { env: { ROOST_PORT: "0", ...env } });
    const [[name = ""] = []] = Object.entries(env);
    expect(ran.errors).toContain(name);
    expect([ran.errors, existsSync(data)]).toEqual([expect.stringMatching(/^roost: .*\n$/), false]);
  }
  await taken.stop(true);
});

test("environment variables of the user commands are not reported", async () => {
  const env = { ROOST_URL: "http://127.0.0.1:7373", ROOST_API_KEY: "rst_live_x" };
  expect((await runBinary(["config", "--data", home.dataDir, "--json"], { env })).code).toBe(0);
});

test("config fits a terminal of 80 columns, with every name, value and meaning on it", async () => {
  const transcript = createTranscript();
  const child = Bun.spawn([await buildBinary(), "config", "--data", home.dataDir, "--port", "81"], {
    env: { HOME: home.folder, NO_COLOR: "1", TERM: "xterm" },
    terminal: { cols: 80, rows: 40, data: (_, bytes) => transcript.add(new TextDecoder().decode(bytes)) },
  });
  await transcript.until(/^ROOST_LOG_FORMAT .*\r\n/m);
  expect(await child.exited).toBe(0);
  child.terminal?.close();
  const lines = transcript.all().split("\r\n");
  expect(lines.filter((line) => Bun.stringWidth(line) > 80)).toEqual([]);
  expect(lines[0]).toMatch(/^SETTING +VALUE +MEANING$/);
  const at = lines.findIndex((line) => /^ROOST_PORT +81 +the port to listen on/.test(line));
  expect(lines[at + 1]?.trim()).toStartWith("(command line)");
  for (const { name } of allSettings())
    expect(lines.some((line) => line === name || line.startsWith(`${name} `))).toBe(true);
});
