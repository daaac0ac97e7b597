import { expect, test } from "bun:test";
import { join } from "node:path";
import { FOLDER, ROOT, readPage } from "./pages.ts";

/** The pages that comments cite, by their names in citations. */
const PAGES: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    [...new Bun.Glob("*.md").scanSync({ cwd: FOLDER })].map((name) => [`docs/contract/${name}`, join(FOLDER, name)]),
  ),
  "ARCHITECTURE.md": join(ROOT, "ARCHITECTURE.md"),
};
const CITED = /(?<![\w./-])(?:docs\/contract\/\w+\.md|ARCHITECTURE\.md(?=, [A-Z]))/g;
/** Without its folder a page cannot be found; between backquotes it is a file name, not a citation. */
const NOWHERE =
  /(?<![\w./`-])(?:api(?:-agents)?|billing|security|operations|runtime|architecture)\.md|\b[Ss]pecification,? section/;

/** The comments of a file as running text, one for each run of lines. */
function commentsOf(text: string): string[] {
  const comments: string[] = [];
  let current: string[] = [];
  for (const line of [...text.split("\n"), ""]) {
    const [, own, behind] = /^\s*(?:\/\/|\/\*+|\*(?!\/))(.*)$|[;,{})\]>\w"] \/\/ (.*)$/.exec(line) ?? [];
    if (own !== undefined) current.push(own.replace(/\*\/\s*$/, "").trim());
    else {
      comments.push(current.join(" "), behind ?? "");
      current = [];
    }
  }
  return comments.filter((comment) => comment !== "");
}

async function readComments(): Promise<{ file: string; comment: string }[]> {
  const files = [...new Bun.Glob("{src,test,bench,scripts,eval}/**/*.{ts,tsx,mjs,js,css}").scanSync({ cwd: ROOT })];
  const read = files.map(async (file) =>
    commentsOf(await Bun.file(join(ROOT, file)).text()).map((comment) => ({ file, comment })),
  );
  return (await Promise.all(read)).flat();
}

const comments = await readComments();

test("comments are read across their line breaks", () => {
  expect(commentsOf("/** One\n * two. */\nconst x = 1; // three\n// four\n")).toEqual(["One two.", "three", "four"]);
});

test("no comment cites a page that readers do not have", () => {
  expect(comments.filter(({ comment }) => NOWHERE.test(comment))).toEqual([]);
});

test("every citation names a heading of its page", async () => {
  const read = Object.entries(PAGES).map(async ([name, path]) => [name, (await readPage(path)).headings] as const);
  const headings = new Map(await Promise.all(read));
  const citations = comments.flatMap(({ file, comment }) =>
    Array.from(comment.matchAll(CITED), ({ 0: page, index }) => {
      const behind = comment.slice(index + page.length);
      const isCited = (heading: string) =>
        behind.startsWith(`, ${heading}`) && /^[),.:;]|^$/.test(behind.slice(heading.length + 2));
      return { file, page, behind: behind.slice(0, 60), heading: headings.get(page)?.find(isCited) };
    }),
  );
  expect(citations.length).toBeGreaterThan(50);
  expect(citations.filter(({ heading }) => heading === undefined)).toEqual([]);
});
