import { afterAll, beforeEach, expect } from "bun:test";
import type { Page } from "playwright-core";
import { HOUR, handClock } from "../lib/hand-clock.ts";
import { readEvents } from "../messages/conversation.ts";
import { faultsOf } from "../support/axe.ts";
import { browserTest } from "../support/browser.ts";
import type { Person } from "../support/test-server.ts";
import {
  focus,
  openAs,
  SIZES,
  signUpWithAgent,
  startWithModel,
  tooWide,
  withConsole,
  withConsoleAs,
} from "./with-console.ts";

const clock = handClock();
let person: Person;
let agentPath: string;
let hash: string;

const { server, stop } = await startWithModel({ clock });
afterAll(stop);
beforeEach(async () => {
  const ada = await signUpWithAgent(server);
  ({ person, agentPath } = ada);
  hash = `${ada.hash}/schedules`;
});

const listed = async () => (await person.ask("GET", `${agentPath}/schedules`)).body.data;
const withSchedules = (use: (page: Page) => Promise<void>) =>
  withConsoleAs(
    server,
    person,
    async (page) => {
      await page.locator("#schedules:not(.loading)").waitFor();
      await use(page);
    },
    hash,
  );

browserTest("a schedule is planned with its next five times shown, switched, run, changed and deleted", async () => {
  await withSchedules(async (page) => {
    await page.getByText("Plan something").click();
    await page.locator("#schedules").getByLabel("Name", { exact: true }).fill("Morning");
    await page.getByLabel("What it is told").fill("Suggest a poem.");
    await page.getByLabel("When").selectOption("Monday to Friday at");
    await page.getByLabel("Time", { exact: true }).fill("07:30");
    await page.getByLabel("Time zone").fill("Mars/Olympus");
    await page.getByText("None: something above is not right yet.").waitFor();
    await page.getByLabel("Time zone").fill("Asia/Tokyo");
    const times = await page.locator("#schedule-preview li").allTextContents();
    expect(times).toHaveLength(5);
    for (const time of times) expect(time).toEndWith("at 07:30");
    await page.getByRole("button", { name: "Plan it" }).click();
    await page.getByText("Morning is planned.").waitFor();
    expect(await listed()).toMatchObject([
      { name: "Morning", message: "Suggest a poem.", cron: "30 7 * * 1-5", timeZone: "Asia/Tokyo", enabled: true },
    ]);
    const row = page.locator("#schedule-list > li");
    expect(await row.locator("p").first().textContent()).toStartWith("Monday to Friday at 07:30 (Asia/Tokyo) · next ");

    await page.getByRole("button", { name: "Edit Morning" }).click();
    expect(await page.getByLabel("Time", { exact: true }).inputValue()).toBe("07:30");
    await page.getByLabel("When").selectOption("Every so many minutes");
    await page.getByLabel("Minutes", { exact: true }).fill("60");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await row.getByText("Every hour").waitFor();
    expect(await listed()).toMatchObject([{ cron: null, everySeconds: 3600 }]);

    await page.getByRole("button", { name: "Run now: Morning" }).click();
    await page.getByText("Morning runs now.").waitFor();
    await page.getByLabel("Morning is on").uncheck();
    await page.getByText("It is off.").waitFor();
    expect(await listed()).toMatchObject([{ enabled: false }]);
    const remove = page.getByRole("button", { name: "Delete Morning" });
    await remove.click();
    await page.getByRole("button", { name: "Really delete morning?" }).click();
    await page.getByText("Nothing is planned.").waitFor();
    expect(await listed()).toEqual([]);
  });
});

browserTest(
  "editing a schedule does not replace what is being written, which is saved or cancelled first",
  async () => {
    await person.ask("POST", `${agentPath}/schedules`, { name: "Look", message: "Look.", everySeconds: 3600 });
    await withSchedules(async (page) => {
      const name = page.locator("#schedule-form").getByLabel("Name", { exact: true });
      const edit = page.getByRole("button", { name: "Edit Look" });
      await page.getByText("Plan something").click();
      await page.getByLabel("What it is told").fill("Suggest a po");
      await page.getByText("Plan something").click();
      await edit.click();
      expect(await page.getByLabel("What it is told").inputValue()).toBe("Suggest a po");
      const told = await name.evaluate((it) => [
        it === document.activeElement,
        (it as HTMLInputElement).validationMessage,
      ]);
      expect(told).toEqual([true, "First save or cancel what is written here."]);
      await name.fill("Poem");
      await page.getByRole("button", { name: "Plan it" }).click();
      await page.getByText("Poem is planned.").waitFor();
      await edit.click();
      await name.fill("Lo");
      await edit.click();
      expect(await name.inputValue()).toBe("Lo");
      await page.locator("#schedule-form").getByRole("button", { name: "Cancel" }).click();
      await edit.click();
      expect(await name.inputValue()).toBe("Look");
    });
  },
);

