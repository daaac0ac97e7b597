import { afterAll, expect } from "bun:test";
import { browserTest } from "../support/browser.ts";
import { signUpWithAgent, startWithModel, withConsoleAs } from "./with-console.ts";

const { server, stop } = await startWithModel();
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

browserTest("without a clipboard what is selected is copied, or at least selected", async () => {
  await withConsoleAs(server, person, async (page) => {
    await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: undefined }));
    await page.click("#to-terminal");
    const text = (await page.locator("#step-instance").textContent()) ?? "";
    await page.getByRole("button", { name: "Copy the command that creates an instance" }).click();
    await page.getByRole("button", { name: "Copied the command that creates an instance" }).waitFor();
    await page.click("#to-chat");
    await page.focus("#chat-input");
    await page.keyboard.press("ControlOrMeta+V");
    expect(await page.inputValue("#chat-input")).toBe(text);

    await page.click("#to-terminal");
    await page.evaluate(() => Object.assign(document, { execCommand: () => false }));
    await page.locator("[data-copy=step-instance]").click();
    await page.getByRole("button", { name: "Selected the command that creates an instance" }).waitFor();
    expect(await page.evaluate(() => String(getSelection()))).toBe(text);
    await page.getByRole("heading", { name: "Create an agent in it" }).hover();
    await page.getByRole("button", { name: "Copy the command that creates an instance" }).waitFor();
  });
});
