/** The word with the fewest typing errors between it and `word`: letters omitted, added, replaced or swapped. */
export function nearest(word: string, words: readonly string[]): string | undefined {
  const distances = words.map((other) => ({ other, distance: editDistance(word, other) }));
  return distances.sort((a, b) => a.distance - b.distance)[0]?.other;
}

/** The optimal string alignment distance. */
function editDistance(from: string, to: string): number {
  let [before, row]: [number[], number[]] = [[], Array.from({ length: to.length + 1 }, (_, at) => at)];
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const same = from[i - 1] === to[j - 1];
      let least = Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + (same ? 0 : 1));
      const swapped = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      if (swapped) least = Math.min(least, (before[j - 2] ?? 0) + 1);
      next.push(least);
    }
    [before, row] = [row, next];
  }
  return row[to.length] ?? 0;
}
