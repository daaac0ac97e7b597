import { afterAll, beforeEach, expect } from "bun:test";
import type { Page } from "playwright-core";
import { now } from "../../src/tools/now.ts";
import { browserTest } from "../support/browser.ts";
import { askingTool } from "../support/scripted-tools.ts";
import type { Person } from "../support/test-server.ts";
import { lookAgain, signUpWithAgent, startWithModel, withConsoleAs } from "./with-console.ts";

let person: Person;
let agentPath: string;

const send = askingTool("send", "outside");
const { model, server, stop } = await startWithModel({ tools: [now, send.tool] });
afterAll(stop);
beforeEach(async () => {
  ({ person, agentPath } = await signUpWithAgent(server));
});

const withPage = (use: (page: Page) => Promise<void>) => withConsoleAs(server, person, use);

/** An answer that sends its first words at once, and the others when released. */
function heldAnswer(): { release: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  model.script({ kind: "tools", calls: [{ name: "now", arguments: {} }], text: "Once upon " });
  model.script({ kind: "text", tokens: ["a ", "time."], after: promise });
  return { release: resolve };
}

async function write(page: Page, text: string): Promise<void> {
  await page.fill("#chat-input", text);
  await page.keyboard.press("Enter");
}
const saidBy = (page: Page, who: "user" | "agent") => page.locator(`.turn.${who} .said`).allTextContents();

browserTest("a reload in the middle of an answer shows what was said, and continues it", async () => {
  await withPage(async (page) => {
    const { release } = heldAnswer();
    await write(page, "Tell me a story");
    await page.getByText("Once upon").waitFor();
    await page.reload();
    await page.getByText("Once upon").waitFor();
    expect(await page.locator("#chat-cancel").isVisible()).toBe(true);
    release();
    await page.getByText("Once upon a time.").waitFor();
    await page.locator("#chat-cancel").waitFor({ state: "hidden" });
    expect(await saidBy(page, "user")).toEqual(["Tell me a story"]);
    expect(await saidBy(page, "agent")).toEqual(["Once upon a time."]);
    // Who said it is heard too.
    expect(await page.locator("#chat-log").ariaSnapshot()).toMatch(/You:.*Tell me a story.*Ada:.*Once upon/s);
  });
});

browserTest(
  "a message written meanwhile is shown as waiting, also after a reload, and is answered in its turn",
  async () => {
    await withPage(async (page) => {
      const { release } = heldAnswer();
      await write(page, "First");
      await page.getByText("Once upon").waitFor();
      await write(page, "Second");
      await page.getByText("Waiting for the previous answer").waitFor();
      await page.reload();
      await page.getByText("Waiting for the previous answer").waitFor();
      release();
      await page.getByText("Hello, I am the mock model.").waitFor();
      expect(await saidBy(page, "user")).toEqual(["First", "Second"]);
      expect(await saidBy(page, "agent")).toEqual(["Once upon a time.", "Hello, I am the mock model."]);
      await page.getByText("Waiting for").waitFor({ state: "detached" });
    });
  },
);

browserTest("a run that waits for a decision says so, also after a reload, and then goes on", async () => {
  await withPage(async (page) => {
    model.script({ kind: "tools", calls: [{ name: "send", arguments: { key: "a" } }], text: "I will write. " });
    model.script({ kind: "text", tokens: ["It is sent."] });
    await write(page, "Mail it");
    await page.getByText("waiting for a decision").waitFor();
    await page.reload();
    await page.getByText("waiting for a decision").waitFor();
    expect(await page.locator("#chat-cancel").isVisible()).toBe(true);
    const [run] = (await person.ask("GET", `${agentPath}/runs?status=waiting`)).body.data;
    const { app, foundation } = server;
    foundation.store.transaction(() => app.runs.resume(run.runId, run.waitingFor, "go ahead"));
    await page.getByText("It is sent.", { exact: true }).waitFor();
    await page.getByText("waiting for a decision").waitFor({ state: "detached" });
    expect(send.acted).toEqual(["a"]);
  });
});

