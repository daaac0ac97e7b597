import { afterAll, beforeEach, expect } from "bun:test";
import type { Page } from "playwright-core";
import { faultsOf } from "../support/axe.ts";
import { browserTest } from "../support/browser.ts";
import type { Person } from "../support/test-server.ts";
import { signUpWithAgent, startWithModel, tooWide, withConsoleAs } from "./with-console.ts";

let person: Person;

const { model, server, stop } = await startWithModel();
afterAll(stop);
beforeEach(async () => {
  ({ person } = await signUpWithAgent(server));
});

/** Has the agent answer with this text, in small pieces. */
async function hear(page: Page, text: string): Promise<void> {
  model.script({ kind: "text", tokens: [...(text.match(/[\s\S]{1,7}/g) ?? []), "\n\nThat is all."] });
  await page.fill("#chat-input", "Tell me");
  await page.keyboard.press("Enter");
  await page.getByText("That is all.").last().waitFor();
}

const ANSWER = `# Birds

1. **Swifts** are *early*
   - in \`Bern\`
2. Storks

| Bird | Where |
|---|---|
| Swift | Bern &amp; Thun |

\`\`\`js
${"const line = 'so long that it is wider than the page'; ".repeat(4)}
\`\`\`

> Said

A line
of a poem. See [the feed](https://birds.example/feed).`;

browserTest("an answer's Markdown is shown, light and dark, on a laptop and on a phone", async () => {
  await withConsoleAs(server, person, async (page) => {
    await hear(page, ANSWER);
    const said = page.locator(".turn.agent .said");
    expect(await said.locator("h2").allTextContents()).toEqual(["Birds"]);
    expect(await said.locator("ol > li strong, ul code, th, td").allTextContents()).toEqual([
      ...["Swifts", "Bern", "Bird", "Where", "Swift", "Bern & Thun"],
    ]);
    expect(await said.locator("blockquote").textContent()).toBe("Said");
    expect(await said.locator("p br").count()).toBe(1);
    const link = said.getByRole("link", { name: "the feed" });
    expect(await link.getAttribute("href")).toBe("https://birds.example/feed");
    expect(await link.getAttribute("rel")).toContain("noopener noreferrer");
    // It is said where a link leads.
    await said.getByText("(birds.example)").waitFor();
    for (const colorScheme of ["dark", "light"] as const) {
      await page.emulateMedia({ colorScheme });
      for (const size of [
        { width: 1366, height: 640 },
        { width: 390, height: 844 },
      ]) {
        await page.setViewportSize(size);
        expect(await faultsOf(page)).toEqual([]);
        expect(await tooWide(page)).toBe(false);
      }
    }
  });
});

const HOSTILE = `<img src="https://evil.example/a.png" onerror="document.title='lost'"> <script>document.title='lost'</script>

![a picture](https://evil.example/b.png) [a trick](javascript:document.title='lost') [a file](file:///etc/passwd)

<iframe src="https://evil.example"></iframe>`;

browserTest("nothing in an answer becomes markup of the page, runs, or loads anything", async () => {
  // That no other origin is asked for anything is checked for every page.
  await withConsoleAs(server, person, async (page) => {
    await hear(page, HOSTILE);
    const said = page.locator(".turn.agent .said");
    expect(await said.locator("img, script, iframe").count()).toBe(0);
    expect(
      await said.locator("a").evaluateAll((links) => links.map((link) => (link as HTMLAnchorElement).href)),
    ).toEqual(["https://evil.example/b.png"]);
    await said.getByText("<script>document.title='lost'</script>").waitFor();
    expect(await page.title()).not.toBe("lost");
  });
});

browserTest("a link whose text is another address says where it leads", async () => {
  await withConsoleAs(server, person, async (page) => {
    const honest =
      "https://bank.com/in [bank.com](https://bank.com/) [write](mailto:a@b.example) [a@b.example](mailto:a@b.example)";
    const tricks =
      "[bank.com/in](https://bank.co/in) [bank.com](https://bank.com.evil.example) https://bank.com@evil.example/x";
    await hear(page, `${honest}\n\n${tricks}`);
    const said = page.locator(".turn.agent .said");
    expect(await said.locator("small").allTextContents()).toEqual([
      ...[" (a@b.example)", " (bank.co)", " (bank.com.evil.example)", " (evil.example)"],
    ]);
  });
});

browserTest("an answer that is nested without end is shown as it is written", async () => {
  await withConsoleAs(server, person, async (page) => {
    const nested = `${">".repeat(20_000)} deep`;
    await hear(page, nested);
    expect(await page.locator(".turn.agent .said").textContent()).toContain("deep");
  });
});

browserTest("an answer of any length is shown with its Markdown, and what was shown of it stays", async () => {
  await withConsoleAs(server, person, async (page) => {
    const paragraphs = Array.from({ length: 100 }, (_, at) => `**${at}** ${"word ".repeat(200)}`);
    const { promise, resolve } = Promise.withResolvers<void>();
    model.script({ kind: "tools", calls: [{ name: "now", arguments: {} }], text: `${paragraphs.join("\n\n")}\n\n` });
    model.script({ kind: "text", tokens: ["1. *one*\n", "\n", "2. *two*\n\n", "That is all."], after: promise });
    await page.fill("#chat-input", "Tell me");
    await page.keyboard.press("Enter");
    const said = page.locator(".turn.agent .said");
    await said.locator("strong", { hasText: /^99$/ }).waitFor();
    await said.locator("strong").evaluateAll((all) => {
      for (const one of all) one.setAttribute("data-kept", "");
    });
    resolve();
    await page.getByText("That is all.").waitFor();
    await page.locator("#chat-cancel").waitFor({ state: "hidden" });
    const shown = async () => [
      await said.locator("strong").allTextContents(),
      await said.locator("ol > li em").allTextContents(),
      (await said.textContent())?.includes("*"),
    ];
    const expected = [paragraphs.map((_, at) => `${at}`), ["one", "two"], false];
    expect(await shown()).toEqual(expected);
    expect(await said.locator("strong[data-kept]").count()).toBe(paragraphs.length);
    await page.reload();
    await page.getByText("That is all.").waitFor();
    expect(await shown()).toEqual(expected);
  });
});

browserTest("the columns of a table stand as they were asked to", async () => {
  await withConsoleAs(server, person, async (page) => {
    await hear(page, "| A | B | C |\n|:--|--:|:-:|\n| a | b | c |");
    const cells = page.locator(".said td");
    expect(await cells.evaluateAll((all) => all.map((cell) => getComputedStyle(cell).textAlign))).toEqual([
      "left",
      "right",
      "center",
    ]);
  });
});
