import { hash } from "node:crypto";

/** By which a line of the memory's files is known, wherever it moves: without what surrounds it. */
export const hashOfLine = (line: string): string => hash("sha256", line.trim(), "hex").slice(0, 32);

/** Lines that say something, in their order and without what surrounds them. */
const linesOf = (text: string): string[] =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");

/** The lines of a text that another one did not have. A line that it has twice is new once, if that one had it once. */
export function newLines(before: string, after: string): string[] {
  const start = startOfChange(before, after);
  const left = new Map<string, number>();
  for (const line of linesOf(before.slice(start))) left.set(line, (left.get(line) ?? 0) + 1);
  return linesOf(after.slice(start)).filter((line) => {
    const known = left.get(line) ?? 0;
    left.set(line, known - 1);
    return known <= 0;
  });
}

/** The first line in which two texts differ: most changes of a long file add something at its end. */
function startOfChange(before: string, after: string): number {
  let same = 0;
  while (same < before.length && before.charCodeAt(same) === after.charCodeAt(same)) same++;
  return before.slice(0, same).lastIndexOf("\n") + 1;
}

/** The files that are an agent's memory by convention: what runs write into them is known line by line. */
export const isNotesFile = (name: string): boolean => name === "MEMORY.md" || /^memory\/.+\.md$/.test(name);