browserTest("a waiting message can be withdrawn from the keyboard, and the answer before it continues", async () => {
  await withPage(async (page) => {
    const { release } = heldAnswer();
    await write(page, "First");
    await page.getByText("Once upon").waitFor();
    await write(page, "Second");
    await page.getByRole("button", { name: "Withdraw" }).press("Enter");
    await page.getByText("cancelled", { exact: true }).waitFor();
    await page.waitForFunction(() => document.activeElement?.closest("#chat") !== null);
    release();
    await page.getByText("Once upon a time.").waitFor();
    await page.locator("#chat-cancel").waitFor({ state: "hidden" });
    const { body } = await person.ask("GET", `${agentPath}/messages`);
    expect(body.data.map((each: { finishReason: string | null }) => each.finishReason)).toContain("cancelled");
  });
});

browserTest(
  "a message that the server may have accepted is sent again with the same key, and stored once",
  async () => {
    await withPage(async (page) => {
      let lost = 0;
      await page.route("**/messages", async (route) => {
        if (route.request().method() !== "POST" || lost > 0) return route.continue();
        lost++;
        await route.fetch();
        await route.abort();
      });
      await write(page, "Hello");
      await page.getByText("Hello, I am the mock model.").waitFor();
      await page.locator("#chat-cancel").waitFor({ state: "hidden" });
      const { body } = await person.ask("GET", `${agentPath}/messages`);
      expect([lost, body.data.length]).toEqual([1, 2]);
    });
  },
);

browserTest("a message sent by a program is shown when the page is visible again", async () => {
  await withPage(async (page) => {
    await page.locator("#chat-ideas").waitFor();
    await person.ask("POST", `${agentPath}/messages`, { message: "From a program" });
    await lookAgain(page);
    await page.getByText("Hello, I am the mock model.").waitFor();
    expect(await saidBy(page, "user")).toEqual(["From a program"]);
  });
});

browserTest(
  "what is sent elsewhere is shown once, after what is shown already, and what was said here stays once",
  async () => {
    await withPage(async (page) => {
      await write(page, "From here");
      await page.getByText("Hello, I am the mock model.").waitFor();
      for (const message of ["One", "Two"]) {
        await person.ask("POST", `${agentPath}/messages`, { message });
        await lookAgain(page);
        await page.getByText(message, { exact: true }).waitFor();
      }
      expect(await saidBy(page, "user")).toEqual(["From here", "One", "Two"]);
      expect(await saidBy(page, "agent")).toHaveLength(3);
    });
  },
);

browserTest("what a schedule says while an answer is being written is shown, above what comes later", async () => {
  await withPage(async (page) => {
    const before = model.requests.length;
    const { release } = heldAnswer();
    await write(page, "Tell me a story");
    await model.arrived(before + 2);
    // Switched off: at eight o'clock it would take the answer that another test has scripted.
    const daily = { name: "Daily", message: "Say hello", cron: "0 8 * * *", enabled: false };
    const { scheduleId } = (await person.ask("POST", `${agentPath}/schedules`, daily)).body;
    const { runId } = (await person.ask("POST", `${agentPath}/schedules/${scheduleId}/run`)).body;
    while ((await person.ask("GET", `${agentPath}/runs/${runId}`)).body.status !== "completed") await Bun.sleep(5);
    release();
    await page.getByText("Once upon a time.").waitFor();
    await page.locator("#chat-cancel").waitFor({ state: "hidden" });
    await write(page, "Thank you");
    await page.locator(".turn.agent .said").nth(1).getByText("Hello, I am the mock model.").waitFor();
    await page.locator("#chat-cancel").waitFor({ state: "hidden" });
    await lookAgain(page);
    await page.getByText("on a schedule").waitFor();
    const hello = "Hello, I am the mock model.";
    expect(await saidBy(page, "agent")).toEqual(["Once upon a time.", hello, hello]);
    expect(await page.locator(".exchange").nth(1).textContent()).toContain("on a schedule");
    expect(await saidBy(page, "user")).toEqual(["Tell me a story", "Thank you"]);
  });
});

