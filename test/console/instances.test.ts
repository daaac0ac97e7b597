import { afterAll, beforeEach, expect } from "bun:test";
import type { Page } from "playwright-core";
import { faultsOf } from "../support/axe.ts";
import { browserTest } from "../support/browser.ts";
import type { Person } from "../support/test-server.ts";
import { lookAgain, openAs, startWithModel, withConsole, withConsoleAs } from "./with-console.ts";

let person: Person;

const { server, stop } = await startWithModel();
afterAll(stop);
beforeEach(async () => {
  person = await server.signUp();
});

async function make(name: string, ...agents: string[]): Promise<string> {
  const { body } = await person.ask("POST", "/v1/instances", { name });
  for (const agent of agents) await person.ask("POST", `/v1/instances/${body.instanceId}/agents`, { name: agent });
  return body.instanceId;
}

const withPage = (use: (page: Page) => Promise<void>) => withConsoleAs(server, person, use);
const row = (page: Page, name: string) => page.locator("#instance-list > li", { hasText: name });

browserTest("every instance is listed with its status, cost and agents, and any can be chosen", async () => {
  const stopped = await make("garden", "Bea");
  await make("house", "Cy", "Dot");
  await person.ask("POST", `/v1/instances/${stopped}/stop`);
  await withPage(async (page) => {
    await page.locator("#agent-name", { hasText: "Cy" }).waitFor();
    expect(await page.locator("#instance-list > li summary b").allTextContents()).toEqual(["house", "garden"]);
    expect(await row(page, "house").locator("summary .soft").textContent()).toMatch(/^running( · under 0\.01 USDC)?$/);
    expect(await row(page, "garden").locator("summary .soft").textContent()).toMatch(/^stopped/);

    await row(page, "house").getByText("Dot").click();
    await page.locator("#agent-name", { hasText: "Dot" }).waitFor();
    await row(page, "garden").locator("summary").click();
    await row(page, "garden").getByText("Bea").click();
    await page.locator("#agent-name", { hasText: "Bea" }).waitFor();
    await page
      .locator("#instance-state", { hasText: /^garden · stopped · costs nothing while it is stopped/ })
      .waitFor();

    await page.reload();
    await page.locator("#agent-name", { hasText: "Bea" }).waitFor();
    await page.goBack();
    await page.locator("#agent-name", { hasText: "Dot" }).waitFor();
  });
});

browserTest(
  "in a long list, the agent that is opened by its address is in sight; the list then stays where it is scrolled",
  async () => {
    const oldest = await make("the oldest", "Ada");
    for (let number = 0; number < 30; number++) await make(`instance ${number}`);
    const [{ agentId }] = (await person.ask("GET", `/v1/instances/${oldest}/agents`)).body.data;
    await withPage(async (page) => {
      const link = row(page, "the oldest").getByRole("link", { name: "Ada" });
      const topOfLink = async () => (await link.boundingBox())?.y ?? Number.NaN;
      const height = page.viewportSize()?.height ?? 0;
      await row(page, "instance 29").waitFor();
      await page.evaluate((hash) => location.assign(hash), `#${oldest}/${agentId}`);
      await page.locator("#instance-list a[aria-current]").waitFor();
      expect(await topOfLink()).toBeWithin(0, height);

      await page.locator("#instances").evaluate((list) => list.scrollTo(0, 0));
      // Its agents are read again, and the one that is open is marked again.
      await person.ask("POST", `/v1/instances/${oldest}/agents`, { name: "Bea" });
      await lookAgain(page);
      await row(page, "the oldest").getByRole("link", { name: "Bea" }).waitFor({ state: "attached" });
      expect(await topOfLink()).toBeGreaterThan(height);
    });
  },
);

browserTest("an instance created elsewhere appears in the list, without changing the open conversation", async () => {
  const home = await make("home", "Ada");
  await withPage(async (page) => {
    await page.locator("#agent-name", { hasText: "Ada" }).waitFor();
    const other = await make("from curl");
    await lookAgain(page);
    await row(page, "from curl").waitFor();
    expect(await page.locator("#agent-name").textContent()).toBe("Ada");

    await page.reload();
    await page.locator("#agent-name", { hasText: "Ada" }).waitFor();
    await person.ask("DELETE", `/v1/instances/${other}`);
    await person.ask("POST", `/v1/instances/${home}/stop`);
    await lookAgain(page);
    await row(page, "from curl").waitFor({ state: "detached" });
    await page.locator("#instance-state", { hasText: "stopped" }).waitFor();
    await page.getByRole("button", { name: "Start home" }).waitFor();
  });
});

