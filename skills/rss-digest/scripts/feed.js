/**
 * Reads a feed: RSS 0.9 to 2.0, RDF, Atom, or JSON Feed.
 *
 * Input: { "text": "<rss …" }; "since": "2026-11-21T07:00:00Z" leaves out what is older; "limit" (1 to 100, default 20).
 * Result: { "title", "total", "items": [{ "title", "link", "date", "summary" }] }, newest first; `date` in UTC, null if it has none
 * that can be read: such items are never left out for their age. Links other than http and https are left out.
 */

const MAX_TEXT = 2_000_000;
const MAX_ITEMS = 2_000;
const MAX_SUMMARY = 500;
/** A fetched feed may have a few lines before it, such as its address. */
const MAX_HEAD = 10_000;
const ROOT = /<(?:\w+:)?(?:rss|RDF|feed)[\s>]/;
const ATOM = /<(?:\w+:)?feed[\s>]/;

export default function feed(input) {
  const { text, since, limit = 20 } = input ?? {};
  if (typeof text !== "string") throw new Error('expected { "text": "<rss …" }');
  if (text.length > MAX_TEXT) throw new Error(`text: expected at most ${MAX_TEXT} characters`);
  if (!Number.isInteger(limit) || limit < 1 || limit > 100) throw new Error("limit: expected 1 to 100");
  const from = since === undefined ? Number.NEGATIVE_INFINITY : Date.parse(since);
  if (Number.isNaN(from)) throw new Error('since: expected a time such as "2026-11-21T07:00:00Z"');
  const { title, items } = ROOT.test(text.slice(0, MAX_HEAD)) ? fromXml(text) : fromJson(text);
  const fresh = items.filter(({ date }) => date === null || Date.parse(date) >= from);
  const age = ({ date }) => (date === null ? Number.NEGATIVE_INFINITY : Date.parse(date));
  fresh.sort((a, b) => (age(a) === age(b) ? 0 : age(b) - age(a)));
  return { title, total: fresh.length, items: fresh.slice(0, limit).map(show) };
}

/** Summaries are long: they are read only of those items that are shown. */
const item = (title, link, date, readSummary) => ({ title, link, date: toTime(date), readSummary });

const show = ({ title, link, date, readSummary }) => ({
  title: plain(title).slice(0, 300) || "(without a title)",
  link: /^https?:\/\//i.test(link) ? link : null,
  date,
  summary: shorten(plain(readSummary())),
});

function fromJson(text) {
  let value;
  try {
    value = JSON.parse(text.slice(text.indexOf("{"), text.lastIndexOf("}") + 1));
  } catch {
    value = null;
  }
  if (!Array.isArray(value?.items)) throw new Error("this is not a feed: expected RSS, Atom or JSON Feed");
  const items = value.items.slice(0, MAX_ITEMS).map((one) => {
    const date = one.date_published ?? one.date_modified;
    const readSummary = () => one.summary ?? one.content_text ?? one.content_html;
    return item(one.title, one.url ?? one.external_url ?? "", date, readSummary);
  });
  return { title: plain(value.title), items };
}

// XML, as far as feeds need it: what an element of this name holds, with any prefix or none

function fromXml(source) {
  const isAtom = ATOM.test(source.slice(0, MAX_HEAD));
  const parts = elements(source, isAtom ? "entry" : "item");
  const head = parts.length > 0 ? source.slice(0, parts[0].at) : source;
  const items = parts.map(({ inner }) => {
    const one = (...names) => names.reduce((found, name) => found || textOf(inner, name), "");
    return isAtom
      ? item(one("title"), atomLink(inner), one("published", "updated"), () => one("summary", "content"))
      : item(one("title"), one("link", "guid"), one("pubDate", "date"), () => one("description", "encoded"));
  });
  return { title: plain(textOf(head, "title")), items };
}

/** Found by searching on from each end, so that a broken feed costs no more than its length. */
function elements(source, name, most = MAX_ITEMS) {
  const found = [];
  const { begin, end } = tagsOf(name);
  begin.lastIndex = 0;
  for (let match = begin.exec(source); match && found.length < most; match = begin.exec(source)) {
    if (match[0].endsWith("/>")) continue;
    end.lastIndex = begin.lastIndex;
    const closing = end.exec(source);
    if (!closing) break;
    found.push({ at: match.index, inner: source.slice(begin.lastIndex, closing.index) });
    begin.lastIndex = end.lastIndex;
  }
  return found;
}

