import { afterAll, beforeEach, expect } from "bun:test";
import { faultsOf } from "../support/axe.ts";
import { browserTest } from "../support/browser.ts";
import { storeApproval } from "../support/stored-approval.ts";
import type { Person } from "../support/test-server.ts";
import {
  lookAgain,
  openAs,
  signUpWithAgent,
  startWithModel,
  tooWide,
  withConsole,
  withConsoleAs,
} from "./with-console.ts";

const LAPTOP = { width: 1366, height: 640 };
const PHONE = { width: 390, height: 844 };

let person: Person;

const { model, server, stop } = await startWithModel();
afterAll(stop);
beforeEach(async () => {
  person = await server.signUp();
});

/** An instance with an agent and a conversation that is longer than any screen. */
async function talkAtLength(name = "Ada"): Promise<void> {
  const { body: instance } = await person.ask("POST", "/v1/instances", { name: "A room with a name of some length" });
  const agents = `/v1/instances/${instance.instanceId}/agents`;
  const { body: agent } = await person.ask("POST", agents, { name });
  for (let count = 0; count < 8; count++) {
    model.script({ kind: "text", tokens: ["A line of an answer that goes on for a while. ".repeat(12)] });
    await person.ask("POST", `${agents}/${agent.agentId}/messages`, { message: `Question ${count}` });
  }
}

browserTest(
  "the message box is on screen on a small laptop and on a phone, whatever was said and is written",
  async () => {
    await talkAtLength("An agent whose name goes on, Donaudampfschifffahrtsgesellschaftskapitän");
    await withConsole(
      () => server.url,
      async (page) => {
        for (const size of [LAPTOP, PHONE]) {
          await page.setViewportSize(size);
          await openAs(page, server.url, person.token);
          await page.getByText("Question 7", { exact: true }).waitFor();
          for (const text of ["", "many\nlines\n".repeat(40)]) {
            await page.fill("#chat-input", text);
            // The name in the empty box does not make it higher.
            if (text === "") expect((await page.locator("#chat-input").boundingBox())?.height).toBeLessThan(60);
            for (const id of ["#chat-input", "#chat-send", "#agent-name"]) {
              const box = await page.locator(id).boundingBox();
              expect(box).not.toBeNull();
              expect(box?.y).toBeGreaterThanOrEqual(0);
              expect((box?.y ?? 0) + (box?.height ?? 0)).toBeLessThanOrEqual(size.height);
            }
            const overflow = () =>
              page.evaluate(() => [
                document.documentElement.scrollWidth - innerWidth,
                document.documentElement.scrollHeight - innerHeight,
              ]);
            expect(await overflow()).toEqual([0, 0]);
          }
        }
      },
    );
  },
);

browserTest(
  "at every width the header's words stay whole and inside of it while an approval waits, and the title says so",
  async () => {
    const { person, instancePath, agentPath } = await signUpWithAgent(server);
    const [instanceId = "", agentId = ""] = [instancePath, agentPath].map((path) => path.split("/").at(-1));
    storeApproval(server, { accountId: person.accountId, instanceId, agentId });
    await withConsoleAs(server, person, async (page) => {
      await page.locator("#open-count", { hasText: "1" }).waitFor();
      const titled = (title: string) => page.waitForFunction((wanted) => document.title === wanted, title);
      await titled("(1) Ada · Roost");
      await page.click("#to-approvals");
      await titled("(1) Approvals · Roost");
      await page.click("#to-chat");
      await titled("(1) Ada · Roost");
      for (const width of [320, 360, 412, 430, 560, 640, 768, 840, 1280]) {
        await page.setViewportSize({ width, height: 800 });
        expect([width, await tooWide(page)]).toEqual([width, false]);
        const outside = await page.locator(".top").evaluate((header) => {
          const frame = header.getBoundingClientRect();
          return [...header.querySelectorAll(".brand, .tabs a, .purse")].filter((link) => {
            const { left, right, top, bottom, width, height } = link.getBoundingClientRect();
            const isInside = left >= 0 && right <= innerWidth && top >= frame.top && bottom <= frame.bottom;
            // Letters below each other are higher than a line.
            return width > 0 && !(isInside && height < 48);
          });
        });
        expect([width, outside.length]).toEqual([width, 0]);
      }
    });
  },
);

