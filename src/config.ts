import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { NETWORK_NAMES, NETWORKS, type NetworkName } from "./chain/networks.ts";
import { formatMoney, type Micros, parseMoney } from "./lib/money.ts";

/** A setting that cannot be used. The start stops with exit 78 and this message (operations.md, Settings). */
export class ConfigError extends Error {}

export interface SettingValue {
  name: string;
  /** As it was written, or as its default is written; secrets are masked. */
  value: string;
  source: "default" | "environment" | "command line" | string;
}

interface Setting<T> {
  name: string;
  fallback: string;
  expects: string;
  /** Undefined for text that is not of the expected form. */
  read(text: string): T | undefined;
  secret?: true;
}

const text = (name: string, fallback: string, expects: string, form = /^[\s\S]*$/): Setting<string> => ({
  name,
  fallback,
  expects,
  read: (value) => (form.test(value) ? value : undefined),
});
const orNull = (setting: Setting<string>): Setting<string | null> => ({
  ...setting,
  read: (value) => (value === "" ? null : setting.read(value)),
});
const masked = <T>(setting: Setting<T>): Setting<T> => ({ ...setting, secret: true });
const whole = (name: string, fallback: number, least: number, most: number): Setting<number> => ({
  name,
  fallback: String(fallback),
  expects: `a whole number from ${least} to ${most}`,
  read: (value) =>
    /^\d{1,16}$/.test(value) && Number(value) >= least && Number(value) <= most ? Number(value) : undefined,
});
const amount = (name: string, fallback: string): Setting<Micros> => ({
  name,
  fallback,
  expects: `an amount in USDC with at most 6 decimals, such as ${fallback}`,
  read: (value) => parseMoney(value) ?? undefined,
});
const oneOf = <T extends string>(name: string, fallback: string, choices: readonly T[]): Setting<T> => ({
  name,
  fallback,
  expects: `one of ${choices.join(", ")}`,
  read: (value) => choices.find((choice) => choice === value),
});
const list = <T>(setting: Setting<T>): Setting<T[]> => ({
  ...setting,
  read(value) {
    const items = value.split(",").map((item) => setting.read(item.trim()));
    const good = items.filter((item) => item !== undefined);
    return good.length === items.length && new Set(good).size === good.length ? good : undefined;
  },
});

const orNone = <T>(setting: Setting<T[]>): Setting<T[]> => ({
  ...setting,
  read: (value) => (value === "" ? [] : setting.read(value)),
});

const HTTP_URL = /^https?:\/\/[^\s/]+\S*$/;
const ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const HOST = /^[A-Za-z0-9._-]+(:\d{1,5})?$|^\[[0-9a-fA-F:]+\](:\d{1,5})?$/;
const LEVELS = ["trace", "debug", "info", "warn", "error", "silent"] as const;

const perNetwork = <T>(make: (name: NetworkName) => T): Record<NetworkName, T> => ({
  base: make("base"),
  ethereum: make("ethereum"),
  polygon: make("polygon"),
});

