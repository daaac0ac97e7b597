import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, rmSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { lockDataFolder } from "../../src/storage/lock.ts";
import { startBinary } from "../support/binary.ts";
import { startMockModelServer } from "../support/mock-model-server.ts";
import { type Home, makeHome, onTerminal, operate, startServer } from "./command-line.ts";

async function withHome(work: (home: Home) => Promise<void>): Promise<void> {
  const home = makeHome();
  try {
    await work(home);
  } finally {
    home.remove();
  }
}

test("on a terminal every start shows a link and the data folder, the first an invite, later ones how to create one", () =>
  withHome(async (home) => {
    const words = ["serve", "--data", home.dataDir, "--port", "0"];
    await using first = onTerminal(home, words, { NO_COLOR: "1" });
    const [, url = "", link = ""] = await first.until(/Open\s+(http:\S+)\/#link=(\S+)\s/);
    await first.until(/Invite\s+roost-\w+.*10\.00 USDC/);
    await first.until(new RegExp(`Data\\s+${home.dataDir}`));
    expect(await whoRedeems(url, link)).toBe("owner@roost.local");
    first.kill("SIGTERM");
    expect(await first.exited).toBe(0);

    await using second = onTerminal(home, words, { NO_COLOR: "1" });
    const [, again = "", another = ""] = await second.until(/Open\s+(http:\S+)\/#link=(\S+)\s/);
    await second.until(/Invite\s+roost invite create --data \.\/data {2}/);
    await second.until(new RegExp(`Data\\s+${home.dataDir}`));
    expect(await whoRedeems(again, another)).toBe("owner@roost.local");
    second.type("\x03");
    expect(await second.exited).toBe(0);
  }));

/** The e-mail of the account that a sign-in link opens. */
async function whoRedeems(url: string, link: string): Promise<string> {
  const headers = { "Content-Type": "application/json" };
  const answer = await fetch(`${url}/v1/auth/redeem-link`, { method: "POST", headers, body: JSON.stringify({ link }) });
  return ((await answer.json()) as { account: { email: string } }).account.email;
}

test("the first start greets its user even if an invite was created before", () =>
  withHome(async (home) => {
    await operate(home, ["invite", "create"]);
    await using server = onTerminal(home, ["serve", "--data", home.dataDir, "--port", "0"], { NO_COLOR: "1" });
    const [, url = "", link = ""] = await server.until(/Open\s+(http:\S+)\/#link=(\S+)\s/);
    expect(await whoRedeems(url, link)).toBe("owner@roost.local");
    await server.until(/Invite\s+roost invite create/);
  }));

test("a start without a terminal shows no link or invite, but how to get them", () =>
  withHome(async (home) => {
    await using server = await startBinary({ dataDir: home.dataDir });
    await server.stop();
    const text = JSON.stringify(server.logs);
    expect(text).not.toContain("#link=");
    const told = server.logs.find(({ msg }) => String(msg).includes("login-link EMAIL"))?.msg;
    expect(told).toContain(` invite create --data ${home.dataDir}`);
    expect((await operate(home, ["invite", "list", "--json"])).json()).toEqual([]);
  }));

test("links have the address of the folder's running server", () =>
  withHome(async (home) => {
    const linkOf = async (env = {}) =>
      (await operate(home, ["login-link", "ada@example.org", "--json"], { env })).json().url;
    await using everywhere = await startBinary({ dataDir: home.dataDir, args: ["--host", "0.0.0.0"] });
    const { port } = new URL(everywhere.url);
    expect(everywhere.url).toBe(`http://localhost:${port}`);
    const link: string = await linkOf();
    expect(link).toStartWith(`http://localhost:${port}/#link=`);
    expect(await whoRedeems(...(link.split("/#link=") as [string, string]))).toBe("ada@example.org");
    await everywhere.kill();
    expect(await linkOf()).toStartWith("http://127.0.0.1:7373/#link=");
    expect(await linkOf({ ROOST_HOST: "::", ROOST_PORT: "81" })).toStartWith("http://localhost:81/#link=");

    const ROOST_PUBLIC_URL = "https://roost.example/";
    await using published = await startBinary({ dataDir: home.dataDir, env: { ROOST_PUBLIC_URL } });
    expect(await linkOf()).toStartWith("https://roost.example/#link=");
    await published.stop();
    expect(await linkOf()).toStartWith("http://127.0.0.1:7373/#link=");
    const unknown = await operate(home, ["login-link", "ada@example.org"], { env: { ROOST_PORT: "0" } });
    expect([unknown.code, unknown.errors]).toEqual([
      1,
      expect.stringContaining("start it first: roost serve --data ./data"),
    ]);
  }));

test("without SMTP a sign-in code is shown on the terminal", () =>
  withHome(async (home) => {
    await using server = onTerminal(home, ["serve", "--data", home.dataDir, "--port", "0"], { NO_COLOR: "1" });
    const [, url = "", inviteCode = ""] = await server.until(/Open\s+(http:\S+)\/#link[\s\S]*Invite\s+(roost-\w+)\s/);
    const body = JSON.stringify({ email: "ada@example.org", inviteCode });
    await fetch(`${url}/v1/auth/send-code`, { method: "POST", headers: { "Content-Type": "application/json" }, body });
    const [, code] = await server.until(/Mail to ada@example\.org {2}(\d{8})/);
    expect((await operate(home, ["outbox", "--json"])).json()[0].code).toBe(code);
  }));

test("a second server on the same folder or port exits with 1 and the fix", () =>
  withHome(async (home) => {
    const server = await startServer(home);
    const second = await operate(home, ["serve", "--port", "0"]);
    expect(second.code).toBe(1);
    expect(second.errors).toMatch(/^roost: another roost is serving .*--data\n$/);
    await withHome(async (other) => {
      const taken = await operate(other, ["serve", "--port", new URL(server.url).port]);
      expect(taken.code).toBe(1);
      expect(taken.errors).toMatch(/^roost: port \d+ of 127\.0\.0\.1 is in use; choose another with --port.*\n$/);
    });
    expect(await server.stop()).toBe(0);
  }));

test("a start says which of the servers that it needs do not work, and goes on", () =>
  withHome(async (home) => {
    const models = startMockModelServer();
    await using server = onTerminal(
      home,
      ["serve", "--data", home.dataDir, "--port", "0"],
      {
        NO_COLOR: "1",
        ROOST_MODEL: "openai:nope",
        ROOST_OPENAI_BASE_URL: models.url,
        ROOST_SMTP_URL: "smtp://127.0.0.1:1",
        ROOST_MAIL_FROM: "roost@example.org",
      },
      1_000,
    );
    await server.until(/WARN: \S+ has no model nope; set ROOST_MODEL to openai: and one that it has: /);
    await server.until(/WARN: the mail server 127\.0\.0\.1:1 .*; correct ROOST_SMTP_URL, or the mail server/);
    server.kill("SIGTERM");
    expect(await server.exited).toBe(0);
    await models.stop();
  }));

test.skipIf(process.platform !== "linux")(
  "a server whose terminal is closed stops cleanly; under nohup it goes on",
  async () => {
    const closed = await startBinary();
    closed.process.kill("SIGHUP");
    expect(await closed.process.exited).toBe(0);
    expect(closed.logs.map(({ event }) => event)).toContain("stopped");
    await using kept = await startBinary({ under: ["nohup"] });
    kept.process.kill("SIGHUP");
    expect((await fetch(`${kept.url}/healthz`)).status).toBe(200);
    expect(await kept.stop()).toBe(0);
  },
);

test("once the data folder was removed under a server, it acknowledges nothing and is not ready", () =>
  withHome(async (home) => {
    await using server = await startBinary({ dataDir: home.dataDir });
    const { url }: { url: string } = (await operate(home, ["login-link", "ada@example.org", "--json"])).json();
    rmSync(home.dataDir, { recursive: true, maxRetries: 10 });
    const redeemed = await fetch(`${server.url}/v1/auth/redeem-link`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ link: url.split("#link=")[1] }),
    });
    expect(redeemed.status).toBe(500);
    const readiness = await fetch(`${server.url}/readyz`);
    expect(readiness.status).toBe(503);
    expect(await readiness.json()).toMatchObject({ status: "read_only", reason: expect.stringContaining("restart") });
    expect(await server.stop()).toBe(0);
  }));

test("what the start cannot tidy up is logged, and the server stops as ever", () =>
  withHome(async (home) => {
    await operate(home, ["invite", "create"]);
    const unknown = `inst_${"0".repeat(32)}`;
    mkdirSync(join(home.dataDir, "instances"));
    symlinkSync(unknown, join(home.dataDir, "instances", unknown));
    await using server = await startBinary({ dataDir: home.dataDir });
    expect(await server.stop()).toBe(0);
    expect(server.logs.filter(({ level }) => level === "error")).toMatchObject([{ err: { code: "ELOOP" } }]);
    expect(server.logs.at(-1)?.event).toBe("stopped");
  }));

test("a stop of which a part fails does the rest, says so, and exits with 1", () =>
  withHome(async (home) => {
    await using server = await startBinary({ dataDir: home.dataDir });
    const address = join(home.dataDir, "server.json");
    rmSync(address);
    mkdirSync(address);
    expect(await server.stop()).toBe(1);
    expect(server.logs.slice(-2)).toMatchObject([{ level: "error" }, { event: "stopped" }]);
    expect(server.errors()).toBe("");
  }));

test("an error that nothing expected is logged, and the server goes on", () =>
  withHome(async (home) => {
    await using server = await startBinary({ dataDir: home.dataDir });
    const { url }: { url: string } = (await operate(home, ["login-link", "ada@example.org", "--json"])).json();
    const headers: Record<string, string> = { "Content-Type": "application/json" };
    const ask = (method: string, path: string, body?: object) =>
      fetch(server.url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    const redeemed = await ask("POST", "/v1/auth/redeem-link", { link: url.split("#link=")[1] });
    headers.Authorization = `Bearer ${((await redeemed.json()) as { token: string }).token}`;
    const instance = await ask("POST", "/v1/instances", { name: "home" });
    const agents = `/v1/instances/${((await instance.json()) as { instanceId: string }).instanceId}/agents`;
    const agent = await ask("POST", agents, { name: "Ada" });
    const { agentId } = (await agent.json()) as { agentId: string };
    const stream = await ask("GET", `${agents}/${agentId}/events`);
    expect(stream.status).toBe(200);

    using database = new Database(join(home.dataDir, "roost.db"));
    database.run("PRAGMA busy_timeout = 60000");
    // So the credentials of open streams cannot be checked.
    database.run("ALTER TABLE accounts RENAME TO elsewhere");
    const told = () => server.logs.find(({ msg }) => String(msg).startsWith("an unexpected error"));
    while (told() === undefined) await new Promise((resolve) => setTimeout(resolve, 5));
    database.run("ALTER TABLE elsewhere RENAME TO accounts");
    expect(told()).toMatchObject({
      err: { message: expect.stringContaining("no such table"), stack: expect.any(String) },
    });
    expect((await ask("GET", `${agents}/${agentId}`)).status).toBe(200);
    await stream.body?.cancel();
    expect(await server.stop()).toBe(0);
    expect(server.errors()).toBe("");
  }));

test("a mistyped wallet address, with a wrong checksum, stops the start with 78", () =>
  withHome(async (home) => {
    const mistyped = "0x0eF3c71dd3e7a4c81C62de9424071512c5cF18A5";
    const { code, errors } = await operate(home, ["serve", "--port", "0"], { env: { ROOST_WALLET: mistyped } });
    expect([code, errors]).toEqual([
      78,
      `roost: ROOST_WALLET is "${mistyped}": expected an address with a valid checksum in its capital letters (EIP-55)\n`,
    ]);
  }));

test("operator commands work beside a running server, which sees their changes", () =>
  withHome(async (home) => {
    const server = await startServer(home);
    const { code: inviteCode } = (await operate(home, ["invite", "create", "--json"])).json();
    const body = JSON.stringify({ email: "ada@example.org", inviteCode });
    const headers = { "Content-Type": "application/json" };
    expect((await fetch(`${server.url}/v1/auth/send-code`, { method: "POST", headers, body })).status).toBe(200);
    await server.stop();
  }));

test("a command that would have to migrate below a server waits, and then says so", () =>
  withHome(async (home) => {
    await operate(home, ["wallet", "show"]);
    expect(existsSync(join(home.dataDir, "roost.db"))).toBe(false);
    const lock = lockDataFolder(home.dataDir);
    const refused = await operate(home, ["invite", "create"]);
    lock.release();
    expect(refused.code).toBe(1);
    expect(refused.errors).toContain("restart the server with this binary");
    expect((await operate(home, ["invite", "create"])).code).toBe(0);
  }));

test("serve and commands close a data folder that others can enter, and say so", () =>
  withHome(async (home) => {
    const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);
    const key = join(home.dataDir, "host-keys.json");
    chmodSync(home.dataDir, 0o777);
    await using server = onTerminal(home, ["serve", "--data", home.dataDir, "--port", "0"], { NO_COLOR: "1" });
    await server.until(/WARN.*was accessible to other users \(mode 0777\)/);
    await server.until(/listening on/);
    expect(modeOf(home.dataDir)).toBe("700");

    chmodSync(home.dataDir, 0o755);
    chmodSync(key, 0o644);
    const [disk] = (await operate(home, ["doctor", "--json"])).json().filter(({ ok }: { ok: boolean }) => !ok);
    expect(disk).toMatchObject({ check: "disk", mend: `chmod go-rwx '${home.dataDir}'` });
    const listed = await operate(home, ["account", "list", "--json"]);
    expect(listed.errors.trim().split("\n")).toEqual([
      expect.stringContaining("(mode 0755)"),
      expect.stringContaining("host-keys.json was accessible to other users (mode 0644)"),
    ]);
    expect(listed.json()).toEqual([]);
    expect([modeOf(home.dataDir), modeOf(key)]).toEqual(["700", "600"]);
    expect((await operate(home, ["account", "list"])).errors).toBe("");
  }));
