import { afterAll, beforeEach, expect } from "bun:test";
import type { Page } from "playwright-core";
import { browserTest } from "../support/browser.ts";
import type { Person } from "../support/test-server.ts";
import { lookAgain, openAs, startWithModel, withConsole, withConsoleAs } from "./with-console.ts";

let person: Person;

const { server, stop } = await startWithModel();
afterAll(stop);
beforeEach(async () => {
  person = await server.signUp();
  const { instanceId } = (await person.ask("POST", "/v1/instances", { name: "home" })).body;
  for (const name of ["Ada", "Bea"]) await person.ask("POST", `/v1/instances/${instanceId}/agents`, { name });
});

const withPage = (use: (page: Page) => Promise<void>) => withConsoleAs(server, person, use);
const shown = (page: Page, name: string) => page.locator("#agent-name", { hasText: name }).waitFor();
const choose = async (page: Page, name: string) => {
  await page.locator("#instance-list").getByText(name).click();
  await shown(page, name);
};
const written = (page: Page) => page.inputValue("#chat-input");
/** Waits until this is what is written. */
const nowWritten = (page: Page, text: string) =>
  page.waitForFunction((all) => {
    const box = document.getElementById("chat-input");
    return box instanceof HTMLTextAreaElement && box.value === all;
  }, text);
async function send(page: Page, text: string): Promise<void> {
  await page.fill("#chat-input", text);
  await page.press("#chat-input", "Enter");
}

/** Refuses what is sent from now on, once `refuse` is called; `asked` is when the first is there. */
async function refusing(page: Page) {
  const [asked, refusal] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  await page.route("**/messages", async (route) => {
    if (route.request().method() !== "POST") return route.continue();
    asked.resolve();
    await refusal.promise;
    await route.fulfill({ status: 400, json: { error: { code: "invalid_request", message: "no" } } });
  });
  return { asked: asked.promise, refuse: refusal.resolve };
}

browserTest("a message that was not sent returns to the agent it was for", async () => {
  await withPage(async (page) => {
    await shown(page, "Ada");
    const { asked, refuse } = await refusing(page);
    await send(page, "half a thought");
    await asked;
    await choose(page, "Bea");
    refuse();
    await page.locator("#view-chat [role=alert]").filter({ visible: true }).waitFor();
    expect(await written(page)).toBe("");
    await choose(page, "Ada");
    expect(await written(page)).toBe("half a thought");
  });
});

browserTest(
  "messages that were not sent come back in order, before what is being written, wherever the page is by then",
  async () => {
    await withPage(async (page) => {
      await shown(page, "Ada");
      const { asked, refuse } = await refusing(page);
      await send(page, "One");
      await asked;
      await send(page, "Two");
      await page.fill("#chat-input", "half a thought");
      await choose(page, "Bea");
      // The page learns of both in its own time: whoever is back by then, or comes back later, sees them.
      await choose(page, "Ada");
      refuse();
      await nowWritten(page, "One\n\nTwo\n\nhalf a thought");
    });
  },
);

browserTest(
  "what came back and was changed is kept as it stands, and what comes back later stands before it",
  async () => {
    await withPage(async (page) => {
      await shown(page, "Ada");
      const { refuse } = await refusing(page);
      refuse();
      await send(page, "One");
      await nowWritten(page, "One");
      await page.locator("#chat-input").pressSequentially(" more");
      await page.reload();
      await shown(page, "Ada");
      expect(await written(page)).toBe("One more");
      const idea = page.locator("#chat-ideas button").first();
      await idea.click();
      await nowWritten(page, `${await idea.textContent()}\n\nOne more`);
    });
  },
);

browserTest("what is being sent while the page is loaded again is there again, and what was sent is not", async () => {
  await withPage(async (page) => {
    await shown(page, "Ada");
    await send(page, "Zero");
    await page.getByText("Hello, I am the mock model.").waitFor();
    const { asked } = await refusing(page);
    await send(page, "One");
    await asked;
    await page.fill("#chat-input", "half a thought");
    await page.reload();
    await shown(page, "Ada");
    expect(await written(page)).toBe("One\n\nhalf a thought");
  });
});

