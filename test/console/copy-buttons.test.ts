import { afterAll, expect } from "bun:test";
import { browserTest } from "../support/browser.ts";
import { openAs, signUpWithAgent, startWithModel, withConsole, withConsoleAs } from "./with-console.ts";

const { model, server, stop } = await startWithModel();
const { person } = await signUpWithAgent(server);
afterAll(stop);

browserTest("each copy button is named for what it copies", async () => {
  await withConsoleAs(server, person, async (page) => {
    const names = await page
      .locator("[data-copy]")
      .evaluateAll((buttons) => buttons.map((button) => button.textContent));
    expect(names.length).toBeGreaterThan(5);
    expect(new Set(names).size).toBe(names.length);
    for (const name of names) expect(name).toMatch(/^Copy the \w/);
  });
});

browserTest("an answer is copied as it was written, and a block of code in it by itself", async () => {
  await withConsole(
    () => server.url,
    async (page, browser) => {
      await browser.grantPermissions(["clipboard-read", "clipboard-write"]);
      await openAs(page, server.url, person.token);
      const answer = "Try **this**:\n\n```sh\nls -l\ncd ..\n```\n\nThat is all.";
      model.script({ kind: "text", tokens: [answer] });
      await page.fill("#chat-input", "How?");
      await page.keyboard.press("Enter");
      const copied = () => page.evaluate(() => navigator.clipboard.readText());
      await page.getByRole("button", { name: "Copy the answer" }).click();
      await page.getByRole("button", { name: "Copied the answer" }).waitFor();
      expect(await copied()).toBe(answer);
      await page.getByRole("button", { name: "Copy the code" }).click();
      await page.getByRole("button", { name: "Copied the code" }).waitFor();
      expect(await copied()).toBe("ls -l\ncd ..");
    },
  );
});

browserTest("without a clipboard what is selected is copied, or at least selected", async () => {
  await withConsoleAs(server, person, async (page) => {
    await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: undefined }));
    await page.click("#to-terminal");
    const text = (await page.locator("#step-instance").textContent()) ?? "";
    await page.getByRole("button", { name: "Copy the command that creates an instance" }).click();
    await page.getByRole("button", { name: "Copied the command that creates an instance" }).waitFor();
    await page.click("#to-chat");
    // A box that is hidden yet, while its conversation is loaded, gets no focus: a click waits for it.
    await page.click("#chat-input");
    await page.keyboard.press("ControlOrMeta+V");
    await page.waitForFunction(
      (pasted) => document.querySelector<HTMLTextAreaElement>("#chat-input")?.value === pasted,
      text,
    );

    await page.click("#to-terminal");
    await page.evaluate(() => Object.assign(document, { execCommand: () => false }));
    await page.locator("[data-copy=step-instance]").click();
    await page.getByRole("button", { name: "Selected the command that creates an instance" }).waitFor();
    expect(await page.evaluate(() => String(getSelection()))).toBe(text);
    await page.getByRole("heading", { name: "Create an agent in it" }).hover();
    await page.getByRole("button", { name: "Copy the command that creates an instance" }).waitFor();
  });
});
