import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { loadScript } from "./load-script.ts";

const feed = await loadScript("rss-digest/feed.js");
const recorded = (name: string) => readFileSync(join(import.meta.dir, "../recorded", name), "utf8");

test("RSS 2.0, as a broadcaster gives it, is read without its markup, newest first, those without a date last", () => {
  expect(feed({ text: recorded("news.rss.xml") })).toEqual({
    title: "Example News",
    total: 4,
    items: [
      {
        title: "Solar beats coal & gas for first time",
        link: "https://www.example.com/news/articles/c0001?at_medium=RSS&at_campaign=rss",
        date: "2026-11-21T17:34:52Z",
        summary: "For a whole month, solar gave more power than coal.",
      },
      {
        title: 'Ferry "Ida" – the first without a crew',
        link: "https://www.example.com/news/articles/c0002",
        date: "2026-11-21T04:10:00Z",
        summary: "It crosses the fjord — and back every hour.",
      },
      { title: "Old", link: null, date: "2026-11-01T08:00:00Z", summary: "" },
      {
        title: "Without a date",
        link: "https://www.example.com/news/articles/c0003",
        date: null,
        summary: "All of it is here",
      },
    ],
  });
});

test("Atom, as GitHub gives it, is read with the links of its pages", () => {
  expect(feed({ text: recorded("releases.atom.xml") })).toEqual({
    title: "Release notes from engine",
    total: 2,
    items: [
      {
        title: "v2.0.0",
        link: "https://github.com/ada/engine/releases/tag/v2.0.0",
        date: "2026-11-20T09:14:03Z",
        summary: "Changes Faster & smaller",
      },
      {
        title: "v1.9.0",
        link: "https://github.com/ada/engine/releases/tag/v1.9.0",
        date: "2026-10-01T10:00:00Z",
        summary: "Mends",
      },
    ],
  });
});

test("RSS 1.0 (RDF), with prefixes and its items beside the channel", () => {
  const text = `<?xml version="1.0"?><rdf:RDF xmlns="http://purl.org/rss/1.0/"><channel rdf:about="x"><title>Papers</title></channel>
<item rdf:about="https://example.org/1"><title>One</title><link>https://example.org/1</link><dc:date>2026-11-21</dc:date></item></rdf:RDF>`;
  expect(feed({ text })).toEqual({
    title: "Papers",
    total: 1,
    items: [{ title: "One", link: "https://example.org/1", date: "2026-11-21T00:00:00Z", summary: "" }],
  });
});

test("JSON Feed", () => {
  const items = [
    {
      id: "1",
      title: "A",
      url: "https://a.example/1",
      date_published: "2026-11-21T10:00:00-08:00",
      content_html: "<p>x</p>",
    },
    { id: "2" },
  ];
  expect(feed({ text: JSON.stringify({ version: "https://jsonfeed.org/version/1.1", title: "Blog", items }) })).toEqual(
    {
      title: "Blog",
      total: 2,
      items: [
        { title: "A", link: "https://a.example/1", date: "2026-11-21T18:00:00Z", summary: "x" },
        { title: "(without a title)", link: null, date: null, summary: "" },
      ],
    },
  );
});

test("lines that a tool puts before and after a feed are no part of it", () => {
  const around = (text: string) => `URL: https://example.com/feed\n\n${text}\n[… cut here …]`;
  expect(feed({ text: around(recorded("news.rss.xml")) }).total).toBe(4);
  expect(feed({ text: around('{"title":"Blog","items":[{"title":"A"}]}') }).items[0].title).toBe("A");
});

test("what is older is left out, what has no date is not, and no more come than asked for", () => {
  const text = recorded("news.rss.xml");
  const titles = (input: object) => feed({ text, ...input }).items.map(({ title }: { title: string }) => title[0]);
  expect(titles({ since: "2026-11-21T04:10:00Z" })).toEqual(["S", "F", "W"]);
  expect(titles({ since: "2026-11-21T04:10:01Z" })).toEqual(["S", "W"]);
  expect(titles({ limit: 1 })).toEqual(["S"]);
  expect(feed({ text, limit: 1 }).total).toBe(4);
});

