import { basename, join } from "node:path";

export const ROOT = join(import.meta.dir, "../..");
export const FOLDER = join(ROOT, "docs/contract");

/** A page of Markdown, as these tests read it. */
export interface Page {
  /** `api.md`. */
  name: string;
  text: string;
  headings: string[];
  /** The rows of its tables, each as its cells, without headings. Code spans keep their backquotes. */
  rows: string[][];
  /** The fenced blocks, in order. */
  blocks: Block[];
}

export interface Block {
  language: string;
  content: string;
}

const FENCE = /^```(\w*)\n([\s\S]*?)^```$/gm;

/** Throws if there is no such file. */
export async function readPage(path: string): Promise<Page> {
  const text = await Bun.file(path).text();
  const prose = text.replace(FENCE, "");
  return {
    name: basename(path),
    text,
    headings: Array.from(prose.matchAll(/^#{1,3} (.+)$/gm), ([, heading]) => heading ?? ""),
    rows: Array.from(prose.matchAll(/^\|[-|]+\|\n((?:\|.*\|\n)+)/gm), ([, body]) => body ?? "")
      .flatMap((body) => body.trimEnd().split("\n"))
      .map((row) =>
        row
          .slice(1, -1)
          .split("|")
          .map((cell) => cell.trim()),
      ),
    blocks: Array.from(text.matchAll(FENCE), ([, language = "", content = ""]) => ({ language, content })),
  };
}

/** The text under a heading, up to the next one of the same or a higher level. */
export function sectionOf({ text }: Pick<Page, "text">, heading: string): string {
  const level = new RegExp(`^(#+) ${heading}$`, "m").exec(text);
  if (level === null) throw new Error(`there is no heading ${heading}`);
  const rest = text.slice(level.index + level[0].length);
  const end = rest.search(new RegExp(`^#{1,${level[1]?.length}} `, "m"));
  return end < 0 ? rest : rest.slice(0, end);
}

/** The anchor of a heading. */
export const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-");

/** The code spans outside of fenced blocks. */
export const codeIn = (text: string): string[] =>
  Array.from(text.replace(FENCE, "").matchAll(/`([^`\n]+)`/g), ([, code]) => code ?? "");

const NAMES = ["api", "billing", "operations", "security", "runtime"] as const;
export type PageName = (typeof NAMES)[number];

/** The pages of docs/contract, by their names without `.md`. */
export async function readContract(): Promise<Record<PageName, Page>> {
  const pages = await Promise.all(
    NAMES.map(async (name) => [name, await readPage(join(FOLDER, `${name}.md`))] as const),
  );
  return Object.fromEntries(pages) as Record<PageName, Page>;
}