browserTest(
  "in a low window what is said and the box to answer in fit beside each other, by scrolling the page",
  async () => {
    const { person: newcomer } = await signUpWithAgent(server);
    await talkAtLength();
    const sizes = [
      [740, 360],
      [640, 400],
      [360, 380],
      [360, 340],
      [320, 256],
    ] as const;
    for (const whose of [newcomer, person]) {
      await withConsoleAs(server, whose, async (page) => {
        const ideas = page.locator("#chat-ideas");
        if (whose === person) await page.getByText("Question 7", { exact: true }).waitFor();
        else await ideas.waitFor();
        for (const [width, height] of sizes) {
          await page.setViewportSize({ width, height });
          await page.locator("#chat-send").scrollIntoViewIfNeeded();
          await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
          const boxOf = async (id: string) => (await page.locator(id).boundingBox()) ?? expect.unreachable();
          const [frame, input, send] = [
            await boxOf("#log-frame"),
            await boxOf("#chat-input"),
            await boxOf("#chat-send"),
          ];
          const size = `${width}x${height}`;
          expect([size, input.y >= frame.y + frame.height, send.y + send.height <= height]).toEqual([size, true, true]);
          expect([size, frame.height > 90, input.height > 40]).toEqual([size, true, true]);
          expect([size, await tooWide(page)]).toEqual([size, false]);
          if (whose !== newcomer) continue;
          // What is proposed scrolls above the box, and can be pressed there.
          for (const idea of await ideas.locator("button").all()) await idea.click({ trial: true });
        }
      });
    }
  },
);

browserTest(
  "on a phone the list of agents opens over the chat, and closes by choosing, by touch or with Escape",
  async () => {
    await talkAtLength();
    await withConsole(
      () => server.url,
      async (page) => {
        await page.setViewportSize(PHONE);
        await openAs(page, server.url, person.token);
        const opener = page.locator(".conversation .show-instances");
        const list = page.locator("#instances");
        await opener.click();
        await list.waitFor();
        await page.keyboard.press("Escape");
        await list.waitFor({ state: "hidden" });
        expect(await opener.evaluate((element) => element === document.activeElement)).toBe(true);
        await page.keyboard.press("Enter");
        await list.waitFor();
        expect(await faultsOf(page)).toEqual([]);
        await page.getByRole("button", { name: "Close the list of agents" }).click();
        await list.waitFor({ state: "hidden" });
        await opener.click();
        await list.waitFor();
        await page.locator("#answers-from").click();
        await list.waitFor({ state: "hidden" });
        await opener.click();
        await list.getByText("Ada").click();
        await list.waitFor({ state: "hidden" });
      },
    );
  },
);

browserTest("skipping to the content stays where one is, and tells nothing that is no news", async () => {
  await talkAtLength();
  await withConsoleAs(server, person, async (page) => {
    await page.getByText("Question 7", { exact: true }).waitFor();
    await page.evaluate(() => {
      const told = new MutationObserver(() => document.body.setAttribute("data-retold", ""));
      told.observe(document.getElementById("instance-told") ?? document.body, { childList: true, subtree: true });
    });
    await Promise.all([page.waitForResponse("**/v1/instances?*"), lookAgain(page)]);
    await page.click("#to-usage");
    await page.locator("#view-usage").waitFor();
    await page.locator(".skip").focus();
    await page.keyboard.press("Enter");
    expect(await page.evaluate(() => [document.activeElement?.id, location.hash])).toEqual(["main", "#usage"]);
    expect(await page.locator("#view-usage").isVisible()).toBe(true);
    expect(await page.evaluate(() => document.body.hasAttribute("data-retold"))).toBe(false);
  });
});

