import { afterAll, beforeAll, expect, test } from "bun:test";
import { join, resolve } from "node:path";
import { startHub } from "../support/hub.ts";
import { type Home, makeHome, onTerminal, run, type Server, signIn, startServer } from "./command-line.ts";

const TINY = resolve(import.meta.dir, "../models/tiny-model");
const hub = await startHub("tests/Tiny-Model", TINY);

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
  await hub.close();
  home.remove();
});

let made = 0;
const newPath = () => join(home.folder, `made-${++made}`);

/** Each command that may take long, and what it says before its bar. */
const LONG: [string, string, () => Promise<string[]>][] = [
  ["agent export", "Exporting", async () => ["agent", "export", "home", "bo", "--output", newPath()]],
  ["agent import", "Importing", async () => ["agent", "import", "home", await newBundle(), "--name", `Bo ${++made}`]],
  ["backup create", "Saving", async () => ["backup", "create", newPath(), "--data", home.dataDir]],
  ["backup verify", "Checking", async () => ["backup", "verify", await newBackup(), "--data", home.dataDir]],
  ["backup restore", "Restoring", async () => ["backup", "restore", await newBackup(), "--data", newPath()]],
  ["models import", "Copying", async () => ["models", "import", TINY, "--name", `m${++made}`, "--data", home.dataDir]],
  [
    "models pull",
    "Fetching",
    async () => ["models", "pull", "tests/Tiny-Model", "--name", `m${++made}`, "--data", home.dataDir],
  ],
];

async function newBundle(): Promise<string> {
  const file = newPath();
  expect((await run(home, ["agent", "export", "home", "bo", "--output", file])).code).toBe(0);
  return file;
}

async function newBackup(): Promise<string> {
  const file = newPath();
  expect((await run(home, ["backup", "create", file, "--data", home.dataDir])).code).toBe(0);
  return file;
}

test.each(LONG)("%s shows a bar on a terminal, and none elsewhere or with NO_COLOR", async (_, says, words) => {
  const env = { ROOST_MODEL_HUB: hub.url };
  await using terminal = onTerminal(home, await words(), env);
  expect([await terminal.exited, terminal.screen()]).toEqual([0, expect.stringContaining(says)]);
  expect(terminal.screen()).toMatch(/[░█].* \d+ %/);

  await using plain = onTerminal(home, await words(), { ...env, NO_COLOR: "1" });
  expect(await plain.exited).toBe(0);
  const piped = await run(home, await words(), { env });
  expect(piped.code).toBe(0);
  for (const text of [plain.screen(), piped.output, piped.errors]) expect(text).not.toMatch(/[░█\u001b]/);
});
