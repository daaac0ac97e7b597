/** The details of a call that stand in the message itself: names of files and folders, cities, what is to be written down. */
import { lazily } from "../../../lib/lazily.ts";
import { sentencesOf } from "../../../lib/words.ts";
import { isGreeting } from "../openings.ts";
import { NAME_WITHIN } from "./file-forms.ts";

const FILE_NAME = new RegExp(NAME_WITHIN, "iu");
const FOLDERS = [
  /\bfolder (?:called |named )?["'“]?([\w-]+(?:\/[\w-]+)*)/i,
  /(?<![\w/-])([\w-]+(?:\/[\w-]+)*) folder\b/i,
];
const QUOTED = /["“”]([^"“”]+)["“”]|(?<!\w)['‘]([^'‘’]+)['’](?!\w)/g;
/** Before "folder", these are no names. */
const NO_NAME = new Set([
  "a",
  "all",
  "an",
  "are",
  "do",
  "empty",
  "for",
  "has",
  "have",
  "in",
  "or",
  "there",
  "you",
  "and",
  "any",
  "is",
  "my",
  "of",
  "our",
  "own",
  "that",
  "the",
  "this",
  "which",
  "what",
  "with",
  "your",
]);

/** "Hello Ada! What time is it?" */
export function withoutGreeting(message: string): string {
  const text = message.trim();
  const [first = "", ...others] = sentencesOf(text);
  return others.length > 0 && isGreeting(first) ? text.slice(text.indexOf(first) + first.length).trim() : text;
}

export const fileNameIn = (message: string): string | null => FILE_NAME.exec(message)?.[0] ?? null;

export function folderIn(message: string): string | null {
  const names = FOLDERS.flatMap((pattern) => pattern.exec(message)?.[1] ?? []);
  return names.find((name) => !NO_NAME.has(name.toLowerCase())) ?? null;
}

/** Without what says nothing about what is wanted: names of files, quotations and numbers become always the same ones. */
export const withoutDetails = (message: string): string =>
  message
    .replace(QUOTED, '"hello"')
    .replace(new RegExp(FILE_NAME, "giu"), "plan.txt")
    .replace(/\d+(?:[.,]\d+)*/g, "7");

/** `Asia/Tokyo` by "tokyo". */
const zonesByCity = lazily(
  () =>
    new Map(
      Intl.supportedValuesOf("timeZone").map((zone) => {
        return [
          zone
            .slice(zone.lastIndexOf("/") + 1)
            .replaceAll("_", " ")
            .toLowerCase(),
          zone,
        ] as const;
      }),
    ),
);

/** `DE` by "germany". */
const countries = lazily(() => {
  const names = new Intl.DisplayNames("en", { type: "region", fallback: "none" });
  const letters = Array.from({ length: 26 }, (_, at) => String.fromCharCode(65 + at));
  const codes = letters.flatMap((a) => letters.map((b) => a + b));
  const named = codes.flatMap((code) => {
    const name = names.of(code)?.toLowerCase();
    return name === undefined ? [] : [[name, code] as const];
  });
  return new Map([...named, ["uk", "GB"], ["england", "GB"], ["scotland", "GB"], ["holland", "NL"]]);
});

/** Null if clocks differ within the country. */
function zoneOfCountry(name: string): string | null {
  const code = countries().get(name);
  const zones = code === undefined ? [] : (new Intl.Locale(`und-${code}`).getTimeZones?.() ?? []);
  const times = zones.map((timeZone) =>
    new Date().toLocaleString("en-GB", { timeZone, dateStyle: "short", timeStyle: "short" }),
  );
  return new Set(times).size === 1 ? (zones[0] ?? null) : null;
}

/** The time zone of the city or country that the message names; null if it names none that has one. */
export function timeZoneIn(message: string): string | null {
  for (const [, words = ""] of message.matchAll(/\bin (?:the )?((?:[\p{L}'-]+ ?){1,3})/giu)) {
    const place = words.trim().toLowerCase().split(" ");
    for (let length = place.length; length > 0; length--) {
      const name = place.slice(0, length).join(" ");
      const zone = zonesByCity().get(name) ?? zoneOfCountry(name);
      if (zone !== null) return zone;
    }
  }
  return null;
}

/** Those of the files whose name the message mentions: "my shopping list" is `shopping-list.md`. The fullest mentions first. */
export function filesMentioned(message: string, names: readonly string[]): readonly string[] {
  // "to-do" and "to do" are `todo.md`.
  const said = ` ${partsOf(message).join(" ")} `;
  const joined = said.replaceAll(" ", "");
  const scored = names.map((name) => {
    const stem = partsOf(name.slice(name.lastIndexOf("/") + 1).replace(/\.\w+$/, ""));
    const isWhole =
      stem.length > 0 &&
      (said.includes(` ${stem.join(" ")} `) || (stem.join("").length >= 4 && joined.includes(stem.join(""))));
    return { name, words: isWhole ? stem.join("").length : 0 };
  });
  const most = Math.max(0, ...scored.map(({ words }) => words));
  return most === 0 ? [] : scored.filter(({ words }) => words === most).map(({ name }) => name);
}

/** What an agent knows of itself, and its notes: somebody who means one of them says its whole name. */
const IS_AGENTS_OWN = /^[A-Z]+\.md$|^memory\/|^tool-output\//;

export const withoutAgentsOwn = (names: readonly string[]): readonly string[] =>
  names.filter((name) => !IS_AGENTS_OWN.test(name));

const SAYS_NOTHING = new Set(
  "a an the my our your this that list file note document recipe text called named about for of on with from in to and do".split(
    " ",
  ),
);

/** Whether the name has all that the phrase says: "my notes about Rome" are not `notes.md`, which has other notes. */
export function isNamedWhole(phrase: string, name: string): boolean {
  const parts = partsOf(name.replace(/\.\w+$/, "")).join("");
  return partsOf(phrase).every((word) => SAYS_NOTHING.has(word) || parts.includes(word));
}

/** What "the list" may be called. */
const IS_LIST = /^(?:list|todo|task|chore|errand|grocerie|shopping|packing)$/;

/**
 * Those whose name or folder has all words of the phrase that say something: "the soup recipe" may be
 * `recipes/lentil-soup.md`. Of a phrase that says no more than "the list", all lists; with `isPlain`, of no other.
 */
export function filesAkin(phrase: string, names: readonly string[], isPlain: boolean): readonly string[] {
  const words = partsOf(phrase);
  const telling = words.filter((word) => !SAYS_NOTHING.has(word));
  const kinds = words.filter((word) => /^(?:list|note|recipe)$/.test(word));
  if (telling.length === 0 ? kinds.length === 0 : isPlain) return [];
  return names.filter((name) => {
    const parts = partsOf(name.replace(/\.\w+$/, ""));
    const isOf = (kind: string) => parts.some((part) => part === kind || (kind === "list" && IS_LIST.test(part)));
    return telling.length === 0 ? kinds.every(isOf) : telling.every((word) => parts.includes(word));
  });
}

/** In lower case, and in the singular: "the pancake recipe" is `pancakes.md`. */
const partsOf = (text: string): string[] =>
  (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).map((word) => word.replace(/(?<=\p{L}{3})s$/u, ""));