browserTest("an unsent message to one agent is kept while talking to another, and over a reload", async () => {
  await withPage(async (page) => {
    await page.fill("#chat-input", "half a thou");
    await choose(page, "Bea");
    expect(await written(page)).toBe("");
    await page.reload();
    await shown(page, "Bea");
    await choose(page, "Ada");
    expect(await written(page)).toBe("half a thou");
  });
});

browserTest(
  "what was written when a session ended by itself is there for who signs in again, and nobody else",
  async () => {
    const end = async (page: Page, token: string) => {
      await server.ask("POST", "/v1/auth/revoke-tokens", { token });
      await page.reload();
      await page.getByText("Your session has ended. Sign in again.").waitFor();
      expect(await page.evaluate(() => sessionStorage.getItem("roost.token"))).toBeNull();
    };
    const signInAs = async (page: Page, email: string) => {
      await page.goto(`${server.url}/#link=${server.foundation.links.create(email, 0n)}`);
      await page.locator("#signed-in").waitFor();
    };
    const { email } = (await person.ask("GET", "/v1/auth/me")).body;
    await withConsole(
      () => server.url,
      async (page) => {
        await openAs(page, server.url, person.token);
        await shown(page, "Ada");
        await page.fill("#chat-input", "half a thought");
        await end(page, person.token);
        await signInAs(page, email);
        await shown(page, "Ada");
        expect(await written(page)).toBe("half a thought");

        await end(page, await page.evaluate(() => sessionStorage.getItem("roost.token") ?? ""));
        await signInAs(page, `other.${email}`);
        expect(await page.evaluate(() => JSON.stringify(sessionStorage))).not.toContain("half a thought");
      },
    );
  },
);

browserTest("a message whose session has ended is there again once its account has signed in", async () => {
  const { email } = (await person.ask("GET", "/v1/auth/me")).body;
  await withPage(async (page) => {
    await shown(page, "Ada");
    await person.ask("POST", "/v1/auth/revoke-tokens");
    await send(page, "a whole thought");
    await page.getByText("Your session has ended. Sign in again.").waitFor();
    await page.goto(`${server.url}/#link=${server.foundation.links.create(email, 0n)}`);
    await shown(page, "Ada");
    expect(await written(page)).toBe("a whole thought");
  });
});

browserTest("a half-written new agent or schedule is asked about before the page is left, and then only", async () => {
  await withPage(async (page) => {
    await shown(page, "Ada");
    const reload = async (answer: "accept" | "dismiss") => {
      const dialog = page.waitForEvent("dialog");
      const reloaded = page.reload().catch(() => undefined);
      expect((await dialog).type()).toBe("beforeunload");
      await (await dialog)[answer]();
      if (answer === "accept") await reloaded;
    };
    await page.getByText("New agent").click();
    await page.getByLabel("Who it is").fill("You are a lib");
    await reload("dismiss");
    expect(await page.getByLabel("Who it is").inputValue()).toBe("You are a lib");
    await page.fill("#new-agent-name", "Librarian");
    await page.getByRole("button", { name: "Create" }).click();
    await shown(page, "Librarian");
    await page.reload();
    await page.locator("#to-agent").click();
    await page.locator("#agent-parts").getByText("Schedules").click();
    await page.getByText("Plan something").click();
    await page.getByLabel("What it is told").fill("Suggest a po");
    await page.locator("#to-conversation").click();
    await page.locator("#chat-input").waitFor();
    await page.locator("#to-agent").click();
    await page.locator("#agent-parts").getByText("Schedules").click();
    await page.locator("#schedules:not(.loading)").waitFor();
    expect(await page.getByLabel("What it is told").inputValue()).toBe("Suggest a po");
    await reload("dismiss");

    // It stays also while another agent's are looked at, and planned.
    const schedulesOf = async (name: string) => {
      await page.locator("#to-conversation").click();
      await choose(page, name);
      await page.locator("#to-agent").click();
      await page.locator("#agent-parts").getByText("Schedules").click();
      await page.locator("#schedules-of", { hasText: name }).waitFor();
      await page.locator("#schedules:not(.loading)").waitFor();
    };
    await page.getByLabel("Tell me what it says at the end").uncheck();
    await schedulesOf("Bea");
    expect(await page.getByLabel("What it is told").inputValue()).toBe("");
    await reload("dismiss");
    await page.getByText("Plan something").click();
    await page.locator("#schedule-name").fill("Morning");
    await page.getByLabel("What it is told").fill("Say hello.");
    await page.getByRole("button", { name: "Plan it" }).click();
    await page.getByText("Morning is planned.").waitFor();
    await schedulesOf("Librarian");
    expect(await page.getByLabel("What it is told").inputValue()).toBe("Suggest a po");
    expect(await page.getByLabel("Tell me what it says at the end").isChecked()).toBe(false);
    await page.locator("#schedule-cancel").click();
    await page.reload();
    await page.locator("#schedules:not(.loading)").waitFor();
  });
});

