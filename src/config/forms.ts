import { type Micros, parseMoney } from "../lib/money.ts";

/** One setting, described once: what `loadConfig` reads, what help, `roost config` and docs/settings.md show. */
export interface Setting<T> {
  /** Of the environment; without `ROOST_` and in lower case, of `roost.toml`. */
  name: string;
  meaning: string;
  /** As it would be written. */
  fallback: string;
  /** The default in words, where it is none, or not the same everywhere. */
  fallbackShown?: string;
  /** The form of a value, with its unit. */
  expects: string;
  /** Undefined for text that is not of the expected form. */
  read(text: string): T | undefined;
  secret?: true;
  /** A value as it may be shown; absent where all of it may. */
  hide?(written: string): string;
  /** Says where the settings file is, so it cannot stand there. */
  notInFile?: true;
}

export const isSetting = (group: unknown): group is Setting<unknown> =>
  typeof group === "object" && group !== null && "read" in group;

/** `ROOST_PORT` → `port`. */
export const keyOf = (name: string): string => name.slice("ROOST_".length).toLowerCase();

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

/** Empty is none, and the default. */
export const orNull = (setting: Setting<string>): Setting<string | null> => ({
  fallbackShown: "none",
  ...setting,
  read: (value) => (value === "" ? null : setting.read(value)),
});

export const masked = <T>(setting: Setting<T>): Setting<T> => ({ ...setting, secret: true, hide: () => HIDDEN });

const HIDDEN = "********";

/** Services put a customer's key in the path, the query or before the host: scheme and host are shown. */
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
  { least = 1, most = 1_000_000, unit }: { least?: number; most?: number; unit?: string } = {},
): Setting<number> => ({
  name,
  meaning,
  fallback: String(fallback),
  expects: `a whole number${unit === undefined ? "" : ` of ${unit}`} from ${least} to ${most}`,
  read: (value) =>
    /^\d{1,16}$/.test(value) && Number(value) >= least && Number(value) <= most ? Number(value) : undefined,
});

export const amount = (name: string, fallback: string, meaning: string): Setting<Micros> => ({
  name,
  meaning,
  fallback,
  expects: `an amount in USDC with at most 6 decimals, such as 2.50`,
  read: (value) => parseMoney(value) ?? undefined,
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

/** Comma-separated, none of them twice. */
export const list = <T>(setting: Setting<T>, expects: string): Setting<T[]> => ({
  ...setting,
  expects: `${expects}, comma-separated, none twice`,
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

const HTTP_URL = /^https?:\/\/[^\s/]+\S*$/;

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
});