browserTest(
  "what is written from right to left stands on the right, and Enter in an input method sends nothing",
  async () => {
    await talkAtLength();
    model.script({ kind: "text", tokens: ["\u0645\u0631\u062d\u0628\u0627\n\nHello"] });
    await withConsoleAs(server, person, async (page) => {
      await page.getByText("Question 7", { exact: true }).waitFor();
      await page.fill("#chat-input", "\u05e9\u05dc\u05d5\u05dd");
      await page.locator("#chat-input").evaluate((box) => {
        const init = { key: "Enter", keyCode: 229, bubbles: true, cancelable: true };
        box.dispatchEvent(new KeyboardEvent("keydown", init));
      });
      expect(await page.inputValue("#chat-input")).not.toBe("");
      await page.press("#chat-input", "Enter");
      const said = page.locator(".turn.agent .said").last();
      await said.getByText("Hello", { exact: true }).waitFor();
      const rooms = await said.locator("p").evaluateAll((paragraphs) =>
        paragraphs.map((paragraph) => {
          const text = document.createRange();
          text.selectNodeContents(paragraph);
          const [words, box] = [text.getBoundingClientRect(), paragraph.getBoundingClientRect()];
          return words.left - box.left < 1 ? "left" : box.right - words.right < 1 ? "right" : "between";
        }),
      );
      expect(rooms).toEqual(["right", "left"]);
    });
  },
);

browserTest("axe finds no problems in any view, light or dark, on a laptop or a phone", async () => {
  await withConsole(
    () => server.url,
    async (page) => {
      const look = async (what: string) => {
        for (const size of [LAPTOP, PHONE]) {
          for (const colorScheme of ["light", "dark"] as const) {
            await page.setViewportSize(size);
            await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
            expect([what, size.width, colorScheme, await faultsOf(page)]).toEqual([what, size.width, colorScheme, []]);
          }
        }
      };
      await page.goto(server.url);
      await page.fill("#email", "nobody@example.com");
      await page.keyboard.press("Enter");
      await page.locator("#email-error").waitFor();
      await look("sign-in, refused");
      await openAs(page, server.url, person.token);
      await page.locator("#intro").waitFor();
      await look("intro");
      await talkAtLength();
      await page.reload();
      await page.getByText("Question 7", { exact: true }).waitFor();
      await look("chat");
      for (const view of ["approvals", "model", "terminal", "account"]) {
        await page.click(`#to-${view}`);
        await page.locator(`#view-${view}`).waitFor();
        await look(view);
      }
      await page.click("#ask-quote button");
      // It moves what is below it: a click meanwhile would miss.
      await page.locator("#quote").waitFor();
      await page.click("#new-key button");
      await page.locator("#made-key").waitFor();
      await look("account, with a key and a quote");
    },
  );
});

browserTest(
  "what is current, running or said by the person stands out also where the system's colours are forced",
  async () => {
    await talkAtLength();
    await withConsoleAs(server, person, async (page) => {
      await page.getByText("Question 7", { exact: true }).waitFor();
      await page.emulateMedia({ forcedColors: "active", reducedMotion: "reduce" });
      const standsOut = async (selector: string, attribute: string) => {
        const it = page.locator(selector).first();
        const drawn = () => it.screenshot({ animations: "disabled" });
        const marked = await drawn();
        await it.evaluate((element, name) => element.closest(`[${name}]`)?.removeAttribute(name), attribute);
        return !marked.equals(await drawn());
      };
      expect(await standsOut("#to-chat", "aria-current")).toBe(true);
      expect(await standsOut("#instance-list a", "aria-current")).toBe(true);
      expect(await standsOut("#instance-list summary", "data-status")).toBe(true);
      await page.locator("#to-agent").click();
      await page.locator("#agent-parts [aria-current]").waitFor();
      expect(await standsOut("#agent-parts [data-part=files]", "aria-current")).toBe(true);
      const edge = (element: Element) => getComputedStyle(element).borderTopWidth;
      expect(await page.locator(".turn.user").first().evaluate(edge)).toBe("1px");
    });
  },
);

browserTest("the first load takes few requests, and the next none for what has not changed", async () => {
  await talkAtLength();
  await withConsoleAs(server, person, async (page) => {
    await page.getByText("Question 7", { exact: true }).waitFor();
    const asked: string[] = [];
    await page.goto("about:blank");
    page.on("request", (request) => asked.push(new URL(request.url()).pathname));
    await page.goto(server.url);
    await page.getByText("Question 7", { exact: true }).waitFor();
    // Some browsers ask for the icon whenever they show the page, some only once.
    expect(asked.filter((path) => path !== "/favicon.svg").length).toBeLessThanOrEqual(12);
    const sizes = await page.evaluate(() =>
      performance
        .getEntriesByType("resource")
        .filter(({ name }) => name.includes("/console/"))
        .map((entry) => (entry as PerformanceResourceTiming).transferSize),
    );
    expect(sizes).toEqual([0, 0]);
  });
});

