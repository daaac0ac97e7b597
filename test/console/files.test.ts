import { afterAll, beforeAll, beforeEach, expect } from "bun:test";
import type { Page } from "playwright-core";
import { faultsOf } from "../support/axe.ts";
import { browserTest } from "../support/browser.ts";
import { type Person, startTestServer, type TestServer } from "../support/test-server.ts";
import { SIZES, signUpWithAgent, tooWide, withConsoleAs } from "./with-console.ts";

let server: TestServer;
let person: Person;
let files: string;
let hash: string;

beforeAll(async () => {
  server = await startTestServer({ ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: "http://127.0.0.1:9/v1" });
});
afterAll(() => server.stop());
beforeEach(async () => {
  const ada = await signUpWithAgent(server);
  person = ada.person;
  files = `${ada.agentPath}/files`;
  hash = ada.hash;
});

const withPage = (use: (page: Page) => Promise<void>) => withConsoleAs(server, person, use, hash);
const stored = async (name: string): Promise<string | null> => {
  const answer = await person.fetch("GET", `${files}/${name}`);
  return answer.ok ? await answer.text() : null;
};
const row = (page: Page, name: string) => page.locator("#file-list li", { hasText: name });
const text = (page: Page, name: string) => page.getByLabel(`Text of ${name}`);
async function open(page: Page, name: string): Promise<void> {
  await page.locator("#to-agent").click();
  await row(page, name).locator("summary").click();
  await page.locator("#file-list textarea:enabled").waitFor();
}

browserTest("an agent's character is two clicks away, and is changed by keyboard", async () => {
  await withPage(async (page) => {
    await page.locator("#to-agent").click();
    await page.locator("#file-list li").nth(7).waitFor();
    await page.getByRole("button", { name: "SOUL.md" }).click();
    await text(page, "SOUL.md").and(page.locator(":enabled")).waitFor();
    expect(await text(page, "SOUL.md").inputValue()).toContain("# Character");
    await page.waitForFunction(() => {
      const box = document.querySelector("textarea[aria-label='Text of SOUL.md']")?.getBoundingClientRect();
      return box !== undefined && box.top >= 0 && box.bottom <= innerHeight;
    });
    const save = row(page, "SOUL.md").getByRole("button", { name: "Save" });
    expect(await save.isDisabled()).toBe(true);
    await text(page, "SOUL.md").fill("# Character\n\nYou are <b>a librarian</b>.\n");
    await row(page, "SOUL.md").getByText("not saved").waitFor();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.getByText("Saved. It counts from the next message on.").waitFor();
    expect(await stored("SOUL.md")).toBe("# Character\n\nYou are <b>a librarian</b>.\n");
    expect([await save.isDisabled(), await row(page, "SOUL.md").getByText("not saved").count()]).toEqual([true, 0]);
  });
});

browserTest("a change of the agent in between is shown, and neither it nor what was written here is lost", async () => {
  await withPage(async (page) => {
    await open(page, "USER.md");
    const write = async (mine: string) => {
      await text(page, "USER.md").fill(mine);
      await row(page, "USER.md").getByRole("button", { name: "Save", exact: true }).click();
    };
    await person.ask("PUT", `${files}/USER.md`, "Likes <i>tea</i>.\n");
    await write("Likes coffee.\n");
    await page.getByText("It was changed meanwhile").waitFor();
    expect(await row(page, "USER.md").locator("pre").textContent()).toBe("Likes <i>tea</i>.\n");
    expect([await text(page, "USER.md").inputValue(), await stored("USER.md")]).toEqual([
      "Likes coffee.\n",
      "Likes <i>tea</i>.\n",
    ]);
    for (const size of SIZES) {
      await page.setViewportSize(size);
      expect([size.width, await tooWide(page), await faultsOf(page)]).toEqual([size.width, false, []]);
    }
    // It is changed once more: what was not shown is not written over either.
    await person.ask("PUT", `${files}/USER.md`, "Likes water.\n");
    await page.getByRole("button", { name: "Save mine over it" }).click();
    await row(page, "USER.md").locator("pre", { hasText: "water" }).waitFor();
    expect(await stored("USER.md")).toBe("Likes water.\n");
    await page.getByRole("button", { name: "Save mine over it" }).click();
    await page.getByText("Saved. It counts").waitFor();
    expect(await stored("USER.md")).toBe("Likes coffee.\n");

    await person.ask("DELETE", `${files}/USER.md`);
    await write("Likes tea, now.\n");
    await page.getByText("It was deleted meanwhile").waitFor();
    await page.getByRole("button", { name: "Make it again with my text" }).click();
    await page.getByText("Saved. It counts").waitFor();
    expect(await stored("USER.md")).toBe("Likes tea, now.\n");

    await person.ask("PUT", `${files}/USER.md`, "Likes milk.\n");
    await write("Likes beer.\n");
    await page.getByRole("button", { name: "Drop mine" }).click();
    await page.getByRole("button", { name: "Really drop mine?" }).click();
    await page.locator(".conflict").waitFor({ state: "hidden" });
    expect([await text(page, "USER.md").inputValue(), await stored("USER.md")]).toEqual([
      "Likes milk.\n",
      "Likes milk.\n",
    ]);
  });
});