test.each([
  ["Sat, 21 Nov 2026 07:00:00 GMT", "2026-11-21T07:00:00Z"],
  ["Sat, 21 Nov 2026 07:00:00 +0100", "2026-11-21T06:00:00Z"],
  ["Sat, 21 Nov 2026 07:00 EST", "2026-11-21T12:00:00Z"],
  ["21 November 2026 07:00:00 Z", "2026-11-21T07:00:00Z"],
  ["1 Nov 2026 07:00:00", "2026-11-01T07:00:00Z"],
  ["2026-11-21T07:00:00.123+02:00", "2026-11-21T05:00:00Z"],
  ["2026-11-21 07:00", "2026-11-21T07:00:00Z"],
  ["2026-11-21", "2026-11-21T00:00:00Z"],
  ["2026-13-41", null],
  ["Sat, 41 Nov 2026 07:00:00 GMT", null],
  ["yesterday", null],
  ["", null],
])("the date %p is %p", (date, expected) => {
  expect(feed({ text: `<rss><item><title>a</title><pubDate>${date}</pubDate></item></rss>` }).items[0].date).toBe(
    expected,
  );
});

test("a long summary is cut between words", () => {
  const text = `<rss><item><description>${"word ".repeat(500)}</description></item></rss>`;
  const { summary } = feed({ text }).items[0];
  expect(summary.length).toBeLessThanOrEqual(501);
  expect(summary).toEndWith("word…");
});

test.each([
  [{ text: "<html><body>Not a feed</body></html>" }, "this is not a feed"],
  [{ text: '{"data":[]}' }, "this is not a feed"],
  [{ text: "" }, "this is not a feed"],
  [{ text: "<rss/>", since: "yesterday" }, "since: expected a time"],
  [{ text: "<rss/>", limit: 0 }, "limit: expected 1 to 100"],
  [{}, 'expected { "text"'],
])("%p is refused: %s", (input, message) => {
  expect(() => feed(input)).toThrow(message);
});

test("a broken feed gives what can be read", () => {
  expect(feed({ text: "<rss><item><title>a</title></item><item><title>b" }).items).toHaveLength(1);
  expect(feed({ text: "<rss><item/><item><title>a<b></title></item>" }).items[0].title).toBe("a");
  expect(
    feed({ text: "<feed><entry><title>&#0;&#x110000;&bogus;&amp;lt;</title></entry></feed>" }).items[0].title,
  ).toBe("&bogus;<");
});

test("any text is read or refused with an error for readers", () => {
  const piece = fc.constantFrom(
    ..."<rss> <item> </item> <title> </title> <![CDATA[ ]]> <entry <link href=' > & &amp; \" <feed> { } x".split(" "),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
      try {
        expect(feed({ text: pieces.join("") }).total).toBeGreaterThanOrEqual(0);
      } catch (error) {
        expect((error as Error).message).toContain("this is not a feed");
      }
    }),
    { numRuns: 2_000 },
  );
});

test("text that is made to be slow is read at once, and more than the limit refused", () => {
  const filled = (text: string) => `<rss>${text.repeat(Math.floor(1_900_000 / text.length))}`;
  for (const text of [
    "<item>",
    "<item ",
    "<item><title>",
    "<item></item>",
    "<item",
    "<",
    "<![CDATA[",
    "&amp;",
    "<item><description><script></item>",
  ]) {
    expect(feed({ text: filled(text) }).total).toBeLessThanOrEqual(2_000);
  }
  const summary = `<rss><item><description><![CDATA[${"<script>".repeat(200_000)}]]></description></item></rss>`;
  expect(feed({ text: summary }).total).toBe(1);
  expect(() => feed({ text: "x".repeat(2_000_001) })).toThrow("at most 2000000 characters");
});
