import { Readability } from "@mozilla/readability";
import { parseHTML } from "linkedom";
import { oneLine, type PageNode, toMarkdown } from "./markdown.ts";
import { MAX_PAGE_TEXT, type Page } from "./page.ts";

/** Above this, a page is given as plain text: its document would take hundreds of megabytes. */
const MAX_ELEMENTS = 60_000;
/** Above this, even leaving out single elements takes too long: then only the tags themselves are left out. */
const MAX_TAGS = 300_000;
/** An extracted article that is shorter than this may be the wrong part of the page: then all of it is given. */
const MIN_ARTICLE = 250;

const DROPPED = "script,style,noscript,template,svg,math,iframe,object,embed,canvas,audio,video";
const LINES = "p,div,br,li,tr,h1,h2,h3,h4,h5,h6,pre,blockquote,section,article,table,dt,dd,option,title";

/** A page without what nobody reads, and how many elements it has. In proportion to the page, whatever is in it. */
export function strip(html: string): { html: string; elements: number } {
  const elements = countTags(html);
  if (elements > MAX_TAGS) return { html: html.replace(/<[^<>]*>/g, " "), elements };
  const remove = { element: (element: HTMLRewriterTypes.Element) => void element.remove() };
  const comments = (comment: HTMLRewriterTypes.Comment) => void comment.remove();
  const stripped = new HTMLRewriter().on(DROPPED, remove).onDocument({ comments }).transform(html);
  return { html: stripped, elements };
}

function countTags(html: string): number {
  let count = 0;
  for (let at = html.indexOf("<"); at >= 0; at = html.indexOf("<", at + 1)) count++;
  return count;
}

/** Title and text of a stripped page, without structure. In proportion to the page, whatever is in it. */
export function plainPage(stripped: string): Page {
  const pieces: string[] = [];
  const title: string[] = [];
  new HTMLRewriter()
    .on(LINES, { element: () => void pieces.push("\n") })
    .on("title", { text: (piece) => void title.push(piece.text) })
    .onDocument({ text: (piece) => void pieces.push(piece.text) })
    .transform(stripped);
  const text = decodeReferences(pieces.join(""))
    .replace(/[^\S\n]+/g, " ")
    .replace(/ ?\n[\s]*/g, "\n");
  return { title: oneLine(decodeReferences(title.join(""))), text: text.trim().slice(0, MAX_PAGE_TEXT) };
}

/**
 * What a page is about, as Markdown: its article if it has one, else all of it. Null for a page with too many elements.
 * May take very long for a hostile page: call it only where it can be ended.
 */
export function readablePage({ html, elements }: ReturnType<typeof strip>, url: string): Page | null {
  if (elements > MAX_ELEMENTS) return null;
  const { document } = parseHTML(wholeDocument(html));
  const base = URL.parse(document.querySelector("base")?.getAttribute("href") ?? "", url)?.href ?? url;
  const title = oneLine(document.querySelector("title")?.textContent ?? "");
  // It takes the document apart.
  const article = new Readability(document as unknown as Document).parse();
  const isArticle = typeof article?.content === "string" && (article.length ?? 0) >= MIN_ARTICLE;
  const { body } = parseHTML(wholeDocument(isArticle ? (article.content ?? "") : html)).document;
  const text = toMarkdown(body as unknown as PageNode, base).slice(0, MAX_PAGE_TEXT);
  return { title: title || oneLine(article?.title ?? ""), text };
}

/** The parser takes the first element of a fragment for the whole document. */
const wholeDocument = (html: string): string =>
  /<html[\s>]/i.test(html) ? html : `<!doctype html><html><head></head><body>${html}</body></html>`;

const REFERENCES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: " " };

const decodeReferences = (text: string): string =>
  text.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|(amp|lt|gt|quot|apos|nbsp));/gi, (whole, decimal, hex, name) => {
    if (name !== undefined) return REFERENCES[name.toLowerCase()] ?? whole;
    const code = Number.parseInt(decimal ?? hex, decimal === undefined ? 16 : 10);
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