browserTest(
  "what is not saved stays while something else is looked at, and is asked about before it is left",
  async () => {
    await withPage(async (page) => {
      await open(page, "SOUL.md");
      await text(page, "SOUL.md").fill("Half a thou");
      await page.locator("#agent-parts").getByText("Tools").click();
      await page.locator("#to-conversation").click();
      await open(page, "SOUL.md");
      expect(await text(page, "SOUL.md").inputValue()).toBe("Half a thou");
      const asked = page.waitForEvent("dialog");
      const reload = page.reload().catch(() => undefined);
      const dialog = await asked;
      expect(dialog.type()).toBe("beforeunload");
      await dialog.accept();
      await reload;
    });
  },
);

browserTest(
  "what is written and not saved in a file that was deleted meanwhile is there, to be made one again",
  async () => {
    await withPage(async (page) => {
      await open(page, "USER.md");
      await text(page, "USER.md").fill("Likes juice.\n");
      await person.ask("DELETE", `${files}/USER.md`);
      await page.locator("#agent-parts").getByText("Tools").click();
      await page.locator("#agent-parts").getByText("Files").click();
      await row(page, "USER.md").getByText("not saved").waitFor();
      await row(page, "USER.md").locator("summary").click();
      expect(await text(page, "USER.md").inputValue()).toBe("Likes juice.\n");
      await row(page, "USER.md").getByRole("button", { name: "Save" }).click();
      await page.getByText("It was deleted meanwhile").waitFor();
      await page.getByRole("button", { name: "Make it again with my text" }).click();
      await page.getByText("Saved. It counts").waitFor();
      expect(await stored("USER.md")).toBe("Likes juice.\n");
      const names = await page.locator("#file-list code").allTextContents();
      expect(names).toEqual(names.toSorted());
    });
  },
);

browserTest(
  "a file is made, in a folder too, and deleted after a question, unless it has changed meanwhile",
  async () => {
    await withPage(async (page) => {
      await page.locator("#to-agent").click();
      const create = async (name: string) => {
        if (!(await page.getByLabel("The name of a new one").isVisible()))
          await page.locator("#new-file summary").click();
        await page.getByLabel("The name of a new one").fill(name);
        await page.keyboard.press("Enter");
      };
      await create("SOUL.md");
      await page.getByText("there is a file of this name already").waitFor();
      await create("../passwords");
      await page.locator("#files > .error", { hasNotText: "already" }).waitFor();
      await create("Größe.md");
      await page
        .locator("#files > .error", { hasText: /^expected a relative file name .* out of a–z, A–Z, 0–9/ })
        .waitFor();
      await create("notes/today.md");
      await text(page, "notes/today.md").fill("Two novels.\r\n");
      await row(page, "notes/today.md").getByRole("button", { name: "Save" }).click();
      await page.getByText("Saved. It counts").waitFor();
      expect(await stored("notes/today.md")).toBe("Two novels.\n");

      await person.ask("PUT", `${files}/notes/today.md`, "Three novels.\n");
      const remove = async () => {
        await row(page, "notes/today.md").getByRole("button", { name: "Delete" }).click();
        await page.getByRole("button", { name: "Really delete notes/today.md?" }).click();
      };
      await remove();
      await page.getByText("is not deleted: this is what it says now").waitFor();
      expect(await text(page, "notes/today.md").inputValue()).toBe("Three novels.\n");
      await remove();
      await page.getByText("notes/today.md is deleted.").waitFor();
      expect([await stored("notes/today.md"), await row(page, "notes/today.md").count()]).toEqual([null, 0]);
    });
  },
);

