import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { isSetting, keyOf, type Setting } from "./config/forms.ts";
import { SETTINGS } from "./config/settings.ts";
import { formatMoney, type Micros } from "./lib/money.ts";
import { nearest } from "./lib/nearest.ts";
import { describeSystemError } from "./lib/system-error.ts";

/** Settings that cannot be used: a line for each. The start stops with exit 78 and these (operations.md, Settings). */
export class ConfigError extends Error {
  readonly problems: readonly string[];
  constructor(...problems: string[]) {
    super(problems.join("\n"));
    this.problems = problems;
  }
}

export interface SettingValue {
  name: string;
  /** As it was written, or as its default is written; secrets are masked. */
  value: string;
  source: "default" | "environment" | "command line" | string;
}

type Values<S> = S extends Setting<infer T> ? T : { [K in keyof S]: Values<S[K]> };
export type Config = Values<typeof SETTINGS>;

export interface LoadedConfig {
  config: Config;
  /** Every setting, in the order of the documentation. */
  settings: SettingValue[];
}

/** Names of the command line's own options, which win over everything. */
export type Overrides = Partial<Record<"ROOST_DATA_DIR" | "ROOST_HOST" | "ROOST_PORT", string>>;

type Environment = Record<string, string | undefined>;

/** What the user's half of the command line reads from the environment: no settings of a host, and no mistakes. */
const CLIENT_VARIABLES = ["ROOST_URL", "ROOST_API_KEY", "ROOST_PROFILE"];

/**
 * Reads every setting once: command line over environment over `<data>/roost.toml` over default. Throws a `ConfigError`
 * that names all that is wrong: each setting with what it got and what it expects, and names that are no setting's.
 */
export function loadConfig(environment: Environment, overrides: Overrides = {}): LoadedConfig {
  const settings: SettingValue[] = [];
  const problems = unknownVariables(environment);
  const dataDir = overrides.ROOST_DATA_DIR ?? environment.ROOST_DATA_DIR ?? SETTINGS.dataDir.fallback;
  // A data folder that is no folder's name is told below; the settings file of the current folder is not its.
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
    if (read === undefined) problems.push(`${name} is "${shown}" (${source}): expected ${setting.expects}`);
    else settings.push({ name, value: shown, source });
    return read;
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
  return { config: { ...config, dataDir: resolve(config.dataDir) }, settings };
}

/** What each setting alone could be, but not beside the others. One that cannot be used at all is undefined here. */
function clashes({ model, openAiBaseUrl, smtpUrl, mailFrom, facilitatorUrl, minimumTopUp }: Partial<Config>): string[] {
  const told: string[] = [];
  if (model?.startsWith("openai:") && openAiBaseUrl === null) {
    told.push(`ROOST_MODEL is "${model}", which needs ROOST_OPENAI_BASE_URL: expected the server's URL, with its /v1`);
  }
  if (typeof smtpUrl === "string" && mailFrom === null) {
    told.push("ROOST_MAIL_FROM is not set: expected the sender's e-mail address, because ROOST_SMTP_URL is set");
  }
  // Clients of the x402 protocol refuse larger payments unless they are told otherwise (src/payments/facilitator/x402-protocol.ts).
  if (typeof facilitatorUrl === "string" && minimumTopUp !== undefined && minimumTopUp > FACILITATED_TOP_UP) {
    told.push(
      `ROOST_MINIMUM_TOP_UP is "${formatMoney(minimumTopUp)}": expected at most 1.00, because ROOST_FACILITATOR_URL ` +
        "is set and what it settles is 1.00 each time",
    );
  }
  return told;
}

const FACILITATED_TOP_UP: Micros = 1_000_000n;

/** Every setting, in the order of the documentation. */
export function allSettings(group: unknown = SETTINGS): Setting<unknown>[] {
  return isSetting(group) ? [group] : Object.values(group as Record<string, unknown>).flatMap(allSettings);
}

const WHERE_ALL_ARE = "`roost config --help` tells all";

function unknownVariables(environment: Environment): string[] {
  const names = allSettings().map(({ name }) => name);
  return Object.keys(environment)
    .filter((name) => name.startsWith("ROOST_") && environment[name] !== undefined)
    .filter((name) => !names.includes(name) && !CLIENT_VARIABLES.includes(name))
    .map((name) => `${name} (environment) is no setting: the nearest is ${nearest(name, names)}; ${WHERE_ALL_ARE}`);
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
      problems.push(`"${key}" (${path}) is no setting: the nearest is ${suggested}; ${WHERE_ALL_ARE}`);
    } else if (setting.notInFile) {
      problems.push(`${key} (${path}) says where this file is: give it as ${setting.name} or --data instead`);
    } else if (typeof value === "object") {
      problems.push(`${setting.name} is not one value (${path}): expected ${setting.expects}, as text in quotes`);
    } else values.set(setting.name, String(value));
  }
  return { path, values, problems };
}

/** What the file says, nothing where there is none, or what is wrong with it. */
function parseFile(path: string): Record<string, unknown> | string {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    // A data folder that cannot be one is told, in better words, by who opens it.
    if (["ENOENT", "ENOTDIR", "ENAMETOOLONG", "ELOOP"].includes(String(code))) return {};
    return (describeSystemError(`the settings file ${path} cannot be read`, error) as Error).message;
  }
  const wrong = firstWrongLine(text);
  if (wrong === null) return Bun.TOML.parse(text) as Record<string, unknown>;
  return `the settings file ${path} is not TOML, in line ${wrong.line}: ${wrong.cause}`;
}

/** Bun's parser does not tell where it stopped. Settings are one line each, so it is the first that ends a file badly. */
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
    return (error instanceof Error ? error.message : String(error)).replace(/^TOML Parse error: /, "");
  }
}
