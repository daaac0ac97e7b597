import { createHash } from "node:crypto";

/** By which a line of the memory's files is known, wherever it moves: without what surrounds it. */
export const hashOfLine = (line: string): string => createHash("sha256").update(line.trim()).digest("hex").slice(0, 32);

/** Lines that say something, in their order. */
export const linesOf = (text: string): string[] => text.split("\n").filter((line) => line.trim() !== "");

/** The files that are an agent's memory by convention: what runs write into them is known line by line. */
export const isNotesFile = (name: string): boolean => name === "MEMORY.md" || /^memory\/.+\.md$/.test(name);
