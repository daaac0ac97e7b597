import { isIPv6 } from "node:net";
import { homedir } from "node:os";
import { join } from "node:path";
import { NETWORK_NAMES, NETWORKS, type NetworkName } from "../chain/networks.ts";
import { parseSmtpUrl, SMTP_URL_FORM } from "../mail/smtp-url.ts";
import {
  amount,
  byDefault,
  duration,
  keyHidden,
  list,
  masked,
  oneOf,
  orEmpty,
  orNull,
  path,
  type Setting,
  text,
  url,
  whole,
  yesOrNo,
} from "./forms.ts";
import { kept } from "./kept-settings.ts";
import { models } from "./model-settings.ts";
import { traces } from "./trace-settings.ts";

// Every setting is described in this folder and only here (docs/contract/operations.md, Settings). `npm run docs`
// generates docs/settings.md.

const ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const HOST_NAME = /^(?!\d+$)[A-Za-z0-9._-]+$/;
const EGRESS_HOST = /^(?!none$)(?:[A-Za-z0-9._-]+|\[[0-9a-fA-F:]+\])(?::(\d{1,5}))?$/;
const LEVELS = ["trace", "debug", "info", "warn", "error", "silent"] as const;

/** Empty, which is refused where it is needed, if the user has no home: a container's may be in no list of users. */
function dataHome(): string {
  try {
    return join(process.env.XDG_DATA_HOME || join(homedir(), ".local/share"), "roost");
  } catch {
    return "";
  }
}

const place = {
  dataDir: {
    ...byDefault(
      "`$XDG_DATA_HOME/roost`, else `~/.local/share/roost`",
      path(
        text("ROOST_DATA_DIR", dataHome(), "the folder that holds everything Roost writes (--data)", {
          expects: "a folder",
          form: /\S/,
        }),
      ),
    ),
    notInFile: true,
  } satisfies Setting<string>,
  host: {
    ...text("ROOST_HOST", "127.0.0.1", "the address to listen on (--host); 0.0.0.0 or :: for every address", {
      expects: "an address or name of this machine, without a port or brackets",
      form: HOST_NAME,
    }),
    read: (value) => (HOST_NAME.test(value) || isIPv6(value) ? value : undefined),
  } satisfies Setting<string>,
  port: whole("ROOST_PORT", 7373, "the port to listen on (--port); 0 picks a free one", { min: 0, max: 65_535 }),
  publicUrl: byDefault("the listening URL", publicUrl()),
  corsOrigins: byDefault("none", orEmpty(list(origin(), "origins such as https://app.example.com"))),
  trustProxy: yesOrNo("ROOST_TRUST_PROXY", "false", "take a client's address from X-Forwarded-For"),
  metricsToken: masked(
    byDefault(
      "none: /metrics answers this machine only",
      orNull(
        text("ROOST_METRICS_TOKEN", "", "the Bearer token for reading /metrics from elsewhere", {
          expects: "a token without whitespace",
          form: /^\S+$/,
        }),
      ),
    ),
  ),
};

/** As browsers send it: a scheme and a host, with a port if it is not the usual one. */
function origin(): Setting<string> {
  const setting = url("ROOST_CORS_ORIGINS", "", "origins whose pages may call the API");
  return {
    ...setting,
    read: (value) => (setting.read(value) !== undefined && new URL(value).origin === value ? value : undefined),
  };
}