const SETTINGS = {
  dataDir: text(
    "ROOST_DATA_DIR",
    join(process.env.XDG_DATA_HOME || join(homedir(), ".local/share"), "roost"),
    "a folder",
  ),
  host: text("ROOST_HOST", "127.0.0.1", "an address or host name to listen on", /^[A-Za-z0-9.:_-]+$/),
  port: whole("ROOST_PORT", 7373, 0, 65535),
  publicUrl: orNull(text("ROOST_PUBLIC_URL", "", "an http or https URL", HTTP_URL)),
  smtpUrl: masked(orNull(text("ROOST_SMTP_URL", "", "a URL such as smtp://user:pass@host:587", /^smtps?:\/\/\S+$/))),
  mailFrom: orNull(text("ROOST_MAIL_FROM", "", "an e-mail address", /^\S+@\S+$|^[^<>]+<\S+@\S+>$/)),
  model: text("ROOST_MODEL", "local:smollm2-135m-instruct", "local:<name> or openai:<name>", /^(local|openai):\S+$/),
  /** Beside `model`. */
  models: orNone(list(text("ROOST_MODELS", "", "names of models, comma-separated, or * for any", /^\S+$/))),
  answerTokens: whole("ROOST_ANSWER_TOKENS", 4_096, 1, 1_000_000),
  openAiBaseUrl: orNull(text("ROOST_OPENAI_BASE_URL", "", "an http or https URL, with its /v1", HTTP_URL)),
  openAiApiKey: masked(orNull(text("ROOST_OPENAI_API_KEY", "", "a key"))),
  wallet: orNull(text("ROOST_WALLET", "", "an address, 0x and 40 hexadecimal digits", ADDRESS)),
  networks: list(oneOf("ROOST_NETWORKS", NETWORK_NAMES.join(","), NETWORK_NAMES)),
  rpcUrls: perNetwork((name) =>
    list(
      text(
        `ROOST_${name.toUpperCase()}_RPC_URL`,
        NETWORKS[name].defaultRpcUrls.join(","),
        "http or https URLs, comma-separated",
        HTTP_URL,
      ),
    ),
  ),
  confirmations: perNetwork((name) =>
    whole(`ROOST_${name.toUpperCase()}_CONFIRMATIONS`, NETWORKS[name].defaultConfirmations, 1, 1_000_000),
  ),
  facilitatorUrl: orNull(text("ROOST_FACILITATOR_URL", "", "an http or https URL", HTTP_URL)),
  pricePerHour: amount("ROOST_PRICE_PER_HOUR", "0.03"),
  minimumLaunchBalance: amount("ROOST_MINIMUM_LAUNCH_BALANCE", "0.50"),
  minimumTopUp: amount("ROOST_MINIMUM_TOP_UP", "1.00"),
  inviteCredit: amount("ROOST_INVITE_CREDIT", "10.00"),
  egress: {
    name: "ROOST_EGRESS",
    fallback: "public",
    expects: "none, public, or hosts as host or host:port, comma-separated",
    read: (value: string) => {
      if (value === "none" || value === "public") return value;
      const hosts = value.split(",").map((host) => host.trim());
      return hosts.every((host) => HOST.test(host)) ? hosts : undefined;
    },
  } satisfies Setting<"none" | "public" | string[]>,
  readsPerSecond: whole("ROOST_READS_PER_SECOND", 5_000, 1, 1_000_000),
  writesPerSecond: whole("ROOST_WRITES_PER_SECOND", 200, 1, 1_000_000),
  maxStreams: whole("ROOST_MAX_STREAMS", 1_000, 1, 1_000_000),
  maxAwake: whole("ROOST_MAX_AWAKE", 512, 1, 10_000),
  maxInstances: whole("ROOST_MAX_INSTANCES", 100, 1, 1_000_000),
  maxAgents: whole("ROOST_MAX_AGENTS", 1_000, 1, 1_000_000),
  maxWorkspaceBytes: whole("ROOST_MAX_WORKSPACE_BYTES", 1024 ** 3, 1, 2 ** 50),
  addressRequests: whole("ROOST_ADDRESS_REQUESTS", 300, 1, 1_000_000),
  addressRefusals: whole("ROOST_ADDRESS_REFUSALS", 30, 1, 1_000_000),
  idleSeconds: whole("ROOST_IDLE_SECONDS", 300, 1, 86_400),
  logLevel: oneOf("ROOST_LOG_LEVEL", "info", LEVELS),
  logFormat: oneOf("ROOST_LOG_FORMAT", process.stdout.isTTY ? "pretty" : "json", ["pretty", "json"] as const),
  trustProxy: {
    ...oneOf("ROOST_TRUST_PROXY", "false", ["true", "false"]),
    read: (value: string) => (value === "true" ? true : value === "false" ? false : undefined),
  } satisfies Setting<boolean>,
  metricsToken: masked(orNull(text("ROOST_METRICS_TOKEN", "", "a token without white space", /^\S+$/))),
};

type Values<S> = S extends Setting<infer T> ? T : { [K in keyof S]: Values<S[K]> };
export type Config = Values<typeof SETTINGS>;

