import { accessSync, constants, readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { NETWORK_NAMES, NETWORKS } from "./chain/networks.ts";
import { isSetting, keyOf, type Setting } from "./config/forms.ts";
import { SETTINGS } from "./config/settings.ts";
import { messageOf } from "./lib/message-of.ts";
import { isServed } from "./lib/model-name.ts";
import { formatMoney, type Micros } from "./lib/money.ts";
import { nearest } from "./lib/nearest.ts";
import { describeSystemError } from "./lib/system-error.ts";
import { readModelPrices } from "./limits/model-prices.ts";

/**
 * Invalid settings, a line for each. The server refuses to start, with exit code 78 (docs/contract/operations.md,
 * Settings).
 */
export class ConfigError extends Error {
  readonly problems: readonly string[];
  constructor(...problems: string[]) {
    super(problems.join("\n"));
    this.problems = problems;
  }
}

export interface SettingValue {
  name: string;
  /** As written, or the default; paths are absolute, and secrets masked. */
  value: string;
  source: "default" | "environment" | "command line" | string;
}

type Values<S> = S extends Setting<infer T> ? T : { [K in keyof S]: Values<S[K]> };
export type Config = Values<typeof SETTINGS>;

export interface LoadedConfig {
  config: Config;
  /** Every setting, in the order of the documentation. */
  settings: SettingValue[];
  /** Of each setting's value, by its name: shows whether another process has the same one, and not which. */
  digests: ReadonlyMap<string, string>;
}

/** Settings given as command-line options, which override everything. */
export type Overrides = Partial<Record<"ROOST_DATA_DIR" | "ROOST_HOST" | "ROOST_PORT", string>>;

type Environment = Record<string, string | undefined>;

/** Environment variables of the user commands: not settings of a host, so not reported as unknown. */
const CLIENT_VARIABLES = ["ROOST_URL", "ROOST_API_KEY", "ROOST_PROFILE"];

/**
 * Reads every setting once: the command line overrides the environment, which overrides `<data>/roost.toml`, which
 * overrides the default. Throws a `ConfigError` that lists every problem: bad values with what is expected, and unknown
 * names.
 */
export function loadConfig(environment: Environment, overrides: Overrides = {}): LoadedConfig {
  const settings: SettingValue[] = [];
  const digests = new Map<string, string>();
  const problems = unknownVariables(environment);
  const dataDir = overrides.ROOST_DATA_DIR ?? environment.ROOST_DATA_DIR ?? SETTINGS.dataDir.fallback;
  // An invalid data folder is reported below; resolving it must not read the current folder's settings file instead.
  const file =
    SETTINGS.dataDir.read(dataDir) === undefined ? NO_FILE : readSettingsFile(resolve(dataDir, "roost.toml"));
  problems.push(...file.problems);
  const given: Environment = overrides;

  function value<T>(setting: Setting<T>): T | undefined {
    const { name } = setting;
    const [written, source] =
      given[name] !== undefined
        ? [given[name], "command line"]
        : environment[name] !== undefined
          ? [environment[name], "environment"]
          : file.values.has(name)
            ? [file.values.get(name) ?? "", file.path]
            : [setting.fallback, "default"];
    const read = setting.read(written);
    const shown = written === "" ? "" : (setting.hide?.(written) ?? written);
    if (read === undefined) {
      problems.push(`${name} is "${shown}" (${source}): expected ${setting.expects}`);
      return undefined;
    }
    if (!setting.isPath || typeof read !== "string" || IS_URL.test(read)) {
      settings.push({ name, value: shown, source });
      digests.set(name, digestOf(written));
      return read;
    }
    // The same for every command: those of the file do not depend on where one runs.
    const path = source === file.path ? resolve(dirname(file.path), read) : resolve(read);
    settings.push({ name, value: path, source });
    digests.set(name, digestOf(path));
    return path as T;
  }
  function values<S>(group: S): Values<S> {
    if (isSetting(group)) return value(group) as Values<S>;
    return Object.fromEntries(
      Object.entries(group as Record<string, unknown>).map(([key, inner]) => [key, values(inner)]),
    ) as Values<S>;
  }

  const config = values(SETTINGS);
  problems.push(...clashes(config));
  if (problems.length > 0) throw new ConfigError(...problems);
  return { config, settings, digests };
}

const digestOf = (text: string): string => new Bun.CryptoHasher("sha256").update(text).digest("hex");

/** Settings that are valid alone but contradict each other, or name what is not there. An invalid one is undefined here. */
function clashes(config: Partial<Config>): string[] {
  const { model, openAiBaseUrl, modelPrices, smtpUrl, mailFrom, facilitatorUrl, minimumTopUp, otel, wallet } = config;
  const problems: string[] = [];
  const prices = typeof modelPrices === "string" ? readModelPrices(modelPrices) : new Map();
  if (typeof prices === "string") problems.push(`ROOST_MODEL_PRICES is "${modelPrices}": ${prices}`);
  if (model !== undefined && isServed(model) && openAiBaseUrl === null) {
    problems.push(
      `ROOST_MODEL is "${model}", which needs ROOST_OPENAI_BASE_URL: expected the server's URL, with its /v1`,
    );
  }
  if (typeof smtpUrl === "string" && mailFrom === null) {
    problems.push("ROOST_MAIL_FROM is not set: expected the sender's e-mail address, because ROOST_SMTP_URL is set");
  }
  // By default, x402 clients refuse to pay more (src/payments/facilitator/x402-protocol.ts).
  if (typeof facilitatorUrl === "string" && minimumTopUp !== undefined && minimumTopUp > MAX_FACILITATED_TOP_UP) {
    problems.push(
      `ROOST_MINIMUM_TOP_UP is "${formatMoney(minimumTopUp)}": expected at most 1.00, because ROOST_FACILITATOR_URL ` +
        "is set and it settles 1.00 at a time",
    );
  }
  const address = wallet?.toLowerCase();
  const contractOf = NETWORK_NAMES.find((name) => NETWORKS[name].asset.toLowerCase() === address);
  if (contractOf !== undefined || address === ZERO_ADDRESS) {
    const what = contractOf === undefined ? "the zero address" : `the USDC contract of ${contractOf}`;
    problems.push(
      `ROOST_WALLET is "${wallet}", ${what}: expected an address of yours, because what is paid there is lost`,
    );
  }
  const sendsTraces = typeof otel?.endpoint === "string" || typeof otel?.tracesEndpoint === "string";
  if (sendsTraces && otel.protocol !== undefined && otel.protocol !== "http/protobuf") {
    problems.push(
      `OTEL_EXPORTER_OTLP_PROTOCOL is "${otel.protocol}": expected http/protobuf, the one that Roost speaks, or ` +
        "OTEL_TRACES_EXPORTER=none to send no traces",
    );
  }
  return problems;
}

const ZERO_ADDRESS = `0x${"0".repeat(40)}`;

const IS_URL = /^[a-z0-9]+:\/\//;

const MAX_FACILITATED_TOP_UP: Micros = 1_000_000n;

/** Every setting, in the order of the documentation. */
export function allSettings(group: unknown = SETTINGS): Setting<unknown>[] {
  return isSetting(group) ? [group] : Object.values(group as Record<string, unknown>).flatMap(allSettings);
}

const LIST_HINT = "to list all: roost config --help";

function unknownVariables(environment: Environment): string[] {
  const names = allSettings().map(({ name }) => name);
  return Object.keys(environment)
    .filter((name) => name.startsWith("ROOST_") && environment[name] !== undefined)
    .filter((name) => !names.includes(name) && !CLIENT_VARIABLES.includes(name))
    .map((name) => `${name} (environment) is not a setting: the nearest is ${nearest(name, names)}; ${LIST_HINT}`);
}

interface SettingsFile {
  path: string;
  values: ReadonlyMap<string, string>;
  problems: string[];
}

const NO_FILE: SettingsFile = { path: "", values: new Map(), problems: [] };

/** `port = 7373` in the file is `ROOST_PORT`. */
function readSettingsFile(path: string): SettingsFile {
  const parsed = parseFile(path);
  if (typeof parsed === "string") return { ...NO_FILE, problems: [parsed] };
  const known = new Map(allSettings().map((setting) => [keyOf(setting.name), setting]));
  const values = new Map<string, string>();
  const problems: string[] = [];
  for (const [key, value] of Object.entries(parsed)) {
    const setting = known.get(key);
    if (!setting) {
      const suggested = nearest(key.toLowerCase().replace(/^roost_/, ""), [...known.keys()]);
      problems.push(`"${key}" (${path}) is not a setting: the nearest is ${suggested}; ${LIST_HINT}`);
    } else if (setting.notInFile) {
      problems.push(`${key} (${path}) is where this file is looked for: give it as ${setting.name} or --data instead`);
    } else if (typeof value === "object") {
      problems.push(
        `${setting.name} is not a single value (${path}): expected ${setting.expects}, as a string in quotes`,
      );
    } else values.set(setting.name, String(value));
  }
  return { path, values, problems };
}

/** The parsed file, empty if there is none; a message if it cannot be used. */
function parseFile(path: string): Record<string, unknown> | string {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    // Opening the data folder reports these with a better message.
    if (["ENOENT", "ENOTDIR", "ENAMETOOLONG", "ELOOP"].includes(String(code))) return {};
    const what = canLookInto(dirname(path)) ? `the settings file ${path}` : `the data folder ${dirname(path)}`;
    return (describeSystemError(`${what} cannot be read`, error) as Error).message;
  }
  const wrong = firstWrongLine(text);
  if (wrong === null) return Bun.TOML.parse(text) as Record<string, unknown>;
  return `the settings file ${path} is not valid TOML, line ${wrong.line}: ${wrong.cause}`;
}

function canLookInto(folder: string): boolean {
  try {
    accessSync(folder, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Bun's parser reports no line. Each setting is one line, so the first prefix that fails ends with the bad line. */
function firstWrongLine(text: string): { line: number; cause: string } | null {
  if (tomlError(text) === null) return null;
  const lines = text.split("\n");
  for (let line = 1; line < lines.length; line++) {
    const cause = tomlError(lines.slice(0, line).join("\n"));
    if (cause !== null) return { line, cause };
  }
  return { line: lines.length, cause: tomlError(text) ?? "" };
}

function tomlError(text: string): string | null {
  try {
    Bun.TOML.parse(text);
    return null;
  } catch (error) {
    return messageOf(error).replace(/^TOML Parse error: /, "");
  }
}
