import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Home, makeHome, onTerminal, operate, run, type Server, signIn, startServer } from "./command-line.ts";

let home: Home;
let other: Home;
let server: Server;
let second: Server;
beforeAll(async () => {
  home = makeHome();
  other = makeHome();
  [server, second] = await Promise.all([startServer(home), startServer(other)]);
});
afterAll(async () => {
  await Promise.all([server.stop(), second.stop()]);
  home.remove();
  other.remove();
});

const hostOf = ({ url }: Server): string => new URL(url).host;
const fileOf = (who: Home): string => join(who.configDir, "credentials.json");
const kept = (who: Home) => JSON.parse(readFileSync(fileOf(who), "utf8"));
const isGood = async (url: string, key: string): Promise<boolean> =>
  (await fetch(`${url}/v1/auth/me`, { headers: { Authorization: `Bearer ${key}` } })).ok;

/** A person of their own, so that no test sees another's logins; data folders stay the servers'. */
function makePerson(): Home {
  const person = makeHome();
  return { ...person, dataDir: home.dataDir };
}

/** A person who is signed in to both servers, to the second last. */
async function makeTraveller(email: string): Promise<Home> {
  const person = makePerson();
  expect((await signIn(person, server.url, email)).code).toBe(0);
  expect((await signIn({ ...person, dataDir: other.dataDir }, second.url, email)).code).toBe(0);
  return person;
}

describe("several logins", () => {
  let person: Home;
  beforeAll(async () => {
    person = await makeTraveller("ada@example.org");
  });
  afterAll(() => person.remove());
  const whereIs = async (words: string[], env: Record<string, string> = {}) =>
    (await run(person, ["status", "--json", ...words], { env })).json().server.url;

  test("are saved under the server's host, the last one current, in a private file", async () => {
    expect(Object.keys(kept(person).logins)).toEqual([hostOf(server), hostOf(second)]);
    expect(statSync(fileOf(person)).mode & 0o777).toBe(0o600);
    expect(await whereIs([])).toBe(second.url);
    const { output } = await run(person, ["profile", "list"]);
    expect(output).toContain(`\n*  ${hostOf(second)}`);
    expect((await run(person, ["profile", "list", "--json"])).output).not.toContain("rst_");
  });

  test("are chosen by --url and --profile, which override the environment", async () => {
    expect(await whereIs(["--url", server.url])).toBe(server.url);
    expect(await whereIs(["--profile", hostOf(server)])).toBe(server.url);
    expect(await whereIs([], { ROOST_URL: server.url })).toBe(server.url);
    expect(await whereIs([], { ROOST_PROFILE: hostOf(server) })).toBe(server.url);
    const usual = { ROOST_URL: second.url, ROOST_API_KEY: "rst_live_wrong" };
    expect((await run(person, ["whoami"], { env: usual })).code).toBe(1);
    expect(await whereIs(["--profile", hostOf(server)], usual)).toBe(server.url);
    const typed = await run(person, ["whoami", "--url", server.url], { env: usual });
    expect([typed.code, typed.output]).toEqual([0, "ada@example.org\n"]);
  });

  test("that contradict each other or do not exist are refused", async () => {
    const both = await run(person, ["whoami", "--url", server.url, "--profile", hostOf(second)]);
    expect(both.code).toBe(2);
    expect(both.errors).toBe(
      `roost: the profile ${hostOf(second)} is for ${second.url}, not for ${server.url}; give only one of the two\n`,
    );
    const none = await run(person, ["whoami", "--profile", "none"]);
    expect([none.code, none.errors]).toEqual([
      1,
      "roost: there is no profile none; to list profiles: roost profile list\n",
    ]);
    const wrong = await run(person, ["whoami"], { env: { ROOST_URL: "nonsense" } });
    expect([wrong.code, wrong.errors]).toEqual([
      2,
      "roost: ROOST_URL is not the address of a server; expected a URL such as http://127.0.0.1:7373\n",
    ]);
  });

  test("may be two accounts on one server, and profile use switches between them", async () => {
    expect((await signIn(person, server.url, "bob@example.org")).code).toBe(0);
    const bob = `bob@example.org@${hostOf(server)}`;
    expect((await run(person, ["whoami"])).output).toBe("bob@example.org\n");
    expect((await run(person, ["profile", "use", hostOf(server)])).code).toBe(0);
    expect((await run(person, ["whoami", "--url", server.url])).output).toBe("ada@example.org\n");
    expect((await run(person, ["whoami", "--profile", bob])).output).toBe("bob@example.org\n");
    await run(person, ["profile", "use", hostOf(second)]);
    const either = await run(person, ["whoami", "--url", server.url]);
    expect([either.code, either.errors]).toEqual([
      1,
      `roost: several logins match: ${hostOf(server)}, ${bob}; choose with --profile, or roost profile use NAME\n`,
    ]);
  });
});

