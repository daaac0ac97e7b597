import { COMPARED, MIN_HIDDEN_LENGTH, type Needle } from "./needles.ts";

/** Finds which of many texts is at a place, without trying them one by one. */
export interface NeedleTree {
  add(needle: Needle): void;
  isEmpty(): boolean;
  /** What it takes of the memory, in characters, without the values. */
  size(): number;
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
  /** The needles whose start ends here: forms of one secret. */
  needles: Needle[];
}

const STARTS = 1 << 16;

/** A tree of common beginnings (a radix tree). */
export function createNeedleTree(): NeedleTree {
  const root: Node = { children: new Map() };
  /** Most places are ruled out by a look at one byte, for their first four characters. */
  const starts = new Uint8Array(STARTS);
  let size = STARTS;

  function add(needle: Needle): void {
    let node: Node = root;
    let rest = needle.start;
    size += rest.length;
    starts[hashAt(rest, 0)] = 1;
    for (;;) {
      const branch = node.children.get(rest.charCodeAt(0));
      if (branch === undefined) {
        node.children.set(rest.charCodeAt(0), { edge: rest, needles: [needle], children: new Map() });
        return;
      }
      const shared = sharedLength(branch.edge, rest);
      if (shared < branch.edge.length) split(branch, shared);
      rest = rest.slice(shared);
      if (rest === "") {
        if (branch.needles.every(({ name }) => name === needle.name)) branch.needles.push(needle);
        return;
      }
      node = branch;
    }
  }

  return {
    add,
    isEmpty: () => root.children.size === 0,
    size: () => size,
    longestAt(text, at) {
      if (starts[hashAt(text, at)] === 0) return undefined;
      let longest: { end: number; name: string } | undefined;
      let node: Node = root;
      for (let end = at; ; ) {
        const branch = node.children.get(text.charCodeAt(end));
        if (branch === undefined || !text.startsWith(branch.edge, end)) return longest;
        end += branch.edge.length;
        const [needle] = branch.needles;
        if (needle) longest = { end: endOf(branch.needles, text, end), name: needle.name };
        node = branch;
      }
    },
  };
}

/** Makes the first characters of an edge one of their own. */
function split(branch: Branch, at: number): void {
  const { edge, needles, children } = branch;
  branch.edge = edge.slice(0, at);
  branch.needles = [];
  branch.children = new Map([[edge.charCodeAt(at), { edge: edge.slice(at), needles, children }]]);
}

function sharedLength(one: string, other: string): number {
  let length = 0;
  while (length < one.length && length < other.length && one.charCodeAt(length) === other.charCodeAt(length)) length++;
  return length;
}

/** Where the longest of the needles ends whose compared part ends here. */
function endOf(needles: Needle[], text: string, start: number): number {
  const long = needles.filter(({ start: { length } }) => length === COMPARED);
  return long.reduce((longest, { whole }) => Math.max(longest, start + sharedFrom(whole(), text, start)), start);
}

/** How much of a needle's rest goes on here. */
function sharedFrom(needle: string, text: string, start: number): number {
  let length = 0;
  while (
    COMPARED + length < needle.length &&
    text.charCodeAt(start + length) === needle.charCodeAt(COMPARED + length)
  ) {
    length++;
  }
  return length;
}

/** Of as many characters as the shortest needle has. */
function hashAt(text: string, at: number): number {
  let hash = 0;
  for (let more = 0; more < MIN_HIDDEN_LENGTH; more++) hash = (hash << 3) ^ text.charCodeAt(at + more);
  return hash & (STARTS - 1);
}