browserTest("a schedule that is opened to be edited while another is being saved stays open", async () => {
  for (const name of ["Look", "Watch"])
    await person.ask("POST", `${agentPath}/schedules`, { name, message: "Look.", everySeconds: 3600 });
  await withSchedules(async (page) => {
    const name = page.locator("#schedule-form").getByLabel("Name", { exact: true });
    const edited = Promise.withResolvers<void>();
    await page.route("**/schedules/*", async (route) => {
      await edited.promise;
      await route.continue();
    });
    await page.getByRole("button", { name: "Edit Look" }).click();
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("button", { name: "Edit Watch" }).click();
    edited.resolve();
    await page.getByText("Look is planned.").waitFor();
    expect([await name.inputValue(), await name.isVisible()]).toEqual(["Watch", true]);
    await name.fill("Watch it");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Watch it is planned.").waitFor();
    expect((await listed()).map((one: { name: string }) => one.name).sort()).toEqual(["Look", "Watch it"]);
  });
});

browserTest("the rest of a schedule is set under More, shown again when it is changed, and taken back", async () => {
  await withSchedules(async (page) => {
    await page.getByText("Plan something").click();
    const form = page.locator("#schedule-form");
    await form.getByLabel("Name", { exact: true }).fill("Watch");
    await form.getByLabel("What it is told").fill("Look after it.");
    await form.getByText("More", { exact: true }).click();
    await form.getByLabel("Once, late").uncheck();
    await form.getByLabel("In its default conversation").check();
    await form.getByLabel("Only from").fill("22:00");
    await form.getByLabel("Model").fill("openai:mock");
    await form.getByText("More", { exact: true }).click();
    await page.getByRole("button", { name: "Plan it" }).click();
    expect(await form.getByLabel("to", { exact: true }).isVisible()).toBe(true);
    await form.getByLabel("to", { exact: true }).fill("06:00");
    await page.getByRole("button", { name: "Plan it" }).click();
    await page.getByText("Watch is planned.").waitFor();
    const rest = { missed: "skip", conversation: "default", model: "openai:mock" };
    expect(await listed()).toMatchObject([{ ...rest, activeHours: { from: "22:00", to: "06:00" } }]);

    await page.getByRole("button", { name: "Edit Watch" }).click();
    await form.getByText("More", { exact: true }).click();
    const shown = await Promise.all(
      ["Only from", "to", "Model"].map((name) => form.getByLabel(name, { exact: true }).inputValue()),
    );
    expect(shown).toEqual(["22:00", "06:00", "openai:mock"]);
    await form.getByLabel("Once, late").check();
    await form.getByLabel("In its default conversation").uncheck();
    await form.getByLabel("Only from").fill("");
    await form.getByLabel("to", { exact: true }).fill("");
    await form.getByLabel("Model").fill("");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Watch is planned.").waitFor();
    const usual = { missed: "run_once", conversation: "own", model: null, activeHours: null };
    expect(await listed()).toMatchObject([usual]);
  });
});

browserTest(
  "without its minutes nothing is sent, and what is expected is said; a heartbeat can still be switched off",
  async () => {
    await person.ask("PATCH", agentPath, { heartbeat: { everySeconds: 1800 } });
    await withSchedules(async (page) => {
      const fault = (id: string) =>
        page.locator(id).evaluate((field) => field instanceof HTMLInputElement && field.validationMessage);
      await page.getByText("Plan something").click();
      const form = page.locator("#schedule-form");
      await form.getByLabel("Name", { exact: true }).fill("Watch");
      await form.getByLabel("What it is told").fill("Look after it.");
      await form.getByLabel("When").selectOption("Every so many minutes");
      await form.getByLabel("Minutes", { exact: true }).fill("");
      await page.getByRole("button", { name: "Plan it" }).click();
      expect(await fault("#schedule-minutes")).toBe("Expected a number of minutes, such as 60.");
      expect(await page.getByRole("alert").filter({ visible: true }).count()).toBe(0);
      // Nor does a field that is not shown keep a schedule from being planned.
      await form.getByLabel("Minutes", { exact: true }).fill("0");
      await form.getByLabel("When").selectOption("Every day at");
      await page.getByRole("button", { name: "Plan it" }).click();
      await page.getByText("Watch is planned.").waitFor();

      await page.getByLabel("Every, in minutes").fill("");
      await page.getByLabel("Heartbeat: look after").uncheck();
      await page.getByText("The heartbeat is off.").waitFor();
      await page.getByLabel("Every, in minutes").fill("");
      await page.getByLabel("Heartbeat: look after").click();
      expect(await page.getByLabel("Heartbeat: look after").isChecked()).toBe(false);
      expect(await fault("#heartbeat-minutes")).not.toBe("");
      expect((await listed()).map(({ name }: { name: string }) => name)).toEqual(["Watch"]);
    });
  },
);

