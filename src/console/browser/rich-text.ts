import { Lexer, type MarkedToken, type Token, type Tokens } from "marked";
import { make, makeCopyButton } from "./dom.ts";

export interface RichText {
  element: HTMLElement;
  add(delta: string): void;
  set(text: string): void;
  isEmpty(): boolean;
}

/** How long deltas are gathered before they are shown. */
const GATHER_MS = 50;
/** How many characters are read at once: it would take too long to read the marks of more again and again. */
const MAX_READ = 64_000;

/**
 * An agent's answer, whose Markdown is shown. Nothing of it becomes markup of the page: HTML in it stays text, pictures
 * are links, and nothing is loaded until somebody follows a link. What grows a while after `add` grows in `change`.
 */
export function makeRichText(change: (grow: () => void) => void): RichText {
  const element = make("div", "said");
  let text = "";
  let read = makeReader();
  let timer: ReturnType<typeof setTimeout> | undefined;
  /** What is shown, by the text of each block: blocks that have not changed stay, with what is selected in them. */
  let shown: string[] = [];

  function show(): void {
    clearTimeout(timer);
    timer = undefined;
    const blocks = read(text.replaceAll(/\r\n?/g, "\n"));
    let same = 0;
    while (same < shown.length && shown[same] === blocks[same]?.raw) same++;
    for (const old of [...element.children].slice(same)) old.remove();
    element.append(...blocks.slice(same).map(({ node }) => node()));
    shown = blocks.map(({ raw }) => raw);
  }
  return {
    element,
    add(delta) {
      text += delta;
      timer ??= setTimeout(() => change(show), shown.length === 0 ? 0 : GATHER_MS);
    },
    set(next) {
      text = next;
      read = makeReader();
      show();
    },
    isEmpty: () => text === "",
  };
}

interface Block {
  raw: string;
  node(): HTMLElement;
}

/** Reads the blocks of a text that grows. Those far from its end are not read again: nothing that follows changes them. */
function makeReader(): (text: string) => Block[] {
  const closed: Block[] = [];
  let length = 0;
  return (text) => {
    for (;;) {
      const part = text.slice(length, length + MAX_READ);
      const tokens = tokensOf(part);
      if (tokens && length + part.length === text.length) return [...closed, ...blocksOf(tokens)];
      // The last may go on after this part.
      const whole = tokens?.slice(0, tokens.findLastIndex(isShown)) ?? [];
      const raw = whole.map((token) => token.raw).join("");
      // What is one block of more than this, or nested too deeply to be read, is shown as it is written.
      if (raw === "" || !part.startsWith(raw)) return [...closed, asWritten(text.slice(length))];
      closed.push(...blocksOf(whole));
      length += raw.length;
    }
  };
}

function tokensOf(text: string): Token[] | null {
  try {
    return new Lexer({ gfm: true, breaks: true }).lex(text);
  } catch {
    return null;
  }
}

const blocksOf = (tokens: readonly Token[]): Block[] =>
  tokens.filter(isShown).map((token) => ({ raw: token.raw, node: () => make("div", "", nodeOf(token)) }));
const asWritten = (text: string): Block => ({ raw: text, node: () => make("p", "", text) });

const isShown = ({ type }: Token) => type !== "space" && type !== "def";
const nodesOf = (tokens: readonly Token[] = []): (Node | string)[] => tokens.filter(isShown).map(nodeOf);

function nodeOf(found: Token): Node | string {
  const token = found as MarkedToken;
  switch (token.type) {
    case "heading":
      return make(HEADINGS[token.depth - 1] ?? "h6", "", ...nodesOf(token.tokens));
    case "paragraph":
      return make("p", "", ...nodesOf(token.tokens));
    case "list":
      return listOf(token);
    case "blockquote":
      return make("blockquote", "", ...nodesOf(token.tokens));
    case "code":
      return codeOf(token);
    case "table":
      return tableOf(token);
    case "hr":
      return make("hr");
    case "br":
      return make("br");
    case "strong":
    case "em":
    case "del":
      return make(token.type, "", ...nodesOf(token.tokens));
    case "codespan":
      return make("code", "", token.text);
    case "checkbox":
      return token.checked ? "☑ " : "☐ ";
    case "link":
      return linkTo(token.href, nodesOf(token.tokens), token.text);
    case "image":
      return linkTo(token.href, [plain(token.text) || token.href], token.text);
    case "escape":
      return token.text;
    case "text":
      return token.tokens ? make("span", "", ...nodesOf(token.tokens)) : plain(token.text);
    default:
      return token.raw;
  }
}

/** Below the page's own. */
const HEADINGS = ["h2", "h3", "h4", "h5", "h6"] as const;

function listOf({ ordered, start, items }: Tokens.List): HTMLElement {
  const list = make(ordered ? "ol" : "ul", "", ...items.map(({ tokens }) => make("li", "", ...nodesOf(tokens))));
  if (list instanceof HTMLOListElement && typeof start === "number") list.start = start;
  return list;
}

/** It scrolls, so it can be reached by keyboard. */
function codeOf({ text, lang }: Tokens.Code): HTMLElement {
  const code = make("code", "", text);
  const box = make("pre", "", code);
  box.tabIndex = 0;
  const language = make("span", "soft", lang?.split(/\s/, 1)[0] ?? "");
  return make(
    "div",
    "snippet",
    make(
      "div",
      "",
      language,
      makeCopyButton("the code", () => text, code),
    ),
    box,
  );
}

function tableOf({ header, rows }: Tokens.Table): HTMLElement {
  const rowOf = (tag: "th" | "td") => (cells: Tokens.TableCell[]) =>
    make("tr", "", ...cells.map((cell) => cellOf(tag, cell)));
  const body = make("tbody", "", ...rows.map(rowOf("td")));
  const box = make("div", "wide", make("table", "", make("thead", "", rowOf("th")(header)), body));
  box.tabIndex = 0;
  return box;
}

function cellOf(tag: "th" | "td", { tokens, align }: Tokens.TableCell): HTMLElement {
  const cell = make(tag, "", ...nodesOf(tokens));
  if (align) cell.style.textAlign = align;
  return cell;
}

/** A link that says where it leads, since its text may say something else. */
function linkTo(href: string, shown: (Node | string)[], text: string): Node {
  const url = URL.parse(plain(href));
  if (url === null || !/^(https?|mailto):$/.test(url.protocol)) return make("span", "", ...shown);
  const link = make("a", "", ...shown);
  link.href = url.href;
  link.target = "_blank";
  link.rel = "noopener noreferrer nofollow";
  link.title = url.href;
  const host = url.host || url.pathname;
  return says(text, url, host) ? link : make("span", "", link, make("small", "soft", ` (${host})`));
}

/** Whether the text of a link is its host, or begins with it: `bank.co` is not where `bank.com` leads. */
function says(text: string, { username, password }: URL, host: string): boolean {
  const told = text.replace(/^(https?:\/\/|mailto:)/, "");
  return username + password === "" && told.startsWith(host) && /^([/?#]|$)/.test(told.slice(host.length));
}

const ENTITIES: Record<string, string> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  "#39": "'",
  apos: "'",
  nbsp: "\u00a0",
};
/** Without the few entities that models write. */
const plain = (text: string): string =>
  text.replace(/&(amp|lt|gt|quot|#39|apos|nbsp);/g, (whole, name: string) => ENTITIES[name] ?? whole);
