import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type RunningBinary, startBinary } from "../support/binary.ts";
import { NO_NODES } from "../support/no-nodes.ts";
import { ONE_ADDRESS } from "../support/one-address.ts";
import { type Home, makeHome, run } from "./command-line.ts";

const SECRET = "of-the-metrics";
const SETTINGS = { ROOST_INVITE_CREDIT: "0", ROOST_METRICS_TOKEN: SECRET };
/** What a server in a test has besides. */
const env = { ...NO_NODES, ...ONE_ADDRESS, ROOST_LOG_FORMAT: "json" };
const SAID = "the running server has other settings in its environment";

let home: Home;
let server: RunningBinary;
beforeAll(async () => {
  home = makeHome();
  server = await startBinary({ dataDir: home.dataDir, env: { ...SETTINGS, ROOST_LOG_LEVEL: "debug" } });
});
afterAll(async () => {
  await server.stop();
  home.remove();
});

test("a command that does not see settings of the running server's environment names them, and no value", async () => {
  const link = ["login-link", "ada@example.org", "--data", home.dataDir];
  const blind = await run(home, link, { env });
  expect(blind.code).toBe(0);
  expect(blind.errors).toContain(`${SAID} than this command: ROOST_METRICS_TOKEN, ROOST_INVITE_CREDIT; put them into`);
  expect(blind.errors + readFileSync(join(home.dataDir, "server.json"), "utf8")).not.toContain(SECRET);
  expect((await run(home, ["doctor", "--data", home.dataDir], { env })).errors).toContain(SAID);
  expect((await run(home, ["config", "--data", home.dataDir], { env })).errors).toContain(SAID);

  const seeing = await run(home, link, { env: { ...env, ...SETTINGS } });
  expect([seeing.code, seeing.errors.includes(SAID)]).toEqual([0, false]);
  writeFileSync(join(home.dataDir, "roost.toml"), `invite_credit = "0"\nmetrics_token = "${SECRET}"\n`);
  const both = await run(home, link, { env });
  expect([both.code, both.errors.includes(SAID)]).toEqual([0, false]);
});
