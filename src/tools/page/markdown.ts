import { MAX_PAGE_TEXT } from "./page.ts";

/** What the writer needs of a DOM's node. */
export interface PageNode {
  nodeType: number;
  /** In lower case for elements of HTML. */
  localName?: string | null;
  textContent: string | null;
  childNodes: Iterable<PageNode>;
  getAttribute?(name: string): string | null;
}

const TEXT = 3;
const ELEMENT = 1;
/** Deeper than any page that people wrote; what is below is taken as text. */
const MAX_DEPTH = 200;

const SKIPPED = new Set(
  "title script style noscript template svg iframe object embed canvas audio video head button input select textarea".split(
    " ",
  ),
);
const BLOCKS = new Set(
  (
    "address article aside blockquote body center dd details dialog div dl dt fieldset figcaption figure footer form h1 h2 h3 " +
    "h4 h5 h6 header hgroup hr html legend li main menu nav ol p pre section summary table tbody td tfoot th thead tr ul"
  ).split(" "),
);
const MARKS: Readonly<Record<string, string>> = { b: "**", strong: "**", em: "*", i: "*", del: "~~", s: "~~" };

/**
 * A page's content as Markdown. Links and images are made absolute; only http, https and mailto are kept. Takes time in
 * proportion to the content.
 */
export function toMarkdown(root: PageNode, base: string): string {
  return blocksOf(root, base, 0).join("\n\n");
}

/** The blocks in a node: runs of text and inline elements are paragraphs. */
function blocksOf(parent: PageNode, base: string, depth: number): string[] {
  if (depth > MAX_DEPTH) return paragraph(parent.textContent ?? "");
  const blocks: string[] = [];
  let inline: string[] = [];
  const flush = () => {
    blocks.push(...paragraph(inline.join("")));
    inline = [];
  };
  for (const node of parent.childNodes) {
    if (node.nodeType === ELEMENT && isBlock(node)) {
      flush();
      blocks.push(...blockOf(node, base, depth + 1));
    } else inline.push(inlineOf(node, base, depth + 1));
  }
  flush();
  return blocks;
}

/** Blocks, and inline elements around blocks, such as a link around a card. */
function isBlock(node: PageNode): boolean {
  if (BLOCKS.has(node.localName ?? "")) return true;
  for (const child of node.childNodes) if (BLOCKS.has(child.localName ?? "")) return true;
  return false;
}

function blockOf(node: PageNode, base: string, depth: number): string[] {
  const name = node.localName ?? "";
  if (SKIPPED.has(name)) return [];
  if (/^h[1-6]$/.test(name)) {
    const text = oneLine(inlineChildren(node, base, depth));
    return text === "" ? [] : [`${"#".repeat(Number(name[1]))} ${text}`];
  }
  switch (name) {
    case "hr":
      return ["---"];
    case "pre":
      return [fenced(node)];
    case "blockquote":
      return prefixed(blocksOf(node, base, depth), "> ", "> ");
    case "ul":
    case "menu":
    case "ol":
      return listOf(node, base, depth, name === "ol");
    case "table":
      return tableOf(node, base, depth);
    case "dt": {
      const text = oneLine(inlineChildren(node, base, depth));
      return text === "" ? [] : [`**${text}**`];
    }
    default:
      return blocksOf(node, base, depth);
  }
}

function listOf(list: PageNode, base: string, depth: number, ordered: boolean): string[] {
  const items: string[] = [];
  for (const node of list.childNodes) {
    if (node.nodeType !== ELEMENT) continue;
    const blocks = node.localName === "li" ? blocksOf(node, base, depth + 1) : blockOf(node, base, depth + 1);
    const bullet = ordered ? `${items.length + 1}. ` : "- ";
    items.push(...prefixed(blocks, bullet, " ".repeat(bullet.length), "\n"));
  }
  return items.length === 0 ? [] : [items.join("\n")];
}

/** Blocks as one, with a prefix for its first line and one for the others. */
function prefixed(blocks: string[], first: string, others: string, between = "\n\n"): string[] {
  if (blocks.length === 0) return [];
  // No more of it can be shown, and each level that is around it makes each line longer.
  const lines = blocks.join(between).slice(0, MAX_PAGE_TEXT).split("\n");
  return [lines.map((line, at) => ((at === 0 ? first : others) + line).trimEnd()).join("\n")];
}

