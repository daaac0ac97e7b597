import { parseDuration } from "../lib/duration.ts";
import { type Micros, parseMoney } from "../lib/money.ts";

/** One setting, described once, for `loadConfig`, help, `roost config` and docs/settings.md. */
export interface Setting<T> {
  /** The environment variable; the key in `roost.toml` is the same in lower case, without `ROOST_`. */
  name: string;
  meaning: string;
  /** The default, as it would be written. */
  fallback: string;
  /** The default in words, if it is empty or depends on the machine. */
  fallbackShown?: string;
  /** The format of a value, with its unit. */
  expects: string;
  /** Parses a value. Undefined if it is not in the expected format. */
  read(text: string): T | undefined;
  /** It names a file or folder, from which `loadConfig` makes an absolute path, or a URL. */
  isPath?: true;
  secret?: true;
  /** The value as it may be shown; absent if it need not be hidden. */
  hide?(written: string): string;
  /** For the folder of the settings file itself, which cannot be set in it. */
  notInFile?: true;
}

export const isSetting = (group: unknown): group is Setting<unknown> =>
  typeof group === "object" && group !== null && "read" in group;

/** `ROOST_PORT` → `port`. */
export const keyOf = (name: string): string => name.replace(/^ROOST_/, "").toLowerCase();

export const text = (
  name: string,
  fallback: string,
  meaning: string,
  { expects, form }: { expects: string; form: RegExp },
): Setting<string> => ({
  name,
  meaning,
  fallback,
  expects,
  read: (value) => (form.test(value) ? value : undefined),
});

export const path = <T extends string | null>(setting: Setting<T>): Setting<T> => ({ ...setting, isPath: true });

/** Optional: empty, the default, means null. */
export const orNull = (setting: Setting<string>): Setting<string | null> => ({
  fallbackShown: "none",
  ...setting,
  read: (value) => (value === "" ? null : setting.read(value)),
});

export const masked = <T>(setting: Setting<T>): Setting<T> => ({ ...setting, secret: true, hide: () => HIDDEN });

const HIDDEN = "********";

/** For URLs that may hold a key, in the path, the query or before the host: only the scheme and host are shown. */
export const keyHidden = <T>(setting: Setting<T>): Setting<T> => ({
  ...setting,
  hide: (written) =>
    written
      .split(",")
      .map((one) =>
        one.replace(
          /^(\s*[a-z]+:\/\/)([^/?#]*@)?([^/?#]*)(.*)$/is,
          (_, scheme, user, host, rest) =>
            `${scheme}${user ? `${HIDDEN}@` : ""}${host}${rest.length > 1 ? `/${HIDDEN}` : rest}`,
        ),
      )
      .join(","),
});

export const byDefault = <T>(fallbackShown: string, setting: Setting<T>): Setting<T> => ({ ...setting, fallbackShown });

export const whole = (
  name: string,
  fallback: number,
  meaning: string,
  { min = 1, max = 1_000_000, unit }: { min?: number; max?: number; unit?: string } = {},
): Setting<number> => ({
  name,
  meaning,
  fallback: String(fallback),
  expects: `a whole number${unit === undefined ? "" : ` of ${unit}`} from ${min} to ${max}`,
  read: (value) =>
    /^\d{1,16}$/.test(value) && Number(value) >= min && Number(value) <= max ? Number(value) : undefined,
});

export const amount = (name: string, fallback: string, meaning: string): Setting<Micros> => ({
  name,
  meaning,
  fallback,
  expects: `an amount in USDC with at most 6 decimals, such as 2.50`,
  read: (value) => parseMoney(value) ?? undefined,
});

const MINUTE_MS = 60_000;

/** Optional: empty, the default, means null. Milliseconds. */
export const duration = (name: string, meaning: string): Setting<number | null> => ({
  name,
  meaning,
  fallback: "",
  fallbackShown: "none",
  expects: "a number with s, m, h or d, such as 7d, from 1m to 3650d",
  read(value) {
    if (value === "") return null;
    const ms = parseDuration(value);
    return ms !== null && ms >= MINUTE_MS ? ms : undefined;
  },
});

export const oneOf = <T extends string>(
  name: string,
  fallback: string,
  meaning: string,
  choices: readonly T[],
): Setting<T> => ({
  name,
  meaning,
  fallback,
  expects: `one of ${choices.join(", ")}`,
  read: (value) => choices.find((choice) => choice === value),
});

export const yesOrNo = (name: string, fallback: "true" | "false", meaning: string): Setting<boolean> => ({
  name,
  meaning,
  fallback,
  expects: "true or false",
  read: (value) => (value === "true" ? true : value === "false" ? false : undefined),
});

/** Comma-separated, without duplicates. */
export const list = <T>(setting: Setting<T>, expects: string): Setting<T[]> => ({
  ...setting,
  expects: `${expects}, comma-separated, without duplicates`,
  read(value) {
    const items = value.split(",").map((item) => setting.read(item.trim()));
    const good = items.filter((item) => item !== undefined);
    return good.length === items.length && new Set(good).size === good.length ? good : undefined;
  },
});

export const orEmpty = <T>(setting: Setting<T[]>): Setting<T[]> => ({
  ...setting,
  read: (value) => (value === "" ? [] : setting.read(value)),
});

/** `name=value,name=value`, the values percent-encoded. */
export const pairs = (name: string, meaning: string): Setting<Record<string, string>> => ({
  name,
  meaning,
  fallback: "",
  fallbackShown: "none",
  expects: "name=value, comma-separated, with percent-encoded values",
  read(value) {
    const found: Record<string, string> = {};
    for (const pair of value.split(",").filter((part) => part.trim() !== "")) {
      const [, key, written] = /^\s*([^\s=]+)\s*=\s*(\S.*?)\s*$/.exec(pair) ?? [];
      if (key === undefined || written === undefined || !isEncoded(written)) return undefined;
      found[key] = decodeURIComponent(written);
    }
    return found;
  },
});

function isEncoded(text: string): boolean {
  try {
    return decodeURIComponent(text) !== "";
  } catch {
    return false;
  }
}

/** A variable that other programs read too, for which empty means not set. */
export const shared = <T>(setting: Setting<T>): Setting<T> => ({
  ...setting,
  read: (value) => setting.read(value.trim() === "" ? setting.fallback : value),
});

/** A URL may hold a password before its host, or a key in its query. */
const hideSecrets = (written: string): string =>
  written.replace(/^(\s*[a-z]+:\/\/)[^/?#]*@/i, `$1${HIDDEN}@`).replace(/\?.+$/s, `?${HIDDEN}`);

const HTTP_URL = /^https?:\/\/[^\s/]+\S*$/i;

export const url = (
  name: string,
  fallback: string,
  meaning: string,
  expects = "an http or https URL",
): Setting<string> => ({
  name,
  meaning,
  fallback,
  expects,
  read: (value) => (HTTP_URL.test(value) && URL.canParse(value) ? value : undefined),
  hide: hideSecrets,
});
