import type { InSlices } from "../limits/slices.ts";
import { undoEscapes } from "./escapes.ts";
import { type Joined, joinLines } from "./lines.ts";
import { createNeedleTree, type NeedleTree } from "./needle-tree.ts";
import { COMPARED, needlesOf } from "./needles.ts";
import type { Rewritten } from "./rewriting.ts";

/** How often escapes are undone: a URL in JSON in HTML is three. */
const MAX_LEVELS = 3;
/**
 * How much is read behind a cut, so that a value across it is found by its beginning: for each of the characters that are
 * compared, more than any server writes when it escapes all of them, several times.
 */
const BEYOND = 64 * COMPARED;
/** How many characters are searched at a time. */
const PART = 1_024;

type Range = [start: number, end: number, name: string];

/** What stands where a value was. */
const mark = (name: string): string => `[secret ${name}]`;

/**
 * Replaces every secret's value in a text, in all forms in which servers send values back: as it is, as base64 or
 * hexadecimal, also in lines, and percent-encoded or escaped for JSON, HTML or Markdown, also several times. Values of
 * fewer than four characters are left. Takes time in proportion to the text, in slices.
 */
export async function redact(text: string, secrets: ReadonlyMap<string, string>, inSlices: InSlices): Promise<string> {
  const redactOne = await createRedactor(secrets, inSlices);
  return redactOne === null ? text : await redactOne(text);
}

/** The same for many texts. Null if there is nothing to look for. */
export async function createRedactor(
  secrets: ReadonlyMap<string, string>,
  inSlices: InSlices,
): Promise<((text: string) => Promise<string>) | null> {
  const tree = await createTree(secrets, inSlices);
  return tree.isEmpty() ? null : (text) => redactBy(tree, text, inSlices);
}

/**
 * The same by what `createTree` has made of the secrets. Of a longer text it returns the first `most` characters, and
 * reads no more than may hold the beginning of a value that is cut there.
 */
export async function redactBy(
  tree: NeedleTree,
  whole: string,
  inSlices: InSlices,
  most = whole.length,
): Promise<string> {
  const text = whole.slice(0, most + BEYOND);
  const found: Range[] = [];
  const search = async ({ text: level, original }: Rewritten) => {
    await find(tree, level, [[0, level.length]], inSlices, (start, end, name) =>
      found.push([...original(start, end), name]),
    );
    const joined = await joinLines(level, inSlices);
    if (joined === null) return;
    await find(tree, joined.text, joined.places, inSlices, (start, end, name) =>
      found.push([...original(...joined.original(start, end)), name]),
    );
  };
  let level: Rewritten | null = { text, original: (start, end) => [start, end] };
  for (let depth = 0; level !== null; depth++) {
    const outer: Rewritten = level;
    await search(outer);
    const inner: Rewritten | null = depth < MAX_LEVELS ? await undoEscapes(outer.text, inSlices) : null;
    level = inner && { text: inner.text, original: (start, end) => outer.original(...inner.original(start, end)) };
  }
  return found.length === 0 ? text.slice(0, most) : await inSlices(() => replaced(text, found, most));
}

function replaced(text: string, found: Range[], most: number): string {
  found.sort(([a, aEnd], [b, bEnd]) => a - b || bEnd - aEnd);
  const pieces: string[] = [];
  let done = 0;
  for (const [start, end, name] of found) {
    if (end <= done) continue;
    if (start >= most) break;
    // What overlaps is one thing in two forms.
    if (start >= done) pieces.push(text.slice(done, start), mark(name));
    done = end;
  }
  return (pieces.join("") + text.slice(done, Math.max(done, most))).toWellFormed();
}

/** All that is looked for. */
export async function createTree(secrets: ReadonlyMap<string, string>, inSlices: InSlices): Promise<NeedleTree> {
  const tree = createNeedleTree();
  for (const [name, value] of secrets) {
    await inSlices(() => {
      for (const needle of needlesOf(name, value)) tree.add(needle);
    });
  }
  return tree;
}

async function find(
  tree: NeedleTree,
  text: string,
  places: Joined["places"],
  inSlices: InSlices,
  onFound: (...range: Range) => void,
): Promise<void> {
  for (const [start, end] of places) {
    let at = start;
    const searchSome = () => {
      const until = Math.min(at + PART, end);
      while (at < until) {
        const match = tree.longestAt(text, at);
        if (match) onFound(at, match.end, match.name);
        at = match?.end ?? at + 1;
      }
    };
    while (at < end) await inSlices(searchSome);
  }
}
