/** Servers that are no Roost, and credentials that cannot be used. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Home, makeHome, run } from "./command-line.ts";
import { type HostileServer, recordOf, startHostileServer } from "./hostile-server.ts";

let home: Home;
let roost: HostileServer;
const json = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => Response.json({ ok: true }) });
const other = `http://127.0.0.1:${json.port}`;
beforeAll(() => {
  home = makeHome();
  roost = startHostileServer(recordOf("ada"));
  mkdirSync(home.configDir, { recursive: true });
});
afterAll(async () => {
  await roost[Symbol.asyncDispose]();
  await json.stop(true);
  home.remove();
});

const file = () => join(home.configDir, "credentials.json");
const save = (current: string | null, logins: object) => writeFileSync(file(), JSON.stringify({ current, logins }));
const kept = () => JSON.parse(readFileSync(file(), "utf8"));
const login = () => ({ url: roost.url, key: "rst_live_x", keyId: null, accountId: "ada", email: "ada" });

test.each(["login", "whoami", "status", "instance list", "skill list"])(
  "a server that answers other JSON is not taken for a Roost: %s",
  async (command) => {
    save("work", { work: login() });
    const { code, output, errors } = await run(home, [...command.split(" "), "--url", other, "--key", "rst_live_x"]);
    expect([code, output]).toEqual([1, ""]);
    expect(errors).toStartWith(`roost: ${other} answered`);
    expect(errors).toEndWith("; is it a Roost server?\n");
    expect(kept().logins).toEqual({ work: login() });
  },
);

test("a saved login that cannot be used spoils no other, and is kept until its profile is signed in again", async () => {
  const bad = { url: other, key: "rst_live_y", keyId: null };
  save("work", { bad, work: login() });
  expect(await run(home, ["whoami"])).toMatchObject({ code: 0, output: "ada\n" });
  expect((await run(home, ["profile", "list", "--json"])).json()).toHaveLength(1);
  const asked = await run(home, ["whoami", "--profile", "bad"]);
  expect([asked.code, asked.errors]).toEqual([
    1,
    `roost: the login bad in ${file()} cannot be used; sign in again: roost login --profile bad, or choose another: roost profile use NAME\n`,
  ]);
  const sign = ["login", "--url", roost.url, "--key", "rst_live_x", "--profile"];
  expect((await run(home, [...sign, "second"])).code).toBe(0);
  expect(kept().logins).toMatchObject({ bad, work: login(), second: login() });
  expect((await run(home, [...sign, "bad"])).code).toBe(0);
  expect(await run(home, ["whoami", "--profile", "bad"])).toMatchObject({ code: 0, output: "ada\n" });
});

test("no other login is used in place of a current one that cannot be", async () => {
  save("bad", { bad: { url: other }, work: login() });
  const { code, errors } = await run(home, ["whoami"]);
  expect([code, errors]).toEqual([1, expect.stringContaining("the login bad in ")]);
  expect((await run(home, ["profile", "use", "work"])).code).toBe(0);
  expect(await run(home, ["whoami"])).toMatchObject({ code: 0, output: "ada\n" });
});
test.each(["rst_live_ключ", "rst_live_…", "rst_live_a\nb", "rst live"])(
  "a key with a character that none has is called wrong before it is sent: %j",
  async (key) => {
    for (const [words, env] of [
      [["whoami", "--key", key], {}],
      [["login", "--key", key], {}],
      [["whoami"], { ROOST_API_KEY: key }],
    ] as const) {
      const { code, output, errors } = await run(home, [...words, "--url", "http://127.0.0.1:1"], { env });
      expect([code, output]).toEqual([1, ""]);
      expect(errors).toStartWith("roost: the API key is wrong: ");
      expect(errors).not.toContain("rst");
    }
  },
);

test("login reads a key from standard input for -, so that no list of processes shows it", async () => {
  save(null, {});
  const sign = ["login", "--url", roost.url, "--key", "-"];
  expect((await run(home, sign, { input: "rst_live_piped\n" })).code).toBe(0);
  expect(Object.values<{ key: string }>(kept().logins).map(({ key }) => key)).toEqual(["rst_live_piped"]);
  const empty = await run(home, sign, { input: "\n" });
  expect([empty.code, empty.output, empty.errors]).toEqual([
    1,
    "",
    "roost: the key is empty; with --key -, it is read from standard input\n",
  ]);
});