browserTest("a line that nobody has changed is saved with the bytes that it had", async () => {
  const bytesAfter = async (before: string, change: (text: string) => string) => {
    await person.ask("PUT", `${files}/notes/mixed.md`, before);
    await withPage(async (page) => {
      await page.locator("#to-agent").click();
      await row(page, "notes/mixed.md").locator("summary").click();
      const box = text(page, "notes/mixed.md");
      await page.waitForFunction(() => document.querySelector("#files textarea:enabled"));
      await box.fill(change(await box.inputValue()));
      await row(page, "notes/mixed.md").getByRole("button", { name: "Save" }).click();
      await page.getByText("Saved. It counts").waitFor();
    });
    const answer = await person.fetch("GET", `${files}/notes/mixed.md`);
    return Buffer.from(await answer.arrayBuffer()).toString();
  };
  const mixed = "\ufeffone\r\ntwo\nthree\r\nfour";
  expect(await bytesAfter(mixed, (now) => now.replace("two", "2\n2"))).toBe("\ufeffone\r\n2\n2\nthree\r\nfour");
  expect(await bytesAfter("a\r\nb\r\n", (now) => `${now}c\n`)).toBe("a\r\nb\r\nc\r\n");
  expect(await bytesAfter("a\nb\n", (now) => now.replace("a\n", ""))).toBe("b\n");
});

browserTest("the files are listed a page at a time, with what the agent has made of late", async () => {
  for (let count = 0; count < 100; count++) await person.ask("PUT", `${files}/log/${1000 + count}.md`, "A line.\n");
  await withPage(async (page) => {
    await page.locator("#to-agent").click();
    await page.locator("#file-list li").nth(99).waitFor();
    expect(await page.locator("#file-list li").count()).toBe(100);
    await page.locator("#more-files").click();
    await page.locator("#file-list li").nth(107).waitFor();
    const names = await page.locator("#file-list code").allTextContents();
    expect([names.length, names]).toEqual([108, names.toSorted()]);
    await page.locator("#agent-parts").getByText("Tools").click();
    await person.ask("PUT", `${files}/AAA.md`, "First.\n");
    await page.locator("#agent-parts").getByText("Files").click();
    await row(page, "AAA.md").waitFor();
  });
});

browserTest(
  "files are chosen and downloaded; what is there already is written over only when it is saved",
  async () => {
    await withPage(async (page) => {
      await page.locator("#to-agent").click();
      await page.locator("#new-file summary").click();
      const choose = (...given: [name: string, text: string | Buffer][]) =>
        page
          .getByLabel("Or choose files on this device")
          .setInputFiles(
            given.map(([name, content]) => ({ name, mimeType: "text/markdown", buffer: Buffer.from(content) })),
          );
      await choose(["Opening hours.md", "Nine to five.\n"], ["USER.md", "Likes tea.\n"]);
      await page.getByText("1 file was added. There already, with another text: USER.md.").waitFor();
      await page.getByText("It was there already. Your text is above, and is not saved. It now says:").waitFor();
      expect(await stored("Opening-hours.md")).toBe("Nine to five.\n");
      expect(await stored("USER.md")).not.toBe("Likes tea.\n");
      expect(await text(page, "USER.md").inputValue()).toBe("Likes tea.\n");
      await choose(["USER.md", "Likes juice.\n"]);
      await page.getByText("USER.md has changes that are not saved").waitFor();
      await row(page, "USER.md").locator("summary").click();
      await row(page, "USER.md").locator("summary").click();
      await page.getByRole("button", { name: "Drop mine" }).click();
      await page.getByRole("button", { name: "Really drop mine?" }).click();
      expect(await text(page, "USER.md").inputValue()).not.toBe("Likes tea.\n");
      await choose(["USER.md", "Likes tea.\n"], ["Opening hours.md", "Nine to five.\n"]);
      await page.getByText("1 was there already, with the same text.").waitFor();
      await page.getByRole("button", { name: "Save mine over it" }).click();
      await page.getByText("Saved. It counts").waitFor();
      expect(await stored("USER.md")).toBe("Likes tea.\n");

      await choose(["notes.md", "Kept?\n"], ["picture.png", Buffer.from([0x89, 0x50, 0xff])]);
      await page.getByText("picture.png is not text in UTF-8").waitFor();
      await choose(["Größe.md", "Long.\n"]);
      await page.getByText("Größe.md: expected a relative file name").waitFor();
      await choose(["large.md", "x".repeat(256 * 1024 + 1)]);
      await page.getByText("large.md is too large").waitFor();
      expect([await stored("notes.md"), await stored("large.md")]).toEqual([null, null]);

      await text(page, "USER.md").fill("Likes coffee.\n");
      const saved = page.waitForEvent("download");
      await page.getByRole("button", { name: "Download USER.md" }).click();
      const download = await saved;
      expect(download.suggestedFilename()).toBe("USER.md");
      expect(await Bun.file(await download.path()).text()).toBe("Likes coffee.\n");
      expect(await faultsOf(page)).toEqual([]);
    });
  },
);