export interface LoadedConfig {
  config: Config;
  /** Every setting, in the order of the documentation. */
  settings: SettingValue[];
}

/** Names of the command line's own options, which win over everything. */
export type Overrides = Partial<Record<"ROOST_DATA_DIR" | "ROOST_HOST" | "ROOST_PORT", string>>;

/**
 * Reads every setting once: command line over environment over `<data>/roost.toml` over default. Throws `ConfigError`
 * that names the setting, what it got and what it expects; also for an unknown key in the file.
 */
export function loadConfig(environment: Record<string, string | undefined>, overrides: Overrides = {}): LoadedConfig {
  const settings: SettingValue[] = [];
  const dataDir = overrides.ROOST_DATA_DIR || environment.ROOST_DATA_DIR || SETTINGS.dataDir.fallback;
  const file = readSettingsFile(join(dataDir, "roost.toml"));
  const given: Record<string, string | undefined> = overrides;

  function value<T>(setting: Setting<T>): T {
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
    const shown = setting.secret && written !== "" ? "********" : written;
    if (read === undefined) throw new ConfigError(`${name} is "${shown}" (${source}): expected ${setting.expects}`);
    settings.push({ name, value: shown, source });
    return read;
  }
  function values<S>(group: S): Values<S> {
    if (isSetting(group)) return value(group) as Values<S>;
    return Object.fromEntries(
      Object.entries(group as Record<string, unknown>).map(([key, inner]) => [key, values(inner)]),
    ) as Values<S>;
  }

  const config = values(SETTINGS);
  checkTogether(config);
  return { config: { ...config, dataDir: resolve(config.dataDir) }, settings };
}

function checkTogether(config: Config): void {
  if (config.model.startsWith("openai:") && config.openAiBaseUrl === null) {
    throw new ConfigError(
      `ROOST_MODEL is "${config.model}", which needs ROOST_OPENAI_BASE_URL: expected the server's URL, with its /v1`,
    );
  }
  if (config.smtpUrl !== null && config.mailFrom === null) {
    throw new ConfigError(
      "ROOST_MAIL_FROM is not set: expected the sender's e-mail address, because ROOST_SMTP_URL is set",
    );
  }
  // Clients of the x402 protocol refuse larger payments unless they are told otherwise (src/billing/facilitator/x402-protocol.ts).
  if (config.facilitatorUrl !== null && config.minimumTopUp > FACILITATED_TOP_UP) {
    throw new ConfigError(
      `ROOST_MINIMUM_TOP_UP is "${formatMoney(config.minimumTopUp)}": expected at most 1.00, because ROOST_FACILITATOR_URL ` +
        "is set and what it settles is 1.00 each time",
    );
  }
}

const FACILITATED_TOP_UP: Micros = 1_000_000n;

const isSetting = (group: unknown): group is Setting<unknown> =>
  typeof group === "object" && group !== null && "read" in group;

function allNames(group: unknown = SETTINGS): string[] {
  return isSetting(group) ? [group.name] : Object.values(group as Record<string, unknown>).flatMap(allNames);
}

/** `port = 7373` in the file is `ROOST_PORT`. */
function readSettingsFile(path: string): { path: string; values: Map<string, string> } {
  const values = new Map<string, string>();
  if (!existsSync(path)) return { path, values };
  let parsed: Record<string, unknown>;
  try {
    parsed = Bun.TOML.parse(readFileSync(path, "utf8")) as Record<string, unknown>;
  } catch (cause) {
    throw new ConfigError(`${path} is not valid TOML: ${cause instanceof Error ? cause.message : String(cause)}`);
  }
  const known = new Map(allNames().map((name) => [name.slice("ROOST_".length).toLowerCase(), name]));
  for (const [key, value] of Object.entries(parsed)) {
    const name = known.get(key);
    if (!name)
      throw new ConfigError(`${path} has an unknown key "${key}": expected one of ${[...known.keys()].join(", ")}`);
    if (typeof value === "object")
      throw new ConfigError(`${name} is not a plain value (${path}): expected text, a number or true or false`);
    values.set(name, String(value));
  }
  return { path, values };
}
