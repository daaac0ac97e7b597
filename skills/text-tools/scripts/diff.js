/**
 * Compares two texts line by line, as a unified diff with the fewest changed lines (Myers' algorithm).
 *
 * Input: { "before": "…", "after": "…" }; "context" (0 to 20, default 3) is how many unchanged lines are shown around a
 * change; "names": ["old.txt", "new.txt"].
 * Result: { "same", "added", "removed", "minimal", "diff" }. `minimal` is false where the texts differ so much that the search
 * was ended: the diff is right then, but may not be the shortest.
 */

const MAX_TEXT = 1_000_000;
const MAX_LINES = 50_000;
/** Of the search: its time grows with the square of the number of changes. */
const MAX_CHANGES = 1_000;
const MAX_DIFF = 200_000;

export default function diff(input) {
  const { before, after, context = 3, names = ["before", "after"] } = input ?? {};
  if (typeof before !== "string" || typeof after !== "string")
    throw new Error('expected { "before": "…", "after": "…" }');
  if (!Number.isInteger(context) || context < 0 || context > 20) throw new Error("context: expected 0 to 20");
  const [a, b] = [split(before, "before"), split(after, "after")];
  const { edits, minimal } = compare(a, b);
  const added = edits.filter(({ sign }) => sign === "+").length;
  const removed = edits.filter(({ sign }) => sign === "-").length;
  if (added + removed === 0) return { same: true, added, removed, minimal, diff: "" };
  const text = [`--- ${names[0]}`, `+++ ${names[1]}`, ...hunks(edits, context)].join("\n");
  const shown =
    text.length > MAX_DIFF ? `${text.slice(0, MAX_DIFF)}\n… (cut here, of ${text.length} characters)` : text;
  return { same: false, added, removed, minimal, diff: shown };
}

/** Lines with their ends told apart: a last line without one differs from one that has it. */
function split(text, field) {
  if (text.length > MAX_TEXT) throw new Error(`${field}: expected at most ${MAX_TEXT} characters`);
  const lines = text === "" ? [] : text.replace(/\r\n?/g, "\n").split("\n");
  if (lines.length > MAX_LINES) throw new Error(`${field}: expected at most ${MAX_LINES} lines`);
  if (lines.length === 0) return lines;
  const last = lines.pop();
  return last === "" ? lines : [...lines, `${last}\n\\ No newline at end`];
}

/** Equal beginnings and ends need no search. */
function compare(a, b) {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const [middleA, middleB] = [a.slice(start, a.length - end), b.slice(start, b.length - end)];
  const found = search(middleA, middleB);
  const kept = (lines) => lines.map((line) => ({ sign: " ", line }));
  const edits = [
    ...kept(a.slice(0, start)),
    ...(found ?? replaced(middleA, middleB)),
    ...kept(a.slice(a.length - end)),
  ];
  return { edits, minimal: found !== null };
}

/** Everything taken out, and everything put in. */
const replaced = (a, b) => [...a.map((line) => ({ sign: "-", line })), ...b.map((line) => ({ sign: "+", line }))];

/** The furthest that each diagonal reaches with 0, 1, 2… changes; null beyond `MAX_CHANGES`. */
function search(a, b) {
  const most = Math.min(a.length + b.length, MAX_CHANGES);
  const middle = most + 1;
  const reached = new Int32Array(2 * most + 3);
  const trail = [];
  for (let changes = 0; changes <= most; changes++) {
    // What these changes start from: one diagonal more on each side than they reach.
    trail.push(reached.slice(middle - changes - 1, middle + changes + 2));
    for (let diagonal = -changes; diagonal <= changes; diagonal += 2) {
      const at = middle + diagonal;
      const isDown = diagonal === -changes || (diagonal !== changes && reached[at - 1] < reached[at + 1]);
      let x = isDown ? reached[at + 1] : reached[at - 1] + 1;
      while (x < a.length && x - diagonal < b.length && a[x] === b[x - diagonal]) x++;
      reached[at] = x;
      if (x >= a.length && x - diagonal >= b.length) return walkBack(a, b, trail);
    }
  }
  return null;
}

function walkBack(a, b, trail) {
  const edits = [];
  let x = a.length;
  let y = b.length;
  const keepDown = (toX, toY) => {
    while (x > toX && y > toY) {
      edits.push({ sign: " ", line: a[--x] });
      y--;
    }
  };
  for (let changes = trail.length - 1; changes > 0; changes--) {
    const reached = trail[changes];
    const at = x - y + changes + 1;
    const isDown = at === 1 || (at !== 2 * changes + 1 && reached[at - 1] < reached[at + 1]);
    const fromX = isDown ? reached[at + 1] : reached[at - 1];
    keepDown(isDown ? fromX : fromX + 1, 0);
    if (isDown) edits.push({ sign: "+", line: b[--y] });
    else edits.push({ sign: "-", line: a[--x] });
  }
  keepDown(0, 0);
  return edits.reverse();
}

function hunks(edits, context) {
  const changed = edits.flatMap(({ sign }, at) => (sign === " " ? [] : [at]));
  const ranges = [];
  for (const at of changed) {
    const last = ranges[ranges.length - 1];
    if (last && at - context <= last.to) last.to = at + context + 1;
    else ranges.push({ from: Math.max(0, at - context), to: at + context + 1 });
  }
  const lines = [];
  let [lineA, lineB, at] = [1, 1, 0];
  const skip = (to) => {
    for (; at < to; at++) {
      if (edits[at].sign !== "+") lineA++;
      if (edits[at].sign !== "-") lineB++;
    }
  };
  for (const { from, to } of ranges) {
    skip(from);
    const part = edits.slice(from, to);
    const [a, b] = ["+", "-"].map((other) => part.filter(({ sign }) => sign !== other).length);
    // An empty side begins after the line before it.
    lines.push(`@@ -${span(lineA, a)} +${span(lineB, b)} @@`);
    for (const { sign, line } of part) lines.push(`${sign}${line}`);
    skip(Math.min(to, edits.length));
  }
  return lines;
}

const span = (line, count) => (count === 1 ? String(line) : `${count === 0 ? line - 1 : line},${count}`);