browserTest("what is new elsewhere is shown also while a conversation is slow to load", async () => {
  await make("home", "Ada");
  await withConsole(
    () => server.url,
    async (page) => {
      const asked = Promise.withResolvers<void>();
      const answer = Promise.withResolvers<void>();
      await page.route("**/messages?*", async (route) => {
        asked.resolve();
        await answer.promise;
        await route.continue();
      });
      await openAs(page, server.url, person.token);
      await asked.promise;
      await make("from curl");
      await lookAgain(page);
      await row(page, "from curl").waitFor();
      answer.resolve();
      await page.locator("#chat-ideas").waitFor();
    },
  );
});

browserTest("an agent that is slow to come is marked at once, and nothing is said to the one before it", async () => {
  const home = await make("home", "Ada", "Bob");
  const [{ agentId }] = (await person.ask("GET", `/v1/instances/${home}/agents`)).body.data.filter(
    ({ name }: { name: string }) => name === "Bob",
  );
  await withPage(async (page) => {
    await row(page, "home").getByRole("link", { name: "Ada" }).click();
    await page.locator("#agent-name", { hasText: "Ada" }).waitFor();
    await page.locator("main:not(.busy)").waitFor();
    const gate = Promise.withResolvers<void>();
    await page.route(`**/agents/${agentId}`, async (route) => {
      await gate.promise;
      await route.continue();
    });
    await row(page, "home").getByRole("link", { name: "Bob" }).click();
    await page.locator("#instance-list [aria-current]", { hasText: "Bob" }).waitFor();
    await page.locator("main.busy #chat[aria-busy=true]").waitFor();
    expect(await page.locator("#chat-input").isEditable()).toBe(false);
    await page.locator("#chat-ideas button").first().click();
    await page.focus("#chat-input");
    await page.keyboard.press("Enter");
    gate.resolve();
    await page.locator("#agent-name", { hasText: "Bob" }).waitFor();
    await page.locator("main:not(.busy) #chat[aria-busy=false]").waitFor();
    await page.fill("#chat-input", "To Bob");
    await page.keyboard.press("Enter");
    await page.locator(".turn.agent .said:not(:empty)").waitFor();
    await row(page, "home").getByRole("link", { name: "Ada" }).click();
    await page.locator("#agent-name", { hasText: "Ada" }).waitFor();
    await page.locator("#chat-ideas").waitFor();
    expect(await page.locator("#chat-log .exchange").count()).toBe(0);
  });
});

browserTest("an instance without an agent offers to create one", async () => {
  const home = await make("home");
  await withPage(async (page) => {
    await page.locator("#intro-title", { hasText: "There is no agent in home yet" }).waitFor();
    await page.click("#wake-agent");
    await page.locator("#agent-name", { hasText: "Ada" }).waitFor();
    const { body } = await person.ask("GET", "/v1/instances");
    expect(
      body.data.map((each: { instanceId: string; agentCount: number }) => [each.instanceId, each.agentCount]),
    ).toEqual([[home, 1]]);
  });
});

browserTest("an agent is added to the instance that is open, with who it is, and shown", async () => {
  const home = await make("home", "Ada");
  await make("garden", "Bea");
  await withPage(async (page) => {
    await row(page, "home").locator("summary").click();
    await row(page, "home").getByText("Ada").click();
    await page.locator("#agent-name", { hasText: "Ada" }).waitFor();
    const form = page.locator("#new-agent");
    await form.getByText("New agent").click();
    await form.getByText("In home").waitFor();
    expect(await faultsOf(page)).toEqual([]);
    await form.getByLabel("Name").fill("Librarian");
    await form.getByLabel("Who it is").fill("You are a librarian.");
    await form.getByRole("button", { name: "Create" }).click();
    await page.locator("#agent-name", { hasText: "Librarian" }).waitFor();
    await row(page, "home").getByText("Librarian").waitFor();
    const agents = `/v1/instances/${home}/agents`;
    const made = (await person.ask("GET", agents)).body.data.find((one: { name: string }) => one.name === "Librarian");
    const soul = await person.ask("GET", `${agents}/${made.agentId}/files/SOUL.md`);
    expect(JSON.stringify(soul.body)).toContain("You are a librarian.");
  });
});