browserTest(
  "while the script of the schedules is not there nothing can be written, and showing them again asks for it",
  async () => {
    await withSchedules(async (page) => {
      await page.route("**/due-times-*.js", (route) => route.abort());
      await page.reload();
      await page.locator("#schedules > [role=alert]").waitFor();
      const plan = page.locator("#schedules").getByText("Plan something");
      expect(await page.locator("#schedules > [inert]").count()).toBe(2);
      await page.unroute("**/due-times-*.js");
      await page.locator("#agent-parts").getByText("Files").click();
      await page.locator("#agent-parts").getByText("Schedules").click();
      await plan.click();
      await page.getByLabel("What it is told").fill("Suggest a poem.");
      expect(await page.locator("#schedule-preview li").count()).toBe(5);
    });
  },
);

browserTest("a heartbeat that is switched off and on again keeps its hours, which are shown", async () => {
  const activeHours = { from: "08:00", to: "20:00" };
  await person.ask("PATCH", agentPath, {
    heartbeat: { everySeconds: 1800, timeZone: "Pacific/Auckland", activeHours },
  });
  await withSchedules(async (page) => {
    await page
      .locator("#schedule-list > li")
      .getByText("Every 30 minutes, 08:00 to 20:00 (Pacific/Auckland)")
      .waitFor();
    await page.getByLabel("Heartbeat: look after").uncheck();
    await page.getByText("The heartbeat is off.").waitFor();
    await page.getByLabel("Heartbeat: look after").check();
    await page.getByText("The heartbeat is on.").waitFor();
    expect(await listed()).toMatchObject([{ everySeconds: 1800, timeZone: "Pacific/Auckland", activeHours }]);
  });
});

browserTest(
  "times of an interval are told on one clock, and an odd number of seconds can be kept or changed",
  async () => {
    const planned = { name: "Look", message: "Look.", everySeconds: 90 };
    await person.ask("POST", `${agentPath}/schedules`, planned);
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    // A zone on whose clocks it is another hour than on this browser's.
    const timeZone = zone === "Asia/Kolkata" ? "UTC" : "Asia/Kolkata";
    await person.ask("POST", `${agentPath}/schedules`, { ...planned, name: "Watch", everySeconds: 3600, timeZone });
    clock.step(HOUR);
    await server.app.scheduleTimer.tick();
    await withSchedules(async (page) => {
      const row = page.locator("#schedule-list > li", { hasText: "Watch" });
      const [{ scheduleId }] = (await listed()).filter(({ name }: { name: string }) => name === "Watch");
      const [slot] = (await person.ask("GET", `${agentPath}/schedules/${scheduleId}/slots`)).body.data;
      const form = { hour: "2-digit", minute: "2-digit", timeZone: zone } as const;
      const at = `at ${new Date(slot.slotAt).toLocaleTimeString("en-GB", form)}`;
      expect(await row.locator("p").nth(1).textContent()).toContain(at);
      expect(await row.locator(".history li").first().textContent()).toContain(at);

      await page.getByRole("button", { name: "Edit Look" }).click();
      expect(await page.getByLabel("Minutes", { exact: true }).inputValue()).toBe("1.5");
      await page.getByRole("button", { name: "Save", exact: true }).click();
      await page.getByText("Look is planned.").waitFor();
      await page.getByRole("button", { name: "Edit Look" }).click();
      await page.getByLabel("Minutes", { exact: true }).fill("1.6666");
      await page.getByRole("button", { name: "Save", exact: true }).click();
      await page.locator("#schedule-list").getByText("Every 100 seconds").waitFor();
      expect(await listed()).toContainEqual(expect.objectContaining({ name: "Look", everySeconds: 100 }));
    });
  },
);

