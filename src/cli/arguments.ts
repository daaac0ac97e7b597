import { InvalidArgumentError } from "commander";
import { DURATION_FORM, parseDuration } from "../lib/duration.ts";
import { type Micros, parseMoney } from "../lib/money.ts";
import { POLICIES, type Policy } from "../tools/tool.ts";

/** Parsers for options and arguments. What they throw becomes commander's usage error, exit code 2. */

/** `7d` → milliseconds. */
export function durationMs(text: string): number {
  const ms = parseDuration(text);
  if (ms !== null) return ms;
  throw new InvalidArgumentError(`Expected ${DURATION_FORM}.`);
}

/** `durationMs` from so much to a year, as the API takes intervals. */
export const interval =
  (least: string) =>
  (text: string): number => {
    const ms = durationMs(text);
    if (ms >= durationMs(least) && ms <= durationMs(LONGEST_INTERVAL)) return ms;
    throw new InvalidArgumentError(`Expected a time from ${least} to ${LONGEST_INTERVAL}.`);
  };

const LONGEST_INTERVAL = "365d";

/** `5.00` → micro-USDC. Zero is allowed. */
export function amount(text: string): Micros {
  const micros = parseMoney(text);
  if (micros !== null) return micros;
  throw new InvalidArgumentError("Expected an amount in USDC with at most 6 decimals, such as 5.00.");
}

export function positiveAmount(text: string): Micros {
  const micros = amount(text);
  if (micros > 0n) return micros;
  throw new InvalidArgumentError("Expected an amount above zero.");
}

export function count(text: string): number {
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("Expected a whole number from 1 to 999999.");
}

/** What a search finds at most, as the API takes it. */
export function passages(text: string): number {
  if (/^[1-9]\d?$/.test(text) && Number(text) <= 50) return Number(text);
  throw new InvalidArgumentError("Expected a whole number from 1 to 50.");
}

/** Up to a year. */
export function dayCount(text: string): number {
  if (/^[1-9]\d{0,2}$/.test(text) && Number(text) <= 366) return Number(text);
  throw new InvalidArgumentError("Expected a whole number from 1 to 366.");
}

/** An account's limit, or `default` for the host's own; `words` are what else it may be. */
export const limit =
  (min: number, max = 1_000_000, words: readonly ("none" | "default")[] = ["default"]) =>
  (text: string): number | "none" | "default" => {
    const word = words.find((one) => one === text);
    if (word !== undefined) return word;
    if (/^\d{1,16}$/.test(text) && Number(text) >= min && Number(text) <= max) return Number(text);
    throw new InvalidArgumentError(`Expected a whole number from ${min} to ${max}, or ${words.join(" or ")}.`);
  };

/** The id of an event; 0 means the oldest that is kept. */
export function eventId(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("Expected the id of an event: decimal digits.");
}

/** A path, or `s3://bucket/name`: what has another scheme, or a part of that, would become a folder of such a name. */
export function backupFile(text: string): string {
  if (/^s3:\/\/[^/]/.test(text) || !/^(?:[a-z][\w+.-]*:\/\/|s3:)/i.test(text)) return text;
  throw new InvalidArgumentError("Expected a path, or s3://bucket/name.");
}

/** A server's address, without the `/v1` and trailing slash that clients add. */
export function serverUrl(text: string): string {
  const url = URL.parse(text);
  if (url && (url.protocol === "http:" || url.protocol === "https:") && url.username === "" && url.search === "") {
    return (url.origin + url.pathname).replace(/\/+$/, "").replace(/\/v1$/, "");
  }
  throw new InvalidArgumentError("Expected an http or https URL, such as http://127.0.0.1:7373.");
}

/** The name of a saved login. */
export function profileName(text: string): string {
  if (/^[^\s\p{C}_-][^\s\p{C}]{0,199}$/u.test(text)) return text;
  throw new InvalidArgumentError("Expected a name without spaces, such as work.");
}

/** Collects every `--file NAME=PATH`. */
export function fileOfPath(text: string, before: Record<string, string> = {}): Record<string, string> {
  const match = /^([^=]+)=(.*)$/s.exec(text);
  if (match?.[1] === undefined) throw new InvalidArgumentError("Expected NAME=PATH, such as SOUL.md=./soul.md.");
  return { ...before, [match[1]]: match[2] ?? "" };
}

/** Collects every `--tool NAME=POLICY`; null for `default`, which takes the owner's word back. */
export function toolPolicy(text: string, before: Record<string, Policy | null> = {}): Record<string, Policy | null> {
  const [, name, given] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  const policy = given === "default" ? null : POLICIES.find((one) => one === given);
  if (name !== undefined && policy !== undefined) return { ...before, [name]: policy };
  throw new InvalidArgumentError(
    `Expected NAME=POLICY with ${POLICIES.join(", ")} or default, such as write_file=ask.`,
  );
}

/** `30m`, in milliseconds, or `off`: commander takes null for an option without a value. */
export const heartbeat = (text: string): number | "off" => (text === "off" ? "off" : interval("5m")(text));

/** `08:00-20:00` */
export function activeHours(text: string): { from: string; to: string } {
  const [, from, to] = /^(\d\d:\d\d)-(\d\d:\d\d)$/.exec(text) ?? [];
  if (from !== undefined && to !== undefined) return { from, to };
  throw new InvalidArgumentError("Expected two times such as 08:00-20:00.");
}

/** `Name: value`, one more of a request's headers. */
export function headerLine(text: string, before: Record<string, string> = {}): Record<string, string> {
  const [, name, value] = /^([^\s:]+):\s*(.*?)\s*$/.exec(text) ?? [];
  if (name !== undefined && value !== undefined) return { ...before, [name]: value };
  throw new InvalidArgumentError("Expected a header's name and value, such as 'X-Api-Key: {{secret:NAME}}'.");
}