browserTest("the address of what was deleted shows what it was in, and says what is gone", async () => {
  const home = await make("home", "Ada", "Bea");
  const empty = await make("empty");
  const gone = await make("gone", "Cy");
  const agentsOf = async (id: string) => (await person.ask("GET", `/v1/instances/${id}/agents`)).body.data;
  const [[ada, bea], [cy]] = [await agentsOf(home), await agentsOf(gone)];
  const conversations = `/v1/instances/${home}/agents/${ada.agentId}/conversations`;
  const { conversationId } = (await person.ask("POST", conversations, {})).body;
  for (const path of [`${conversations}/${conversationId}`, `/v1/instances/${home}/agents/${bea.agentId}`])
    await person.ask("DELETE", path);
  await withPage(async (page) => {
    await page.locator("#agent-name", { hasText: "Cy" }).waitFor();
    await person.ask("DELETE", `/v1/instances/${gone}/agents/${cy.agentId}`);
    await person.ask("DELETE", `/v1/instances/${gone}`);
    const shows = async (address: string, what: string, name: string, hash: string) => {
      // A page of its own: the one that is open may or may not have shown its instance by now.
      await page.goto("about:blank");
      await page.goto(`${server.url}/${address}`);
      const alert = page.locator("#chat > [role=alert]", { hasText: `this ${what} is not there any more` });
      await alert.waitFor();
      await page.locator("#agent-name", { hasText: name }).waitFor();
      expect(new URL(page.url()).hash).toBe(hash);
      for (const [width, selector] of [
        [390, ".conversation .show-instances"],
        [1280, "#instances"],
      ] as const) {
        await page.setViewportSize({ width, height: 800 });
        await page.locator(selector).waitFor();
      }
      return alert;
    };
    const [inHome, shown] = [`#${home}/${ada.agentId}`, "Ada"];
    await shows(`${inHome}/${conversationId}`, "conversation", shown, inHome);
    await shows(`#${home}/${bea.agentId}`, "agent", shown, inHome);
    await shows(`#${home}/${bea.agentId}/files`, "agent", shown, inHome);
    await shows(
      "#inst_00000000000070008000000000000000/agt_00000000000070008000000000000000",
      "instance",
      shown,
      inHome,
    );
    const alert = await shows(`#${gone}/${cy.agentId}`, "instance", shown, inHome);
    await row(page, "empty").locator("summary").click();
    await row(page, "empty").getByText("No agent yet").click();
    await page.getByText("There is no agent in empty yet").waitFor();
    expect(await alert.isVisible()).toBe(false);
    expect(new URL(page.url()).hash).toBe(`#${empty}`);
  });
});

browserTest("going back shows the agent that was shown, also where the URL named none at first", async () => {
  await make("home", "Ada", "Bea");
  await withPage(async (page) => {
    const shown = (name: string) => page.locator("#agent-name", { hasText: name }).waitFor();
    await shown("Ada");
    await row(page, "home").getByText("Bea").click();
    await shown("Bea");
    await page.goBack();
    await shown("Ada");
    await page.goForward();
    await shown("Bea");
    await page.click("#to-chat");
    await row(page, "home").getByText("Ada").click();
    await shown("Ada");
    await page.goBack();
    await shown("Bea");
  });
});

browserTest("the agent chosen last is shown, whichever the server tells of first", async () => {
  const home = await make("home", "Ada", "Bea");
  const { data } = (await person.ask("GET", `/v1/instances/${home}/agents`)).body;
  const bea = data.find((agent: { displayName: string }) => agent.displayName === "Bea").agentId;
  await withPage(async (page) => {
    await page.locator("#agent-name", { hasText: "Ada" }).waitFor();
    const asked = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<void>();
    await page.route(`**/agents/${bea}`, async (route) => {
      asked.resolve();
      await answer.promise;
      await route.continue();
    });
    await row(page, "home").getByText("Bea").click();
    await asked.promise;
    await page.goBack();
    await page.locator("#agent-name", { hasText: "Ada" }).waitFor();
    const answered = page.waitForResponse(`**/agents/${bea}`);
    answer.resolve();
    await (await answered).finished();
    // The page has dealt with it once it has asked for something else and been answered.
    await Promise.all([page.waitForResponse("**/v1/instances?*"), lookAgain(page)]);
    expect(await page.locator("#agent-name").textContent()).toBe("Ada");
    expect(new URL(page.url()).hash).not.toContain(bea);
  });
});