browserTest("the heartbeat is switched on with its minutes, and off, with the keyboard", async () => {
  await withSchedules(async (page) => {
    await page.getByLabel("Every, in minutes").fill("45");
    await focus(page.getByLabel("Heartbeat: look after"));
    await page.keyboard.press("Space");
    await page.getByText("The heartbeat is on.").waitFor();
    expect(await listed()).toMatchObject([{ kind: "heartbeat", everySeconds: 2700, enabled: true }]);
    await page.locator("#schedule-list > li").getByText("Every 45 minutes").waitFor();
    await focus(page.getByLabel("Heartbeat: look after"));
    await page.keyboard.press("Space");
    await page.getByText("The heartbeat is off.").waitFor();
    expect(await listed()).toEqual([]);
  });
});

browserTest("what became of the times is told by bars and in words, on every screen without a fault", async () => {
  const hourly = { name: "Look", message: "Hello", cron: "0 * * * *", missed: "skip" };
  await person.ask("POST", `${agentPath}/schedules`, hourly);
  await person.ask("POST", `${agentPath}/schedules`, { ...hourly, name: "a".repeat(100), cron: "*/7 3,5 1 1-3 *" });
  await person.ask("PATCH", agentPath, { heartbeat: { everySeconds: 1800 } });
  for (const hours of [1, 1, 4, 1, 1]) {
    clock.step(hours * HOUR - ((clock.now() + hours * HOUR) % HOUR));
    await server.app.scheduleTimer.tick();
  }
  // The day has not ended for the token, and what ran is told.
  await withSchedules(async (page) => {
    const strip = page.getByRole("img", { name: /^Of the last \d+ times: \d+ ran, (\d+ skipped, )?\d+ missed$/ });
    expect(await strip.count()).toBe(1);
    await page.getByLabel("What became of its times: Look").click();
    await page.locator(".history li").filter({ hasText: "the host was not running at that time" }).first().waitFor();
    await page.getByText("HEARTBEAT.md has nothing but headings and comments").first().waitFor();
    await page.getByText("Plan something").click();
    await page.locator("#schedule-more > summary").click();
    for (const size of SIZES) {
      for (const colorScheme of ["light", "dark"] as const) {
        await page.setViewportSize(size);
        await page.emulateMedia({ colorScheme });
        expect([size.width, colorScheme, await tooWide(page)]).toEqual([size.width, colorScheme, false]);
        expect(await faultsOf(page)).toEqual([]);
        const folder = process.env.ROOST_TEST_PICTURES;
        if (folder) await page.locator("#schedules").screenshot({ path: `${folder}/${size.width}-${colorScheme}.png` });
      }
    }
  });
});

browserTest("what an agent said by itself is told from what it answered", async () => {
  await person.ask("POST", `${agentPath}/messages`, { message: "Good morning" });
  await person.ask("POST", `${agentPath}/schedules`, { name: "Look", message: "Look.", everySeconds: 3600 });
  const asked = { name: "Ask", message: "Ask here.", everySeconds: 3600, conversation: "default" };
  await person.ask("POST", `${agentPath}/schedules`, asked);
  await person.ask("PATCH", agentPath, {
    heartbeat: { everySeconds: 3600 },
    files: { "HEARTBEAT.md": "- Look around." },
  });
  for (const { scheduleId } of await listed()) {
    const { body } = await person.ask("POST", `${agentPath}/schedules/${scheduleId}/run`);
    await using stream = readEvents(await person.fetch("GET", `${agentPath}/events?after=0`));
    await stream.until(({ event, data }) => data.runId === body.runId && event === "run.completed");
  }
  await withConsole(
    () => server.url,
    async (page) => {
      await openAs(page, server.url, person.token);
      await page.locator("#chat-log .turn").nth(5).waitFor();
      const shown = await page
        .locator("#chat-log .turn")
        .evaluateAll((turns) => turns.map((turn) => [turn.className, turn.querySelector(".cause")?.textContent]));
      expect(shown).toEqual([
        ["turn user", ""],
        ["turn agent", ""],
        ["turn agent", "on a schedule"],
        ["turn user", "on a schedule"],
        ["turn agent", ""],
        ["turn agent", "at a heartbeat"],
      ]);
      expect(await faultsOf(page)).toEqual([]);
      const folder = process.env.ROOST_TEST_PICTURES;
      if (folder) await page.screenshot({ path: `${folder}/chat.png` });
    },
  );
});