browserTest("a question whose run is not on this host keeps the conversation from nothing", async () => {
  model.script({ kind: "status", status: 400, body: { error: { message: "no such model" } } });
  await person.ask("POST", `${agentPath}/messages`, { message: "From before" });
  const bundle = await fetch(`${server.url}${agentPath}/bundle?history=true`, {
    headers: { Authorization: `Bearer ${person.token}` },
  });
  const { instanceId } = (await person.ask("POST", "/v1/instances", { name: "other" })).body;
  const imported = await fetch(`${server.url}/v1/instances/${instanceId}/import`, {
    method: "POST",
    headers: { Authorization: `Bearer ${person.token}`, "Content-Type": "application/gzip" },
    body: await bundle.arrayBuffer(),
  });
  expect(imported.status).toBe(201);
  await withPage(async (page) => {
    const { release } = heldAnswer();
    await page.getByText("From before").waitFor();
    await write(page, "Tell me a story");
    await page.getByText("Once upon").waitFor();
    await page.reload();
    await page.getByText("Once upon").waitFor();
    expect(await page.locator("#chat-cancel").isVisible()).toBe(true);
    expect(await page.locator("#chat-clear").isVisible()).toBe(true);
    release();
    await page.getByText("Once upon a time.").waitFor();
    expect(await page.getByRole("alert").filter({ visible: true }).count()).toBe(0);
    expect(await saidBy(page, "user")).toEqual(["From before", "Tell me a story"]);
  });
});

browserTest("an empty answer is told as such, also after a reload", async () => {
  await withPage(async (page) => {
    model.script({ kind: "text", tokens: [] });
    await write(page, "Say nothing");
    await page.getByText("It answered nothing.").waitFor();
    await page.reload();
    await page.getByText("It answered nothing.").waitFor();
  });
});

browserTest("what is sent elsewhere is shown also while a run waits for a decision", async () => {
  await withPage(async (page) => {
    model.script({ kind: "tools", calls: [{ name: "send", arguments: { key: "b" } }], text: "I will write. " });
    await write(page, "Mail it");
    await page.getByText("waiting for a decision").waitFor();
    const prefer = { Prefer: "respond-async" };
    await person.ask("POST", `${agentPath}/messages`, { message: "From a program" }, prefer);
    await lookAgain(page);
    await page.getByText("From a program").waitFor();
    await page.getByText("Waiting for the previous answer").waitFor();
    expect(await saidBy(page, "user")).toEqual(["Mail it", "From a program"]);
    await page.locator("#chat-cancel").click();
    await page.getByText("Hello, I am the mock model.").waitFor();
    expect(await saidBy(page, "agent")).toEqual(["I will write. ", "Hello, I am the mock model."]);
  });
});

browserTest("a run that could not be followed any more is followed again at the next look", async () => {
  await withPage(async (page) => {
    const { release } = heldAnswer();
    await write(page, "Tell me a story");
    await page.getByText("Once upon").waitFor();
    const error = { code: "internal_error", message: "something failed", requestId: "req_1", status: 500 };
    await page.route("**/events?*", (route) => route.fulfill({ status: 503, json: { error } }));
    await page.reload();
    await page.getByText("lost track of this answer").waitFor();
    await page.unroute("**/events?*");
    await lookAgain(page);
    await page.getByText("Once upon").waitFor();
    release();
    await page.getByText("Once upon a time.").waitFor();
    expect(await saidBy(page, "agent")).toEqual(["Once upon a time."]);
  });
});

const alert = (page: Page) => page.locator("#chat > [role=alert]");

browserTest("that an answer could not be followed is told only until it is followed again", async () => {
  await withPage(async (page) => {
    const { release } = heldAnswer();
    await write(page, "Tell me a story");
    await page.getByText("Once upon").waitFor();
    await page.route("**/events?*", (route) => route.abort());
    await page.reload();
    await alert(page).getByText("the server does not answer").waitFor();
    await page.unroute("**/events?*");
    await lookAgain(page);
    await page.getByText("Once upon").waitFor();
    expect(await alert(page).isVisible()).toBe(false);
    release();
    await page.getByText("Once upon a time.").waitFor();
  });
});

browserTest("an empty conversation that could not be loaded is shown, without the error, once it can be", async () => {
  await withPage(async (page) => {
    await page.route("**/messages?*", (route) => route.abort());
    await page.reload();
    await alert(page).getByText("the server does not answer").waitFor();
    await page.unroute("**/messages?*");
    await lookAgain(page);
    await page.locator("#chat-ideas").waitFor();
    expect(await alert(page).isVisible()).toBe(false);
  });
});

