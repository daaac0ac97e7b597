import type { InSlices } from "../limits/slices.ts";
import { undoEscapes } from "./escapes.ts";
import { createNeedleTree, type NeedleTree } from "./needle-tree.ts";
import { COMPARED, needlesOf } from "./needles.ts";

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
 * hexadecimal, and percent-encoded or escaped for JSON, HTML or Markdown, also several times. Values of fewer than
 * four characters are left. Takes time in proportion to the text, in slices.
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
  await find(tree, text, inSlices, (...range) => found.push(range));
  let level = await undoEscapes(text, inSlices);
  let original = (start: number, end: number): [number, number] => [start, end];
  for (let depth = 1; level !== null; depth++) {
    const outer = original;
    const inner = level.original;
    original = (start, end) => outer(...inner(start, end));
    await find(tree, level.text, inSlices, (start, end, name) => found.push([...original(start, end), name]));
    level = depth < MAX_LEVELS ? await undoEscapes(level.text, inSlices) : null;
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
  inSlices: InSlices,
  onFound: (...range: Range) => void,
): Promise<void> {
  let at = 0;
  const searchSome = () => {
    const end = Math.min(at + PART, text.length);
    while (at < end) {
      const match = tree.longestAt(text, at);
      if (match) onFound(at, match.end, match.name);
      at = match?.end ?? at + 1;
    }
  };
  while (at < text.length) await inSlices(searchSome);
}