/** A table of data. One of a single column is layout, and its cells are blocks. */
function tableOf(table: PageNode, base: string, depth: number): string[] {
  const rows = [...rowsOf(table, depth)].map((row) =>
    [...row.childNodes].filter(({ localName }) => localName === "td" || localName === "th"),
  );
  const columns = rows.reduce((most, row) => Math.max(most, row.length), 0);
  if (columns <= 1 || rows.length <= 1) return rows.flat().flatMap((cell) => blocksOf(cell, base, depth + 1));
  // Rows may have fewer cells than the head: filled up, a small page with one wide row would take gigabytes.
  const line = (cells: string[]) => `| ${cells.join(" | ")} |`;
  const [head = [], ...body] = rows.map((row) =>
    row.map((cell) => oneLine(blocksOf(cell, base, depth + 1).join(" ")).replaceAll("|", "\\|")),
  );
  const whole = Array.from({ length: columns }, (_, at) => head[at] ?? "");
  return [[line(whole), line(whole.map(() => "---")), ...body.map(line)].join("\n")];
}

/** Not those of tables within. */
function* rowsOf(node: PageNode, depth: number): Generator<PageNode> {
  if (depth > MAX_DEPTH) return;
  for (const child of node.childNodes) {
    if (child.localName === "tr") yield child;
    else if (/^(thead|tbody|tfoot)$/.test(child.localName ?? "")) yield* rowsOf(child, depth + 1);
  }
}

function fenced(pre: PageNode): string {
  const text = (pre.textContent ?? "").replace(/^\n/, "").trimEnd();
  const [code] = [...pre.childNodes].filter(({ localName }) => localName === "code");
  const [, language = ""] = /\blang(?:uage)?-([\w+#-]+)/.exec(code?.getAttribute?.("class") ?? "") ?? [];
  const fence = "`".repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length + 1)));
  return `${fence}${language}\n${text}\n${fence}`;
}

const inlineChildren = (node: PageNode, base: string, depth: number): string =>
  depth > MAX_DEPTH
    ? (node.textContent ?? "")
    : [...node.childNodes].map((child) => inlineOf(child, base, depth + 1)).join("");

function inlineOf(node: PageNode, base: string, depth: number): string {
  if (node.nodeType === TEXT) return (node.textContent ?? "").replace(/\s+/g, " ");
  const name = node.localName ?? "";
  if (node.nodeType !== ELEMENT || SKIPPED.has(name)) return "";
  if (name === "br") return "\n";
  if (name === "img") return imageOf(node, base);
  if (name === "code" || name === "kbd" || name === "samp") return surrounded(oneLine(node.textContent ?? ""), "`");
  const text = inlineChildren(node, base, depth);
  if (name === "a") {
    const href = absolute(node.getAttribute?.("href") ?? "", base);
    return href === null || text.trim() === "" ? text : `[${oneLine(text)}](${href})`;
  }
  const mark = MARKS[name];
  return mark === undefined ? text : surrounded(text, mark);
}

function imageOf(node: PageNode, base: string): string {
  const [alt, src] = [oneLine(node.getAttribute?.("alt") ?? ""), absolute(node.getAttribute?.("src") ?? "", base)];
  return alt === "" || src === null ? alt : `![${alt}](${src})`;
}

/** Null for what leads nowhere, such as a place in the same page. */
function absolute(href: string, base: string): string | null {
  if (href === "" || href.startsWith("#")) return null;
  const url = URL.parse(href, base);
  return url !== null && /^(https?|mailto):$/.test(url.protocol)
    ? url.href.replaceAll("(", "%28").replaceAll(")", "%29")
    : null;
}

/** The mark directly around the text, white space outside. */
function surrounded(text: string, mark: string): string {
  const inner = text.trim();
  if (inner === "") return text;
  return text.slice(0, text.indexOf(inner)) + mark + inner + mark + text.slice(text.indexOf(inner) + inner.length);
}

/** Without breaks, and blanks around it. */
export const oneLine = (text: string): string => text.replace(/\s+/g, " ").trim();

function paragraph(text: string): string[] {
  const lines = text.split("\n").map((line) => line.replace(/[ \t]+/g, " ").trim());
  const joined = lines
    .join("\n")
    .replace(/\n{2,}/g, "\n\n")
    .trim();
  return joined === "" ? [] : [joined];
}
