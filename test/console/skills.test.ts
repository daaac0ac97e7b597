import { afterAll, afterEach, beforeAll, beforeEach, expect } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { fingerprint } from "../../src/skills/fingerprint.ts";
import { faultsOf } from "../support/axe.ts";
import { browserTest } from "../support/browser.ts";
import { type Person, startTestServer, type TestServer } from "../support/test-server.ts";
import { focus, openAs, SIZES, signUpWithAgent, tooWide, withConsole, withConsoleAs } from "./with-console.ts";

let server: TestServer;
let person: Person;
let skillsPath: string;
let hash: string;
let folder: string;

beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.stop());
beforeEach(async () => {
  const ada = await signUpWithAgent(server);
  person = ada.person;
  skillsPath = `${ada.instancePath}/skills`;
  hash = `${ada.hash}/skills`;
  folder = mkdtempSync(join(tmpdir(), "roost-skill-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const installed = async () => (await person.ask("GET", skillsPath)).body.data;

/** The page with the skills of the instance. */
const withSkills = (use: (page: Page) => Promise<void>) =>
  withConsoleAs(
    server,
    person,
    async (page) => {
      await page.locator("#skills:not(.loading)").waitFor();
      await use(page);
    },
    hash,
  );
const inCatalog = (page: Page, name: string) =>
  page.locator("#catalog li", { has: page.locator("b", { hasText: new RegExp(`^${name}$`) }) });
const inList = (page: Page, name: string) => page.locator("#skill-list > li", { hasText: name });

/** Writes these files into a folder, and chooses it. */
async function choose(page: Page, files: Record<string, string | Uint8Array>): Promise<void> {
  const root = mkdtempSync(join(folder, "chosen-"));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(join(root, name, ".."), { recursive: true });
    writeFileSync(join(root, name), content);
  }
  await page.setInputFiles("#skill-folder", root);
}
const skillFile = (name: string, description: string, text = "Write three lines.", more = "") =>
  `---\nname: ${name}\ndescription: ${JSON.stringify(description)}\n${more}---\n${text}\n`;

browserTest(
  "a built-in skill is found from the conversation, installed and removed with the keyboard alone",
  async () => {
    await withConsole(
      () => server.url,
      async (page) => {
        await openAs(page, server.url, person.token);
        const press = async (selector: string) => {
          await focus(page.locator(selector).first());
          await page.keyboard.press("Enter");
        };
        await press("#to-agent");
        await press("#agent-parts [data-part=skills]");
        await page.getByText("There are none yet.").waitFor();
        await press("#catalog > summary");
        await inCatalog(page, "calculator").waitFor();
        await inCatalog(page, "calculator").locator("summary").focus();
        await page.keyboard.press("Enter");
        // What it gets is told before it is installed.
        const about = inCatalog(page, "calculator").locator(".facts");
        expect(await about.locator("dd").first().textContent()).toBe("no host");
        await inCatalog(page, "calculator")
          .getByText("Its scripts, run in the sandbox: scripts/calculate.js, scripts/convert.js")
          .waitFor();
        expect(await installed()).toEqual([]);
        await page.getByRole("button", { name: "Install calculator" }).focus();
        await page.keyboard.press("Enter");
        const row = inList(page, "calculator");
        await row.waitFor();
        await page.getByText("calculator is installed.").waitFor();
        expect(
          await row
            .locator("summary")
            .first()
            .evaluate((it) => it === document.activeElement),
        ).toBe(true);
        const [skill] = await installed();
        expect(await row.locator(".facts").textContent()).toContain(skill.sha256);
        await row.getByText("It is the one that is built in now.").waitFor();
        // It is not offered a second time.
        await press("#catalog > summary");
        await inCatalog(page, "calculator").locator("summary").first().click();
        await inCatalog(page, "calculator").getByText("It is installed.", { exact: true }).waitFor();

        await page.getByRole("button", { name: "Remove calculator" }).focus();
        await page.keyboard.press("Enter");
        expect((await installed()).length).toBe(1);
        await page.keyboard.press("Enter");
        await page.getByText("There are none yet.").waitFor();
        expect(await installed()).toEqual([]);
        await page.locator("#to-conversation").click();
        await page.locator("#agent-name", { hasText: "Ada" }).waitFor();
      },
    );
  },
);

browserTest("a skill says which secret it lacks and where that may go, and the value is taken there", async () => {
  await person.ask("POST", skillsPath, { name: "github" });
  await withSkills(async (page) => {
    const row = inList(page, "github");
    await row.getByText("a secret is missing").waitFor();
    await row.locator("summary").first().click();
    await row.getByText("GITHUB_TOKEN goes only to api.github.com, and is missing").waitFor();
    await row.getByLabel("Value of GITHUB_TOKEN").fill("ghp_not_to_be_seen");
    await page.keyboard.press("Enter");
    await page.getByText("GITHUB_TOKEN is stored.").waitFor();
    await row.getByText("GITHUB_TOKEN goes only to api.github.com, and is stored").waitFor();
    expect(await page.locator("input[type=password]").count()).toBe(0);
    expect(await page.content()).not.toContain("ghp_not_to_be_seen");
    const [{ missingSecrets }] = await installed();
    expect(missingSecrets).toEqual([]);
  });
});

browserTest("a folder is shown whole before anything is sent, and what was shown is what is pinned", async () => {
  const files = {
    "SKILL.md": skillFile(
      "haiku",
      "Writes haiku.",
      "\u2764\ufe0f Run `count.js`.",
      'metadata:\n  requires-hosts: "a.example"\n',
    ),
    "count.js": "return input.lines.length;\n",
    "notes/more.md": "\ufeffMore.\r\n",
  };
  await withSkills(async (page) => {
    const sent: string[] = [];
    page.on("request", (request) => request.method() !== "GET" && sent.push(request.url()));
    await page.click("#own-skill > summary");
    await choose(page, { ...files, ".git/config": "not a part of it" });
    const preview = page.locator("#own-preview");
    await preview.waitFor();
    expect(await preview.locator("summary").allTextContents()).toEqual([
      expect.stringMatching(/^SKILL\.md \d+ bytes$/),
      "count.js a script, 27 bytes",
      "notes/more.md 10 bytes",
    ]);
    expect(await preview.locator("pre").first().textContent()).toBe(files["SKILL.md"]);
    expect([sent, await installed()]).toEqual([[], []]);
    await page.getByRole("button", { name: "Install these files" }).click();
    const row = inList(page, "haiku");
    await row.getByText("a.example").waitFor();
    const [skill] = await installed();
    expect([skill.source, skill.sha256]).toEqual(["upload", fingerprint(new Map(Object.entries(files)))]);

    // The same once more.
    await page.click("#own-skill > summary");
    await choose(page, files);
    await page.getByRole("button", { name: "Install these files" }).click();
    const alert = page.locator("section:has(> #own-skill) > [role=alert]");
    await alert.waitFor();
    expect(await alert.textContent()).toBe(
      "the skill haiku is installed alreadyRemove what is in the way, then install it again.",
    );
  });
});

browserTest(
  "text that hides from its reader is shown, named by file and line, and not offered to install",
  async () => {
    await withSkills(async (page) => {
      await page.click("#own-skill > summary");
      await choose(page, {
        "SKILL.md": skillFile("haiku", "Writes haiku.", "Write \u202eseveral\u202c lines."),
        "a.md": "first\nsec\u200bond\n",
      });
      const preview = page.locator("#own-preview");
      await preview.getByText("SKILL.md: line 5 has U+202E (bidirectional control); remove it.").waitFor();
      await preview.getByText("a.md: line 2 has U+200B (zero-width character); remove it.").waitFor();
      expect(await preview.locator("pre").first().textContent()).toContain("Write U+202Eseveral");
      expect(await preview.getByRole("button").count()).toBe(0);
    });
  },
);

browserTest("files that are no skill are refused with what to do instead", async () => {
  const alertOf = (page: Page) => page.locator("section:has(> #own-skill) > [role=alert]");
  await withSkills(async (page) => {
    await page.click("#own-skill > summary");
    const refusals: [files: Record<string, string | Uint8Array>, why: string][] = [
      [
        { "README.md": "a" },
        "There is no SKILL.md among these filesChoose the folder that it is in, or the file itself.",
      ],
      [
        { "SKILL.md": "a", "b.png": new Uint8Array([0x89, 0x50, 0xff]) },
        "b.png is not text in UTF-8Leave it out, or save it as text. Then choose the files again.",
      ],
      [
        { "SKILL.md": "a", "long.md": "a".repeat(1024 * 1024) },
        "These are 2 files of 1.1 MiBA skill has at most 64 files of 1 MiB together. Leave out what it does not need.",
      ],
    ];
    for (const [files, why] of refusals) {
      await choose(page, files);
      await alertOf(page).getByText(why.slice(0, 20)).waitFor();
      expect(await alertOf(page).textContent()).toBe(why);
      expect(await page.locator("#own-preview").isVisible()).toBe(false);
    }
    // What only the host can judge.
    await choose(page, { "SKILL.md": "no front matter" });
    await alertOf(page).waitFor({ state: "hidden" });
    await page.getByRole("button", { name: "Install these files" }).click();
    await alertOf(page).waitFor();
    expect(await alertOf(page).textContent()).toMatch(
      /files\.SKILL\.md: expected to begin with front matter .*Correct the file, then choose the files again\./,
    );
    expect(await installed()).toEqual([]);
  });
});

browserTest("an installed skill that differs from the built-in one of now says so, and how to get that", async () => {
  await person.ask("POST", skillsPath, { name: "dates" });
  server.foundation.store.transaction(() =>
    server.foundation.store.sqlite.run("UPDATE installed_skills SET sha256 = ?, version = '0.9.0'", ["0".repeat(64)]),
  );
  await withSkills(async (page) => {
    const row = inList(page, "dates");
    await row.getByText("not the built-in text of now").waitFor();
    await row.locator("summary").first().click();
    await row
      .getByText("This host now has version 1.0.0 with another text: remove this one and install it again")
      .waitFor();
    await row.getByText("The host does not show its text.").waitFor();
  });
});

const LONG = "Donaudampfschifffahrtselektrizitaetenhauptbetriebswerkbauunterbeamtengesellschaft";

browserTest("a hostile skill is shown as text, breaks no layout, and axe finds no problem", async () => {
  const description = `<img src=x onerror=alert(1)> \u05d0\u05d1 ${LONG.repeat(3)}`;
  const needs = `metadata:\n  requires-hosts: "${"a".repeat(60)}.${"b".repeat(60)}.example"\n  requires-secrets: "${"S".repeat(100)}"\n  requires-tools: "no_such_tool"\n`;
  await person.ask("POST", skillsPath, {
    files: { "SKILL.md": skillFile(`${"a-".repeat(31)}a`, description, "", needs) },
  });
  await withSkills(async (page) => {
    await page.locator("#skill-list summary").click();
    await page.getByText("This host does not have").waitFor();
    await page.click("#catalog > summary");
    await inCatalog(page, "github").locator("summary").click();
    await inCatalog(page, "github").getByText("Its instructions").click();
    await page.click("#own-skill > summary");
    await choose(page, { "SKILL.md": `<b>${LONG.repeat(9)}</b>\u202e` });
    await page.locator("#own-preview").waitFor();
    for (const size of SIZES) {
      for (const colorScheme of ["light", "dark"] as const) {
        await page.setViewportSize(size);
        await page.emulateMedia({ colorScheme });
        expect([size.width, colorScheme, await tooWide(page)]).toEqual([size.width, colorScheme, false]);
        expect(await faultsOf(page)).toEqual([]);
      }
    }
    expect(await page.locator("#view-agent img, #own-preview b").count()).toBe(0);
    expect(await page.locator("#skill-list .brief").textContent()).toBe(description);
  });
});