const TAGS = new Map();

function tagsOf(name) {
  const known = TAGS.get(name);
  if (known) return known;
  const begin = new RegExp(`<(?:[\\w.-]+:)?${name}(?:\\s[^<>]*)?>`, "g");
  const made = { begin, end: new RegExp(`</(?:[\\w.-]+:)?${name}\\s*>`, "g") };
  TAGS.set(name, made);
  return made;
}

function textOf(source, name) {
  const [first] = elements(source, name, 1);
  return first ? unwrap(first.inner).trim() : "";
}

/** The page itself, not its comments or the feed. */
function atomLink(inner) {
  const links = (inner.match(/<(?:\w+:)?link\s[^<>]*>/g) ?? []).map((tag) => ({
    rel: attribute(tag, "rel") || "alternate",
    href: attribute(tag, "href"),
  }));
  return (links.find(({ rel }) => rel === "alternate") ?? links[0])?.href ?? "";
}

const attribute = (tag, name) => decode(new RegExp(`\\s${name}\\s*=\\s*["']([^"']*)["']`).exec(tag)?.[1] ?? "");

/** Texts in CDATA are as they are, others have entities. */
function unwrap(inner) {
  const parts = inner.split(/<!\[CDATA\[|\]\]>/);
  return parts.map((part, at) => (at % 2 === 1 ? part : decode(part))).join("");
}

const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: " ", ndash: "–", mdash: "—", hellip: "…" };
const QUOTES = { lsquo: "‘", rsquo: "’", ldquo: "“", rdquo: "”" };

function decode(text) {
  return text.replace(/&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|(\w{2,8}));/g, (whole, decimal, hex, name) => {
    if (name !== undefined) return { ...ENTITIES, ...QUOTES }[name] ?? whole;
    const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal);
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : "";
  });
}

/** Without tags: summaries are HTML within XML, so entities are read once more. */
function plain(text) {
  const html = typeof text === "string" ? text : "";
  const bare = without(without(html, "script"), "style")
    .replace(/<\/?(?:p|br|div|li|h\d)[^<>]*>/gi, " ")
    .replace(/<[^<>]*>/g, "");
  return decode(bare).replace(/\s+/g, " ").trim();
}

/** What stands in this element is not for readers. */
function without(html, name) {
  const [first = "", ...rest] = html.split(new RegExp(`<${name}(?=[\\s>])`, "i"));
  return first + rest.map((part) => part.split(`</${name}>`).slice(1).join("")).join("");
}

const shorten = (text) => (text.length > MAX_SUMMARY ? `${text.slice(0, MAX_SUMMARY).replace(/\s\S*$/, "")}…` : text);

const ZONES = {
  EST: "-0500",
  EDT: "-0400",
  CST: "-0600",
  CDT: "-0500",
  MST: "-0700",
  MDT: "-0600",
  PST: "-0800",
  PDT: "-0700",
};
const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

/** RFC 822 dates ("Sat, 21 Nov 2026 07:00:00 GMT") and those of RFC 3339. */
function toTime(given) {
  const text = String(given ?? "").trim();
  const iso = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(?:\.\d+)?\s*(Z|[+-]\d\d:?\d\d)?)?$/i.exec(text);
  if (iso) return format(iso[1], iso[2] ?? "00:00", iso[3] ?? "Z");
  const mail = /^(?:\w+,\s*)?(\d{1,2})\s+(\w{3})\w*\s+(\d{4})\s+(\d\d:\d\d(?::\d\d)?)\s*(\S*)$/.exec(text);
  const month = mail ? MONTHS.indexOf(mail[2]) + 1 : 0;
  if (month === 0) return null;
  const day = `${mail[3]}-${String(month).padStart(2, "0")}-${mail[1].padStart(2, "0")}`;
  return format(day, mail[4], ZONES[mail[5]] ?? (/^[+-]\d{4}$/.test(mail[5]) ? mail[5] : "Z"));
}

function format(day, time, zone) {
  const offset = /^z$/i.test(zone) ? "Z" : zone.replace(/^([+-]\d\d):?(\d\d)$/, "$1:$2");
  const moment = Date.parse(`${day}T${time.length === 5 ? `${time}:00` : time}${offset}`);
  return Number.isNaN(moment) ? null : `${new Date(moment).toISOString().slice(0, 19)}Z`;
}
