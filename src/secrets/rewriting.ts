/** A text of which some places were written differently, and the way back to where each comes from. */
export interface Rewritten {
  text: string;
  /** The range of the original that a range of `text` stands for. */
  original(start: number, end: number): [start: number, end: number];
}

/** A text that is being written differently, from its beginning to its end. */
export interface Rewriting {
  /** Writes `by` for a range behind those before. Returns where it stands. */
  replace(start: number, end: number, by: string): number;
  isUnchanged(): boolean;
  /** Call it once. */
  finish(): Rewritten;
}

export function createRewriting(text: string): Rewriting {
  const pieces: string[] = [];
  /** Where each piece begins, there and here: what stays and what is replaced by turns. */
  const [from, to]: [number[], number[]] = [[], []];
  let read = 0;
  let written = 0;
  const add = (piece: string, at: number) => {
    pieces.push(piece);
    from.push(at);
    to.push(written);
    written += piece.length;
  };
  return {
    replace(start, end, by) {
      add(text.slice(read, start), read);
      const at = written;
      add(by, start);
      read = end;
      return at;
    },
    isUnchanged: () => pieces.length === 0,
    finish() {
      add(text.slice(read), read);
      from.push(text.length);
      return {
        text: pieces.join(""),
        original(start, end) {
          const [first, last] = [pieceAt(to, start), pieceAt(to, end - 1)];
          // Of what was replaced, all is meant.
          const begins = (from[first] ?? 0) + (first % 2 === 0 ? start - (to[first] ?? 0) : 0);
          const ends = last % 2 === 0 ? (from[last] ?? 0) + end - (to[last] ?? 0) : (from[last + 1] ?? text.length);
          return [begins, ends];
        },
      };
    },
  };
}

/** The last piece that begins at or before this place, and is not empty. */
function pieceAt(starts: readonly number[], place: number): number {
  let [low, high] = [0, starts.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((starts[middle] ?? 0) <= place) low = middle;
    else high = middle - 1;
  }
  return low;
}