describe("logout", () => {
  test("revokes the key that the login created, and switches to the remaining login", async () => {
    const person = await makeTraveller("carla@example.org");
    const { key } = kept(person).logins[hostOf(second)];
    expect(await isGood(second.url, key)).toBe(true);
    const { code, output, errors } = await run(person, ["logout"]);
    expect([code, output, errors]).toEqual([0, `Signed out of ${second.url}.\n`, ""]);
    expect(await isGood(second.url, key)).toBe(false);
    expect(kept(person)).toMatchObject({ current: hostOf(server), logins: { [hostOf(server)]: {} } });
    expect((await run(person, ["logout", "--json"])).json()).toEqual({
      profile: hostOf(server),
      url: server.url,
      ended: true,
    });
    expect((await run(person, ["whoami"])).errors).toContain("you are not signed in");
    person.remove();
  });

  test("leaves a key that it was given valid, and says so; a token is signed out", async () => {
    const person = makePerson();
    await signIn(person, server.url, "dora@example.org");
    const { key } = kept(person).logins[hostOf(server)];
    await run(person, ["login", "--url", server.url, "--profile", "given", "--key", key]);
    const { code, errors } = await run(person, ["logout", "--profile", "given"]);
    expect([code, errors]).toEqual([0, expect.stringContaining("still works")]);
    expect(await isGood(server.url, key)).toBe(true);

    const [, link] = /#.*?([\w-]+)$/m.exec((await operate(person, ["login-link", "dora@example.org"])).output) ?? [];
    const redeemed = await fetch(`${server.url}/v1/auth/redeem-link`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ link }),
    });
    const { token } = (await redeemed.json()) as { token: string };
    await run(person, ["login", "--url", server.url, "--profile", "token", "--key", token]);
    expect((await run(person, ["logout", "--profile", "token", "--json"])).json()).toMatchObject({ ended: true });
    expect(await isGood(server.url, token)).toBe(false);
    person.remove();
  });

  test("keeps the login if the server cannot be reached, except with --local", async () => {
    const person = makePerson();
    mkdirSync(person.configDir, { recursive: true });
    const url = "http://127.0.0.1:1";
    const login = { url, key: "rst_live_x", keyId: "key_1", accountId: "acct_1", email: "eve@example.org" };
    writeFileSync(fileOf(person), JSON.stringify({ current: "gone", logins: { gone: login } }));
    const { code, errors } = await run(person, ["logout"]);
    expect([code, errors]).toEqual([
      1,
      `roost: cannot reach ${url}; to delete the login here only: roost logout --local\n`,
    ]);
    expect(kept(person).logins).toHaveProperty("gone");
    expect((await run(person, ["logout", "--local"])).code).toBe(0);
    expect(kept(person)).toEqual({ current: null, logins: {} });
    person.remove();
  });
});

test("logins that are saved, replaced and deleted at the same time are all kept", async () => {
  const person = makePerson();
  const keyOf = async (email: string) => {
    expect((await signIn(person, server.url, email)).code).toBe(0);
    return Object.values<{ email: string; key: string }>(kept(person).logins).find((login) => login.email === email)
      ?.key;
  };
  const [ada = "", bob = ""] = [await keyOf("ira@example.org"), await keyOf("jo@example.org")];
  writeFileSync(fileOf(person), JSON.stringify({ current: null, logins: {} }));
  const save = (key: string, ...profile: string[]) =>
    run(person, ["login", "--url", server.url, "--key", key, ...profile]);
  const names = Array.from({ length: 6 }, (_, at) => `p${at}`);
  const saved = names.map((name) => save(ada, "--profile", name));
  for (const { code } of await Promise.all([...saved, save(ada), save(bob)])) expect(code).toBe(0);
  const { logins } = kept(person);
  expect(Object.keys(logins)).toHaveLength(names.length + 2);
  const unnamed = Object.keys(logins).filter((name) => name.endsWith(hostOf(server)));
  expect(unnamed.map((name) => logins[name].email).sort()).toEqual(["ira@example.org", "jo@example.org"]);
  const left = names.map((name) => run(person, ["logout", "--local", "--profile", name]));
  for (const { code } of await Promise.all([...left, save(bob, "--profile", "last")])) expect(code).toBe(0);
  expect(Object.keys(kept(person).logins).sort()).toEqual([...unnamed, "last"].sort());
  person.remove();
});

test("a login under an existing profile uses its server", async () => {
  const person = makePerson();
  await signIn(person, server.url, "finn@example.org");
  const { key } = kept(person).logins[hostOf(server)];
  const again = await run(person, ["login", "--profile", hostOf(server), "--key", key]);
  expect(again.output).toStartWith(`Signed in to ${server.url} as`);
  person.remove();
});