browserTest("a run whose events are no longer kept is given up once, and what is shown stays", async () => {
  await withPage(async (page) => {
    const { release } = heldAnswer();
    await write(page, "Tell me a story");
    await page.getByText("Once upon").waitFor();
    const error = { code: "not_found", message: "no longer kept", requestId: "req_1", status: 410 };
    await page.route("**/events?*", (route) => route.fulfill({ status: 410, json: { error } }));
    await page.reload();
    await page.getByText("lost track of this answer").waitFor();
    await page.locator(".exchange").evaluate((shown) => shown.setAttribute("data-kept", ""));
    for (let looks = 0; looks < 3; looks++) {
      await Promise.all([page.waitForResponse("**/messages?*"), lookAgain(page)]);
    }
    await page.unroute("**/events?*");
    await person.ask("POST", `${agentPath}/messages`, { message: "From a program" }, { Prefer: "respond-async" });
    await lookAgain(page);
    await page.getByText("From a program").waitFor();
    expect(await page.locator(".exchange[data-kept]").count()).toBe(1);
    // The next test is to have its own answer.
    const before = model.requests.length;
    release();
    await model.arrived(before + 1);
  });
});

browserTest("a run that is found twice at once is followed once", async () => {
  await withPage(async (page) => {
    await page.locator("#chat-ideas").waitFor();
    const { release } = heldAnswer();
    const prefer = { Prefer: "respond-async" };
    await person.ask("POST", `${agentPath}/messages`, { message: "From a program" }, prefer);
    await Promise.all([lookAgain(page), lookAgain(page), lookAgain(page)]);
    await page.getByText("Once upon").waitFor();
    release();
    await page.getByText("Once upon a time.").waitFor();
    await page.locator("#chat-cancel").waitFor({ state: "hidden" });
    expect(await page.locator(".agent-steps .calls > ol > li").count()).toBe(1);
  });
});

browserTest("older messages are shown on request, once each and in order", async () => {
  for (let count = 0; count < 30; count++) await person.ask("POST", `${agentPath}/messages`, { message: `n${count}` });
  await withPage(async (page) => {
    await page.getByText("n29", { exact: true }).waitFor();
    await page.click("#chat-earlier");
    await page.getByText("n0", { exact: true }).waitFor();
    expect(await saidBy(page, "user")).toEqual(Array.from({ length: 30 }, (_, count) => `n${count}`));
    expect(await page.locator("#chat-earlier").isVisible()).toBe(false);
  });
});

browserTest("clearing asks first, and leaves an empty conversation, here and on the server", async () => {
  await person.ask("POST", `${agentPath}/messages`, { message: "Remember me" });
  await withPage(async (page) => {
    await page.getByText("Remember me").waitFor();
    await page.click("#chat-clear");
    expect((await person.ask("GET", `${agentPath}/messages`)).body.data).toHaveLength(2);
    await page.getByRole("button", { name: "Really clear the conversation?" }).click();
    await page.getByText("Remember me").waitFor({ state: "detached" });
    await page.locator("#chat-ideas").waitFor();
    expect((await person.ask("GET", `${agentPath}/messages`)).body.data).toEqual([]);
    await write(page, "Anew");
    await page.getByText("Hello, I am the mock model.").waitFor();
    expect(await saidBy(page, "user")).toEqual(["Anew"]);
  });
});

/** Lets presses of a button act on the focus as in Safari: it goes nowhere. */
const pressAsInSafari = (page: Page): Promise<void> =>
  page.evaluate(() =>
    document.addEventListener("mousedown", (event) => {
      if (event.defaultPrevented || !(event.target instanceof HTMLButtonElement)) return;
      event.preventDefault();
      if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
    }),
  );

browserTest("where a press does not focus a button, clearing is asked until something else is pressed", async () => {
  await person.ask("POST", `${agentPath}/messages`, { message: "Remember me" });
  await withPage(async (page) => {
    await page.getByText("Remember me").waitFor();
    await pressAsInSafari(page);
    const clear = page.locator("#chat-clear");
    await clear.click();
    expect(await clear.textContent()).toBe("Sure?");
    await page.click("#chat-input");
    expect(await clear.textContent()).toBe("Clear");
    await clear.click();
    await clear.click();
    await page.locator("#chat-ideas").waitFor();
    expect((await person.ask("GET", `${agentPath}/messages`)).body.data).toEqual([]);
  });
});