browserTest("an agent that cannot be opened is told of only until another is chosen", async () => {
  const home = await make("home", "Ada", "Bea", "Cy");
  const { data } = (await person.ask("GET", `/v1/instances/${home}/agents`)).body;
  const bea = data.find((agent: { displayName: string }) => agent.displayName === "Bea").agentId;
  await withPage(async (page) => {
    await page.locator("#agent-name", { hasText: "Ada" }).waitFor();
    const asked = Promise.withResolvers<void>();
    const fail = Promise.withResolvers<void>();
    await page.route(`**/agents/${bea}`, async (route) => {
      asked.resolve();
      await fail.promise;
      await route.abort();
    });
    await row(page, "home").getByText("Bea").click();
    await asked.promise;
    await row(page, "home").getByText("Cy").click();
    await page.locator("#agent-name", { hasText: "Cy" }).waitFor();
    const failed = page.waitForEvent("requestfailed");
    fail.resolve();
    await failed;
    await Promise.all([page.waitForResponse("**/v1/instances?*"), lookAgain(page)]);
    expect(await page.getByRole("alert").filter({ visible: true }).count()).toBe(0);
  });
});

browserTest("agents that could not be read are read at the next look too", async () => {
  const garden = await make("garden", "Bea");
  await make("home", "Ada");
  await withPage(async (page) => {
    await row(page, "home").getByText("Ada").waitFor();
    await page.route(`**/${garden}/agents*`, (route) => route.abort());
    await row(page, "garden").locator("summary").click();
    await page.locator("#instances > [role=alert]").waitFor();
    await page.unroute(`**/${garden}/agents*`);
    await lookAgain(page);
    await row(page, "garden").getByText("Bea").waitFor();
  });
});

browserTest(
  "agents that could not be read are read when their instance is opened again, whatever else is read",
  async () => {
    const [garden, house] = [await make("garden", "Bea"), await make("house", "Cy")];
    await make("home", "Ada");
    await withPage(async (page) => {
      await row(page, "home").getByText("Ada").waitFor();
      const summary = (name: string) => row(page, name).locator("summary");
      await page.route(`**/${garden}/agents*`, (route) => route.abort());
      await summary("garden").click();
      await page.locator("#instances > [role=alert]").waitFor();
      await page.unroute(`**/${garden}/agents*`);
      await summary("garden").click();
      const asked = Promise.withResolvers<void>();
      const answer = Promise.withResolvers<void>();
      await page.route(`**/${house}/agents*`, async (route) => {
        asked.resolve();
        await answer.promise;
        await route.continue();
      });
      await summary("house").click();
      await asked.promise;
      await summary("garden").click();
      await row(page, "garden").getByText("Bea").waitFor();
      answer.resolve();
      await row(page, "house").getByText("Cy").waitFor();
      expect(await page.getByRole("alert").filter({ visible: true }).count()).toBe(0);
    });
  },
);

browserTest(
  "who writes to an instance that was stopped elsewhere is told so once, and can start it at once",
  async () => {
    const home = await make("home", "Ada");
    await withPage(async (page) => {
      await page.locator("#chat-ideas").waitFor();
      await person.ask("POST", `/v1/instances/${home}/stop`);
      await page.fill("#chat-input", "Hello");
      await page.keyboard.press("Enter");
      const alert = page.locator("#chat > [role=alert]");
      await alert.waitFor();
      expect(await alert.textContent()).toBe("the instance is stoppedStart it, then try again.");
      await page.locator("#instance-state", { hasText: "home · stopped" }).waitFor();
      await page.getByRole("button", { name: "Start home" }).click();
      await page.locator("#instance-state", { hasText: "home · running" }).waitFor();
      await page.press("#chat-input", "Enter");
      await page.locator(".turn.agent").getByText("Hello, I am the mock model.").waitFor();
    });
  },
);

browserTest("instances are in the API's order, newest first, whichever of them is opened first", async () => {
  const first = await make("first", "Ada");
  await make("second", "Bea");
  await make("third", "Cy");
  await withPage(async (page) => {
    // Loaded from elsewhere: a `goto` that changes only the fragment ends with whichever change of it comes first.
    await page.goto(`${server.url}/favicon.svg`);
    await page.goto(`${server.url}/#${first}`);
    await page.locator("#agent-name", { hasText: "Ada" }).waitFor();
    await make("fourth", "Dot");
    await lookAgain(page);
    await row(page, "fourth").waitFor();
    const names = page.locator("#instance-list > li summary b");
    expect(await names.allTextContents()).toEqual(["fourth", "third", "second", "first"]);
  });
});
