/** What a terminal of this size shows after this output: its rows, and those that have scrolled off, above them. */
export function shownOn(output: string, columns: number, height = 40): { rows: string[]; row: number; column: number } {
  const rows: string[][] = [[]];
  let row = 0;
  let column = 0;
  const top = () => Math.max(0, rows.length - height);
  const go = (to: number) => {
    row = Math.max(top(), to);
    while (rows.length <= row) rows.push([]);
  };
  const moves: Record<string, (count: number) => void> = {
    A: (count) => go(row - count),
    B: (count) => go(Math.min(row + count, top() + height - 1)),
    G: (count) => {
      column = count - 1;
    },
    H: () => {
      go(top());
      column = 0;
    },
    J: (kind) => {
      if (kind === 2) for (const cells of rows.slice(top())) cells.length = 0;
      else clear(rows.length);
    },
    K: () => clear(row + 1),
  };
  function clear(end: number): void {
    rows[row]?.splice(column);
    for (const cells of rows.slice(row + 1, end)) cells.length = 0;
  }
  const segments = new Intl.Segmenter();
  for (const [piece] of output.matchAll(/\u001b\[\??\d*[A-Za-z]|[^\u001b]+|\u001b/g)) {
    const [, count, letter = ""] = /^\u001b\[(\d*)([A-Z])$/.exec(piece) ?? [];
    if (letter !== "") moves[letter]?.(count === "" ? (letter === "J" ? 0 : 1) : Number(count));
    else if (/^\u001b\[\??\d*[a-z]$/.test(piece)) continue;
    else for (const { segment } of segments.segment(piece)) write(segment);
  }
  function write(character: string): void {
    if (character.startsWith("\r")) column = 0;
    if (character.endsWith("\n")) go(row + 1);
    if (/[\r\n]/.test(character)) return;
    const width = Bun.stringWidth(character);
    if (column + width > columns) {
      go(row + 1);
      column = 0;
    }
    const cells = rows[row] ?? [];
    while (cells.length < column) cells.push(" ");
    cells.splice(column, width, character, ...Array<string>(Math.max(0, width - 1)).fill(""));
    column += width;
  }
  return { rows: rows.map((cells) => cells.join("").trimEnd()), row, column };
}