browserTest(
  "on a phone, the link to an agent's details stands in one row with the buttons, below the state",
  async () => {
    await talkAtLength();
    await withConsole(
      () => server.url,
      async (page) => {
        await page.setViewportSize(PHONE);
        await openAs(page, server.url, person.token);
        await page.getByText("Question 7", { exact: true }).waitFor();
        const boxOf = async (id: string) => (await page.locator(id).boundingBox()) ?? expect.unreachable();
        const [state, details, clear, power] = await Promise.all(
          ["#instance-state", "#to-agent", "#chat-clear", "#instance-power"].map(boxOf),
        );
        expect([clear?.y, power?.y]).toEqual([details?.y, details?.y]);
        expect(details?.y).toBeGreaterThanOrEqual((state?.y ?? 0) + (state?.height ?? 0));
      },
    );
  },
);

browserTest("on the narrowest phone there is room to write while an answer is written", async () => {
  await talkAtLength();
  const never = Promise.withResolvers<void>();
  await withConsoleAs(server, person, async (page) => {
    await page.setViewportSize({ width: 320, height: 640 });
    await page.getByText("Question 7", { exact: true }).waitFor();
    model.script({ kind: "text", tokens: ["One ", "two"], after: never.promise });
    await page.fill("#chat-input", "Count");
    await page.keyboard.press("Enter");
    await page.locator("#chat-cancel").waitFor();
    expect((await page.locator("#chat-input").boundingBox())?.width).toBeGreaterThan(200);
    expect(await tooWide(page)).toBe(false);
    never.resolve();
    await page.locator("#chat-cancel").waitFor({ state: "hidden" });
  });
});

browserTest("the message box grows with what is written also where no style sheet can say so", async () => {
  await talkAtLength();
  await withConsole(
    () => server.url,
    async (page, browser) => {
      await browser.addInitScript(() => {
        CSS.supports = () => false;
      });
      await openAs(page, server.url, person.token);
      await page.getByText("Question 7", { exact: true }).waitFor();
      const box = page.locator("#chat-input");
      await box.evaluate((area) => area.style.setProperty("field-sizing", "fixed"));
      const height = async () => (await box.boundingBox())?.height ?? 0;
      const least = await height();
      await box.fill("a\nb\nc\nd");
      expect(await height()).toBeGreaterThan(least + 60);
      await box.fill("");
      expect(await height()).toBe(least);
    },
  );
});

browserTest("a conversation is printed whole, with who said what, and without what is to be pressed", async () => {
  await talkAtLength();
  await withConsoleAs(server, person, async (page) => {
    await page.getByText("Question 7", { exact: true }).waitFor();
    await page.emulateMedia({ media: "print" });
    const log = page.locator("#chat-log");
    const { scrollHeight, clientHeight } = await log.evaluate((it) => ({
      scrollHeight: it.scrollHeight,
      clientHeight: it.clientHeight,
    }));
    expect(clientHeight).toBe(scrollHeight);
    expect(await page.evaluate(() => document.documentElement.scrollHeight)).toBeGreaterThan(clientHeight);
    for (const unprinted of [".top", "#instances", "#chat-form", "#conversation-bar", "#instance-power"])
      expect(await page.locator(unprinted).isVisible()).toBe(false);
    expect((await page.getByText("You:").first().boundingBox())?.width).toBeGreaterThan(10);
  });
});

browserTest("what goes wrong in the chat is told beside the box that it was written in", async () => {
  await talkAtLength();
  await withConsoleAs(server, person, async (page) => {
    await page.getByText("Question 7", { exact: true }).waitFor();
    await page.fill("#chat-input", "a".repeat(32_001));
    await page.keyboard.press("Enter");
    await page.locator("#chat > [role=alert]").waitFor();
    const told = (await page.locator("#chat > [role=alert]").boundingBox()) ?? expect.unreachable();
    const form = (await page.locator("#chat-form").boundingBox()) ?? expect.unreachable();
    expect(told.y - form.y - form.height).toBeWithin(0, 60);
  });
});
