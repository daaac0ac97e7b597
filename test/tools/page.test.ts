import { afterAll, describe, expect, test } from "bun:test";
import { createPageReader } from "../../src/tools/page/page-reader.ts";

const reader = createPageReader({ plainMs: 60_000, readableMs: 60_000 });
afterAll(() => reader.close());
const never = new AbortController().signal;
const read = (html: string, url = "https://example.org/dir/page") => reader.read("acc_a", html, url, never);
const bodyOf = async (html: string) => (await read(`<html><body>${html}</body></html>`)).text;

describe("Markdown of a page", () => {
  test.each([
    ["<h2>One <em>two</em></h2><p>Three<br>four</p>", "## One *two*\n\nThree\nfour"],
    ["<p>a <b> bold </b>and<code>x  y</code></p>", "a **bold** and`x y`"],
    ["<ul><li>one<li>two<ul><li>deep</ul></ul>", "- one\n- two\n  - deep"],
    ["<ol><li><p>one</p><p>more</p></li><li>two</ol>", "1. one\n   more\n2. two"],
    ["<blockquote><p>a</p><p>b</p></blockquote>", "> a\n>\n> b"],
    ['<pre><code class="language-ts">let a = `b`;\n  c</code></pre>', "```ts\nlet a = `b`;\n  c\n```"],
    ["<pre>a\n```\nb</pre>", "````\na\n```\nb\n````"],
    ["<table><tr><th>a<th>b|c<tr><td>1<td><b>2</b></table>", "| a | b\\|c |\n| --- | --- |\n| 1 | **2** |"],
    ["<table><tr><td><p>layout</p></td></tr></table>", "layout"],
    ["<dl><dt>term<dd>meaning</dl>", "**term**\n\nmeaning"],
    ["text <script>alert(1)</script><style>p{}</style><!-- not --><svg><text>no</text></svg>only", "text only"],
    ["<button>Menu</button><p>a &lt;b&gt; &amp;amp; c</p>", "a <b> &amp; c"],
    ["a<hr>b", "a\n\n---\n\nb"],
  ])("%s", async (html, markdown) => expect(await bodyOf(html)).toBe(markdown));

  test("has absolute links, of kinds that lead somewhere", async () => {
    expect(await bodyOf('<a href="/x">a</a> <a href="y?z=1#w">b</a> <a href="mailto:a@b.c">c</a>')).toBe(
      "[a](https://example.org/x) [b](https://example.org/dir/y?z=1#w) [c](mailto:a@b.c)",
    );
    expect(
      await bodyOf('<a href="javascript:x()">a</a> <a href="#b">b</a> <a href="/c"> </a><a href="http://[">d</a>'),
    ).toBe("a b d");
    expect(await bodyOf('<img alt="A cat" src="cat.png"><img src="x.png"><img alt="data" src="data:x,y">')).toBe(
      "![A cat](https://example.org/dir/cat.png)data",
    );
    const based = await read(
      '<html><head><base href="https://cdn.example/a/"></head><body><a href="b">c</a></body></html>',
    );
    expect(based.text).toBe("[c](https://cdn.example/a/b)");
  });

  test("is of the article where there is one, and of everything where there is none", async () => {
    const words = "The heron stood in the reeds, and waited for a fish to come by. ".repeat(12);
    const page = await read(
      `<html><head><title>Herons &amp; reeds</title></head><body><nav><a href="/">Home</a><a href="/about">About us</a></nav>
      <article><h1>Herons</h1><p>${words}</p><p>${words}</p></article><footer>Imprint</footer></body></html>`,
    );
    expect(page.title).toBe("Herons & reeds");
    expect(page.text).toContain("The heron stood");
    expect(page.text).not.toContain("About us");
    expect(await bodyOf("<nav><a href='/'>Home</a></nav><p>Short.</p>")).toBe("[Home](https://example.org/)\n\nShort.");
  });

  test("of a fragment, of nothing, and of what is hardly HTML, is what there is", async () => {
    expect((await read("<title>T</title>Hello <b>you")).text).toBe("Hello **you**");
    expect(await read("")).toEqual({ title: "", text: "" });
    expect((await read("a < b <<< c > d")).text).toContain("b");
  });
});

describe("a hostile page", () => {
  const MIB = 1024 * 1024;
  /** Waits for plain text however slow the machine is, but not for more. */
  const PATIENT = { plainMs: 60_000, readableMs: 100 };
  test.each([
    ["deep", `${"<div>".repeat(20_000)}deep text`, "deep text"],
    ["a million elements", `${"<a>".repeat(1_700_000)}the end`, "the end"],
    ["many elements", "<p>more, and more</p>".repeat(100_000), "more, and more"],
    ["tables in tables", `${"<table><tr><td>".repeat(10_000)}inside`, "inside"],
    ["one endless attribute", `<p a="${"x".repeat(5 * MIB)}">after`, "after"],
    ["an element with a million attributes", `<p ${"a=b ".repeat(MIB)}>after`, "after"],
    ["white space", `<p>a${" ".repeat(5 * MIB)}b</p>`, "a b"],
    ["nothing but brackets", `${"<".repeat(5 * MIB)}`, ""],
  ])("of %s is read, or given as plain text, while the host goes on", async (_, html, text) => {
    const patient = createPageReader(PATIENT);
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    try {
      expect((await patient.read("acc_a", html, "https://example.org/", never)).text).toContain(text);
      expect(turns).toBeGreaterThan(0);
    } finally {
      clearInterval(timer);
      patient.close();
    }
  });

  test.each([
    ["white space within code", `<pre>x${" ".repeat(MIB)}y</pre>`, "```"],
    [
      "a table with one wide row and many short ones",
      `<table><tr>${"<td>a".repeat(5_000)}${"<tr><td>b<td>c".repeat(5_000)}</table>`,
      "| b | c |\n",
    ],
    ["many lines within many quotes", `${"<blockquote>".repeat(190)}<pre>${"x\n".repeat(MIB)}</pre>`, "> > >"],
  ])("of %s is Markdown in time and memory that fit its size", async (_, html, text) => {
    const patient = createPageReader({ plainMs: 60_000, readableMs: 60_000 });
    expect((await patient.read("acc_a", html, "https://example.org/", never)).text).toContain(text);
    patient.close();
  });

  test("takes no turn of another account's, and its thread is ended", async () => {
    const patient = createPageReader(PATIENT);
    const endless = `${"<div>".repeat(30_000)}x`;
    const slow = ["acc_a", "acc_a", "acc_a"].map((account) =>
      patient.read(account, endless, "https://example.org/", never),
    );
    expect((await patient.read("acc_b", "<p>quick</p>", "https://example.org/", never)).text).toBe("quick");
    expect((await Promise.all(slow)).every(({ text }) => text === "x")).toBe(true);
    patient.close();
  });

  test("is left when its run is cancelled", async () => {
    const cancel = new AbortController();
    const reading = reader.read("acc_a", "<div>".repeat(30_000), "https://example.org/", cancel.signal);
    cancel.abort(new Error("cancelled"));
    await expect(reading).rejects.toThrow("cancelled");
    expect((await read("<p>next</p>")).text).toBe("next");
  });
});