browserTest("signing out asks nothing, and removes what was written and not sent", async () => {
  await withPage(async (page) => {
    // Nobody may stay on the page of a session that has ended.
    page.on("dialog", (dialog) => dialog.dismiss());
    await shown(page, "Ada");
    await page.getByText("New agent").click();
    await page.getByLabel("Who it is").fill("You are a lib");
    await page.fill("#chat-input", "half a thought");
    await page.click("#to-account");
    await page.click("#sign-out");
    await page.locator("#signed-out").waitFor();
    expect(await page.evaluate(() => sessionStorage.length)).toBe(0);
  });
});

browserTest(
  "who has something half written when the session ends by itself may stay, and save it after signing in in another tab",
  async () => {
    await withPage(async (page) => {
      await shown(page, "Ada");
      await page.getByText("New agent").click();
      await page.getByLabel("Who it is").fill("You are a lib");
      const asked = page.waitForEvent("dialog");
      await person.ask("POST", "/v1/auth/revoke-tokens");
      await lookAgain(page);
      const dialog = await asked;
      expect(dialog.type()).toBe("beforeunload");
      await dialog.dismiss();
      expect(await page.getByLabel("Who it is").inputValue()).toBe("You are a lib");

      await page.fill("#new-agent-name", "Librarian");
      const create = page.getByRole("button", { name: "Create", exact: true });
      await create.click();
      const alert = page.locator("#instances > [role=alert]");
      await alert.getByText("your session has ended").waitFor();
      const held = () => page.evaluate(() => sessionStorage.getItem("roost.token"));
      const signIn = async (email: string) => {
        const other = await page.context().newPage();
        await other.goto(`${server.url}/#link=${server.foundation.links.create(email, 0n)}`);
        await other.locator("#signed-in").waitFor();
        return other;
      };
      // Somebody else's session is not taken.
      const theirs = await signIn("somebody@example.com");
      expect(await held()).toBeNull();
      await theirs.close();
      await signIn(person.email);
      await page.waitForFunction(() => sessionStorage.getItem("roost.token") !== null);
      await create.click();
      await shown(page, "Librarian");
      expect(await alert.isVisible()).toBe(false);
    });
  },
);

browserTest("a text longer than a message may be comes back whole, with what is wrong", async () => {
  await withPage(async (page) => {
    await shown(page, "Ada");
    const long = `${"a".repeat(32_000)}!`;
    await page.focus("#chat-input");
    await page.keyboard.insertText(long);
    await page.keyboard.press("Enter");
    await page.locator("#chat > [role=alert]").getByText("this message has 32,001 characters").waitFor();
    expect((await written(page)) === long).toBe(true);
  });
});
