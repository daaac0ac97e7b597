import { MIN_HIDDEN_LENGTH, type Needle } from "./needles.ts";

/** Finds which of many texts is at a place, without trying them one by one. */
export interface NeedleTree {
  add(needle: Needle): void;
  isEmpty(): boolean;
  /** The longest needle that begins here, and where it ends. */
  longestAt(text: string, at: number): { end: number; name: string } | undefined;
}

interface Node {
  /** By their first character. */
  children: Map<number, Branch>;
}

interface Branch extends Node {
  /** What leads here from the node above. */
  edge: string;
  /** The needle that ends here. */
  needle: Needle | null;
}

/**
 * The characters of a needle that are compared at every place of a text; where they are found, the rest counts as far as
 * it goes. So a place costs no more than this, whatever was stored, and a long value that was cut is found too.
 */
const COMPARED = 1_024;
const STARTS = 1 << 16;

/** A tree of common beginnings (a radix tree). */
export function createNeedleTree(): NeedleTree {
  const root: Node = { children: new Map() };
  /** Most places are ruled out by a look at one byte, for their first four characters. */
  const starts = new Uint8Array(STARTS);

  function add(needle: Needle): void {
    let node: Node = root;
    let rest = needle.text.slice(0, COMPARED);
    starts[hashAt(rest, 0)] = 1;
    for (;;) {
      const branch = node.children.get(rest.charCodeAt(0));
      if (branch === undefined) {
        node.children.set(rest.charCodeAt(0), { edge: rest, needle, children: new Map() });
        return;
      }
      const shared = sharedLength(branch.edge, rest);
      if (shared < branch.edge.length) split(branch, shared);
      rest = rest.slice(shared);
      if (rest === "") {
        branch.needle ??= needle;
        return;
      }
      node = branch;
    }
  }

  return {
    add,
    isEmpty: () => root.children.size === 0,
    longestAt(text, at) {
      if (starts[hashAt(text, at)] === 0) return undefined;
      let longest: { end: number; name: string } | undefined;
      let node: Node = root;
      for (let end = at; ; ) {
        const branch = node.children.get(text.charCodeAt(end));
        if (branch === undefined || !text.startsWith(branch.edge, end)) return longest;
        end += branch.edge.length;
        if (branch.needle) longest = { end: endOf(branch.needle, text, end), name: branch.needle.name };
        node = branch;
      }
    },
  };
}

/** Makes the first characters of an edge one of their own. */
function split(branch: Branch, at: number): void {
  const { edge, needle, children } = branch;
  branch.edge = edge.slice(0, at);
  branch.needle = null;
  branch.children = new Map([[edge.charCodeAt(at), { edge: edge.slice(at), needle, children }]]);
}

function sharedLength(one: string, other: string): number {
  let length = 0;
  while (length < one.length && length < other.length && one.charCodeAt(length) === other.charCodeAt(length)) length++;
  return length;
}

/** Where a needle ends whose compared part ends here. */
function endOf({ text: needle }: Needle, text: string, end: number): number {
  let [last, at] = [end, COMPARED];
  while (at < needle.length && text.charCodeAt(last) === needle.charCodeAt(at)) {
    last++;
    at++;
  }
  return last;
}

/** Of as many characters as the shortest needle has. */
function hashAt(text: string, at: number): number {
  let hash = 0;
  for (let more = 0; more < MIN_HIDDEN_LENGTH; more++) hash = (hash << 3) ^ text.charCodeAt(at + more);
  return hash & (STARTS - 1);
}
