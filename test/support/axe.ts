import type { Page } from "playwright-core";

let axe: Promise<string> | undefined;

/** The rules of accessibility that a page violates, each with where; empty if axe finds none. */
export async function faultsOf(page: Page): Promise<string[]> {
  axe ??= Bun.file(Bun.resolveSync("axe-core/axe.min.js", import.meta.dir)).text();
  await page.evaluate(await axe);
  return await page.evaluate(async () => {
    // A colour that is still changing does not have the contrast that it ends with.
    for (const one of document.getAnimations()) {
      if (one.effect?.getComputedTiming().endTime !== Number.POSITIVE_INFINITY) one.finish();
    }
    const { axe } = globalThis as unknown as { axe: typeof import("axe-core") };
    const { violations } = await axe.run(document, { resultTypes: ["violations"] });
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
  });
}