test("a credentials file with other contents is refused with the next step, and left unchanged", async () => {
  const person = makePerson();
  mkdirSync(person.configDir, { recursive: true });
  for (const text of ["nonsense", '{"url":"http://127.0.0.1:7373","key":"rst_live_x"}', '{"current":1,"logins":[]}']) {
    writeFileSync(fileOf(person), text);
    const { code, errors } = await run(person, ["whoami"]);
    expect([code, errors]).toEqual([
      1,
      `roost: ${fileOf(person)} does not hold logins; remove it, and sign in again: roost login\n`,
    ]);
    expect(readFileSync(fileOf(person), "utf8")).toBe(text);
  }
  person.remove();
});

test("logins that cannot be read are not taken for none", async () => {
  const person = makePerson();
  mkdirSync(dirname(person.configDir), { recursive: true });
  // Root may read any folder, but nobody a file as one.
  writeFileSync(person.configDir, "");
  const { code, errors } = await run(person, ["whoami"]);
  expect([code, errors]).toEqual([
    1,
    `roost: ${fileOf(person)} cannot be read: part of its path is a file; give --url and --key\n`,
  ]);
  person.remove();
});

test("whoami prints only the e-mail address into a pipe", async () => {
  const person = makePerson();
  await signIn(person, server.url, "gil@example.org");
  expect(await run(person, ["whoami"])).toMatchObject({ output: "gil@example.org\n", errors: `on ${server.url}\n` });
  person.remove();
});

test("status shows the server to anybody, and the account when signed in", async () => {
  const person = makePerson();
  const stranger = await run(person, ["status", "--url", server.url]);
  expect([stranger.code, stranger.output]).toEqual([
    0,
    expect.stringMatching(
      /^Server {3}http:.*, Roost \d+\.\d+\.\d+\nAccount {2}not signed in: roost login --url http:.*\n$/,
    ),
  ]);
  await signIn(person, server.url, "hal@example.org");
  await run(person, ["instance", "create", "one"]);
  await run(person, ["agent", "create", "one", "Ada"]);
  const { output } = await run(person, ["status"]);
  expect(output).toMatch(/\nAccount {4}hal@example\.org\nBalance {4}(10|9)\.\d\d USDC, empty at .*\n/);
  expect(output).toEndWith("\nInstances  1, 1 running\nAgents     1\n");
  expect((await run(person, ["status", "--json"])).json()).toMatchObject({
    server: { url: server.url },
    account: { email: "hal@example.org" },
    billing: { runningInstances: 1 },
    instances: [{ name: "one", agentCount: 1 }],
  });
  person.remove();
});

describe("open", () => {
  /** A browser that records what it was asked to open. */
  function makeBrowser(person: Home, ending: string): { path: string; seen: string } {
    const path = join(person.folder, "browser");
    const seen = join(person.folder, "seen");
    writeFileSync(path, `#!/bin/sh\nprintf %s "$1" > ${seen}\n${ending}\n`, { mode: 0o755 });
    return { path, seen };
  }

  test("opens the console in the browser, and prints its address", async () => {
    const person = makePerson();
    const { path, seen } = makeBrowser(person, "exit 0");
    await using terminal = onTerminal(person, ["open", "--url", server.url], { BROWSER: path });
    expect(await terminal.exited).toBe(0);
    expect(terminal.screen()).toBe(`${server.url}/\r\n`);
    // A browser that has not ended after two seconds is left to itself.
    while (!existsSync(seen) || readFileSync(seen, "utf8") === "") await Bun.sleep(5);
    expect(readFileSync(seen, "utf8")).toBe(`${server.url}/`);
    person.remove();
  });

  test("says so if the browser cannot open it", async () => {
    const person = makePerson();
    const { path } = makeBrowser(person, "exit 3");
    const screenOf = async () => {
      await using terminal = onTerminal(person, ["open", "--url", server.url], { BROWSER: path });
      expect(await terminal.exited).toBe(0);
      return terminal.screen();
    };
    // Again if the browser took more than two seconds to fail: then it counts as one that shows the page.
    let screen = await screenOf();
    while (screen === `${server.url}/\r\n`) screen = await screenOf();
    expect(screen).toContain("open the address above yourself");
    person.remove();
  });

  test("prints only the address if nobody would see a page, and with --print", async () => {
    const person = makePerson();
    const { path, seen } = makeBrowser(person, "exit 0");
    expect((await run(person, ["open", "--url", server.url], { env: { BROWSER: path } })).output).toBe(
      `${server.url}/\n`,
    );
    await using terminal = onTerminal(person, ["open", "--print", "--url", server.url], { BROWSER: path });
    expect(await terminal.exited).toBe(0);
    await using headless = onTerminal(person, ["open", "--url", server.url]);
    expect(await headless.exited).toBe(0);
    expect(headless.screen()).toBe(`${server.url}/\r\n`);
    expect(existsSync(seen)).toBe(false);
    person.remove();
  });
});
