import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Home, makeHome, run, type Server, signIn, startServer } from "./command-line.ts";

let home: Home;
let server: Server;
beforeAll(async () => {
  home = makeHome();
  server = await startServer(home);
  await signIn(home, server.url, "ada@example.org");
  await run(home, ["instance", "create", "home"]);
  await run(home, ["agent", "create", "home", "Bo"]);
});
afterAll(async () => {
  await server.stop();
  home.remove();
});

const schedule = (...words: string[]) => run(home, ["schedule", ...words]);
const create = (...words: string[]) => schedule("create", "home", "bo", "Bees", "Look after them.", ...words);

test("a schedule without its times, or with two kinds of them, is refused in the words of the options", async () => {
  for (const [times, told] of [
    [[], "nothing says when it is due; give --cron '0 9 * * 1-5' or --every 30m"],
    [["--cron", "0 9 * * *", "--every", "30m"], "both --cron and --every say when it is due; give only one of them"],
  ] as const) {
    expect(await create(...times)).toMatchObject({ code: 2, errors: `roost: ${told}\n` });
  }
});

test("a heartbeat is not switched off as a schedule, which would forget its times and hours", async () => {
  await run(home, ["agent", "edit", "home", "bo", "--heartbeat", "1h"]);
  const refused = await schedule("off", "home", "bo", "Heartbeat");
  expect([refused.code, refused.errors]).toEqual([
    1,
    expect.stringContaining("roost agent edit home bo --heartbeat off"),
  ]);
  expect((await schedule("show", "home", "bo", "Heartbeat")).output).toContain("every hour");
  expect(await run(home, ["agent", "edit", "home", "bo", "--heartbeat", "off"])).toMatchObject({ errors: "", code: 0 });
});

test("a schedule is found by its name, and what there is is told where it is not", async () => {
  expect((await create("--every", "1h")).code).toBe(0);
  expect((await schedule("show", "home", "bo", "Bees")).output).toMatch(/\nID {7}sch_[0-9a-f]{32}\n/);
  expect((await schedule("show", "home", "bo", "Ants")).errors).toContain(
    'there is no schedule "Ants"; to see what there is: roost schedule list home bo',
  );
  expect((await create("--every", "2h")).code).toBe(0);
  expect((await schedule("show", "home", "bo", "Bees")).errors).toContain('2 match schedule "Bees" by name');
});