/** Links are built by appending to it, and the console's pages are at the root of a host. */
function publicUrl(): Setting<string | null> {
  const expects = "an http or https URL that browsers can open, without a path, user name, ? or #";
  const setting = orNull(url("ROOST_PUBLIC_URL", "", "how browsers reach this host, for links and mails", expects));
  return {
    ...setting,
    read(value) {
      const read = setting.read(value);
      if (typeof read !== "string") return read;
      const { hostname, username, password, pathname } = new URL(read);
      const isOpenable = /^[a-z0-9._-]+$|^\[/.test(hostname) && !["0.0.0.0", "[::]"].includes(hostname);
      return !isOpenable || username !== "" || password !== "" || !/^\/*$/.test(pathname) || /[?#]/.test(read)
        ? undefined
        : read.replace(/^[a-z]+:/i, (scheme) => scheme.toLowerCase()).replace(/\/+$/, "");
    },
  };
}

const mail = {
  smtpUrl: masked(
    byDefault(
      "none: mail is kept, see `roost outbox`",
      orNull({
        ...text("ROOST_SMTP_URL", "", "the SMTP server that mail is sent through", {
          expects: SMTP_URL_FORM,
          form: /\S/,
        }),
        read: (value) => (parseSmtpUrl(value) === null ? undefined : value),
      }),
    ),
  ),
  mailFrom: orNull(
    text("ROOST_MAIL_FROM", "", "the sender of mail; required with ROOST_SMTP_URL", {
      expects: "one e-mail address, or Name <address>",
      form: /^[^\s@<>,]+@[^\s@<>,]+$|^[^<>\p{Cc}]+<[^\s@<>,]+@[^\s@<>,]+>$/u,
    }),
  ),
};

const perNetwork = <T>(make: (name: NetworkName, prefix: string) => T): Record<NetworkName, T> => ({
  base: make("base", "ROOST_BASE"),
  ethereum: make("ethereum", "ROOST_ETHEREUM"),
  polygon: make("polygon", "ROOST_POLYGON"),
});

const money = {
  pricePerHour: amount("ROOST_PRICE_PER_HOUR", "0.03", "what a running instance costs per hour"),
  minimumLaunchBalance: amount("ROOST_MINIMUM_LAUNCH_BALANCE", "0.50", "the balance needed to start an instance"),
  minimumTopUp: amount("ROOST_MINIMUM_TOP_UP", "1.00", "the smallest payment asked for when a balance is too low"),
  inviteCredit: amount(
    "ROOST_INVITE_CREDIT",
    "10.00",
    "the credit that comes with an invite or a sign-in link; 0 for none",
  ),
  wallet: byDefault(
    "a key pair created at the first start",
    orNull(
      text("ROOST_WALLET", "", "the address that receives USDC", {
        expects: "an address, 0x and 40 hexadecimal digits",
        form: ADDRESS,
      }),
    ),
  ),
  networks: list(
    oneOf("ROOST_NETWORKS", NETWORK_NAMES.join(","), "where USDC is accepted; quotes name the first", NETWORK_NAMES),
    `some of ${NETWORK_NAMES.join(", ")}`,
  ),
  rpcUrls: perNetwork((name, prefix) =>
    keyHidden(
      list(
        url(
          `${prefix}_RPC_URL`,
          NETWORKS[name].defaultRpcUrls.join(","),
          `nodes that verify payments on ${name}; of several, two must agree`,
        ),
        "http or https URLs",
      ),
    ),
  ),
  confirmations: perNetwork((name, prefix) =>
    whole(
      `${prefix}_CONFIRMATIONS`,
      NETWORKS[name].defaultConfirmations,
      `how deep a payment on ${name} must be before it is credited`,
      { unit: "blocks" },
    ),
  ),
  facilitatorUrl: keyHidden(
    orNull(url("ROOST_FACILITATOR_URL", "", "an x402 facilitator, for the protocol's own clients")),
  ),
};

const agents = {
  egress: {
    name: "ROOST_EGRESS",
    meaning:
      "what agents may reach: nothing, the internet, or these hosts, which may have private addresses; `public` among " +
      "hosts stands for the internet",
    fallback: "public",
    expects: "none, public, or hosts as host or host:port, comma-separated",
    read: (value: string) => {
      if (value === "none" || value === "public") return value;
      const hosts = value.split(",").map((host) => host.trim());
      return hosts.every(isEgressHost) ? hosts : undefined;
    },
  } satisfies Setting<"none" | "public" | string[]>,
  idleSeconds: whole("ROOST_IDLE_SECONDS", 300, "how long until an idle instance goes to sleep", {
    max: 86_400,
    unit: "seconds",
  }),
  maxAwake: whole(
    "ROOST_MAX_AWAKE",
    512,
    "instances awake at once on the host, and at most one for each 16 MiB of memory",
    { max: 10_000 },
  ),
};

/** `host` or `host:port`. */
function isEgressHost(text: string): boolean {
  const [found, port = "1"] = EGRESS_HOST.exec(text) ?? [];
  return found !== undefined && Number(port) >= 1 && Number(port) <= 65_535;
}

const limits = {
  readsPerSecond: whole("ROOST_READS_PER_SECOND", 5_000, "GETs per account", { unit: "requests a second" }),
  writesPerSecond: whole("ROOST_WRITES_PER_SECOND", 200, "other requests per account", { unit: "requests a second" }),
  maxStreams: whole("ROOST_MAX_STREAMS", 1_000, "open event streams per account"),
  maxInstances: whole("ROOST_MAX_INSTANCES", 100, "instances per account"),
  maxAgents: whole("ROOST_MAX_AGENTS", 1_000, "agents per account"),
  maxWorkspaceBytes: whole("ROOST_MAX_WORKSPACE_BYTES", 1024 ** 3, "total size of all workspaces of an account", {
    max: 2 ** 50,
    unit: "bytes",
  }),
  addressRequests: whole("ROOST_ADDRESS_REQUESTS", 300, "requests without an account per client address", {
    unit: "requests a minute",
  }),
  addressRefusals: whole("ROOST_ADDRESS_REFUSALS", 30, "wrong keys and codes per client address", {
    unit: "requests a minute",
  }),
};

const backups = {
  backupEvery: duration("ROOST_BACKUP_EVERY", "how often the server makes a backup; the keys are not in it"),
  backupKeep: whole("ROOST_BACKUP_KEEP", 7, "how many of those backups are kept", { max: 1_000 }),
  backupTo: byDefault(
    "`backups` in the data folder",
    path(
      orNull(
        text("ROOST_BACKUP_TO", "", "where they are kept: a folder, or s3://bucket/prefix", {
          expects:
            "a folder, or s3://bucket with or without a prefix, where the bucket's name has 3 to 63 lower-case letters, " +
            "digits, dots and hyphens, with a letter or digit at both ends",
          form: /^s3:\/\/[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](\/[^?#]*)?$|^(?!\s*(?:[A-Za-z][\w+.-]*:\/\/|[Ss]3:))\s*\S/,
        }),
      ),
    ),
  ),
  backupPassphraseFile: path(
    orNull(
      text("ROOST_BACKUP_PASSPHRASE_FILE", "", "a file whose first line encrypts backups, and opens them again", {
        expects: "a file",
        form: /\S/,
      }),
    ),
  ),
};

const log = {
  logLevel: oneOf("ROOST_LOG_LEVEL", "info", "the lowest level that is logged", LEVELS),
  logFormat: byDefault(
    "`pretty` on a terminal, else `json`",
    oneOf("ROOST_LOG_FORMAT", process.stdout.isTTY ? "pretty" : "json", "log lines for people, or for programs", [
      "pretty",
      "json",
    ] as const),
  ),
};

export const SETTINGS = {
  ...place,
  ...mail,
  ...models,
  ...money,
  ...agents,
  ...limits,
  ...kept,
  ...backups,
  ...log,
  ...traces,
};

/** The order and titles in which settings are shown. */
export const GROUPS: readonly (readonly [title: string, settings: object])[] = [
  ["Address and data", place],
  ["Mail", mail],
  ["Models", models],
  ["Money", money],
  ["Agents", agents],
  ["Limits per account and client address", limits],
  ["What is kept", kept],
  ["Backups", backups],
  ["Log", log],
  ["Traces", traces],
];
