/** Of the characters of a text and of all parts: how many comparisons a search of one part after the other takes at most. */
const MAX_PRODUCT = 4_000_000;

/**
 * Which of the parts occur in a text, in their order. Takes as long as all of it has characters (Aho and Corasick):
 * searching for one after the other takes their product where whoever has written them wants it to.
 */
export function partsIn(text: string, parts: readonly string[], maxProduct = MAX_PRODUCT): boolean[] {
  const characters = parts.reduce((sum, { length }) => sum + length, 0);
  // Ordinary ones are found six times as fast like this, and no text can make it take more than milliseconds.
  if (text.length * characters <= maxProduct) return parts.map((part) => text.includes(part));
  const tree = createTree(characters);
  /** Of each node, the node of its longest end that begins a part too. */
  const ends = new Int32Array(characters + 1);
  const after = (from: number, code: number): number => {
    for (let node = from; ; node = ends[node] ?? 0) {
      const child = tree.child(node, code);
      if (child !== 0 || node === 0) return child;
    }
  };
  const nodes = parts.map(() => 0);
  let left = [...parts.keys()];
  let size = 1;
  // All of one depth before the next: a node's end is less deep than itself.
  for (let depth = 0; left.length > 0; depth++) {
    left = left.filter((at) => depth < (parts[at]?.length ?? 0));
    for (const at of left) {
      const node = nodes[at] ?? 0;
      const code = parts[at]?.charCodeAt(depth) ?? 0;
      let child = tree.child(node, code);
      if (child === 0) {
        child = size++;
        ends[child] = node === 0 ? 0 : after(ends[node] ?? 0, code);
        tree.add(node, code, child);
      }
      nodes[at] = child;
    }
  }
  const isSeen = new Uint8Array(size);
  isSeen[0] = 1;
  for (let at = 0, node = 0; at < text.length; at++) {
    node = after(node, text.charCodeAt(at));
    isSeen[node] = 1;
  }
  for (let node = size - 1; node > 0; node--) if (isSeen[node] === 1) isSeen[ends[node] ?? 0] = 1;
  return nodes.map((node) => isSeen[node] === 1);
}

/** What may follow each beginning of a part; a `Map` takes ten times as long. Node 0 is the root, and nobody's child. */
function createTree(characters: number) {
  const bits = Math.ceil(Math.log2(2 * characters + 2));
  const mask = 2 ** bits - 1;
  const froms = new Int32Array(mask + 1);
  const codes = new Uint16Array(mask + 1);
  const children = new Int32Array(mask + 1);
  const placeOf = (from: number, code: number): number => {
    let place = Math.imul(Math.imul(from, 0x9e3779b1) ^ code, 0x85ebca6b) >>> (32 - bits);
    while (children[place] !== 0 && (froms[place] !== from || codes[place] !== code)) place = (place + 1) & mask;
    return place;
  };
  return {
    child: (from: number, code: number): number => children[placeOf(from, code)] ?? 0,
    add(from: number, code: number, child: number) {
      const place = placeOf(from, code);
      froms[place] = from;
      codes[place] = code;
      children[place] = child;
    },
  };
}
