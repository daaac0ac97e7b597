import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeCertificates } from "../egress/certificates.ts";
import { type Home, makeHome, onTerminal, operate, run, type Server, signIn, startServer } from "./command-line.ts";

let home: Home;
let server: Server;
beforeAll(async () => {
  home = makeHome();
  server = await startServer(home);
  expect((await signIn(home, server.url, "ada@example.org")).code).toBe(0);
});
afterAll(async () => {
  await server.stop();
  home.remove();
});

const kept = () => JSON.parse(readFileSync(join(home.configDir, "credentials.json"), "utf8"));
const credentials = () => kept().logins[kept().current];
let made = 0;
async function makeInstance(): Promise<{ instanceId: string; name: string }> {
  return (await run(home, ["instance", "create", `Instance ${++made}`, "--json"])).json();
}

test("a login saves the server and a key of its own in a private file", () => {
  expect(statSync(join(home.configDir, "credentials.json")).mode & 0o777).toBe(0o600);
  expect(statSync(home.configDir).mode & 0o777).toBe(0o700);
  expect(credentials()).toMatchObject({
    url: server.url,
    key: expect.stringMatching(/^rst_/),
    email: "ada@example.org",
  });
});

test("a login leaves no valid token behind", () => {
  const database = new Database(join(home.dataDir, "roost.db"), { readonly: true });
  const count = (table: string) => Number(database.query(`SELECT count(*) FROM ${table}`).values().flat()[0]);
  expect([count("signed_out_tokens"), count("api_keys")]).toEqual([1, 1]);
  database.close();
});

test("a login with a key saves that key, and a wrong key is refused and not saved", async () => {
  const other = makeHome();
  try {
    const { key, accountId } = credentials();
    const kept = await run(other, ["login", "--url", server.url, "--key", key, "--json"]);
    expect(kept.json()).toMatchObject({ accountId });
    expect((await run(other, ["instance", "list"])).code).toBe(0);
    const refused = await run(other, ["login", "--url", server.url, "--key", "rst_live_wrong"]);
    expect(refused).toMatchObject({ code: 1, output: "" });
    expect(refused.errors).toMatch(
      /^roost: the API key is wrong or has expired \(request [\w-]+\); sign in: roost login --url http:\S+\n$/,
    );
    expect((await run(other, ["instance", "list"])).code).toBe(0);
  } finally {
    other.remove();
  }
});

test("an invalid invite is refused with the server's message", async () => {
  const ran = await run(home, ["login", "--url", server.url, "--email", "new@example.org"], { input: "roost-bad\n" });
  expect(ran.code).toBe(1);
  expect(ran.errors).toContain("invite");
});

test("a login that was given up before its code goes on with that code, and its answers may come all at once", async () => {
  const late = makeHome();
  try {
    const invite = (await operate(home, ["invite", "create", "--json"])).json().code;
    const words = ["login", "--url", server.url];
    const left = await run(late, words, { input: `late@example.org\n${invite}\n` });
    expect(left).toMatchObject({ code: 1, errors: expect.stringContaining('nothing was given for "Code:"') });
    const [{ code }] = (await operate(home, ["outbox", "--json"])).json();
    const again = await run(late, words, { input: `late@example.org\n${code}\n` });
    expect(again.errors).toMatch(/too many codes were requested; try again in \d+ seconds .* been sent one, give that/);
    expect(again).toMatchObject({ code: 0, output: expect.stringContaining("as late@example.org") });
  } finally {
    late.remove();
  }
});

test("a login's key is never sent to another server", async () => {
  const seen: string[] = [];
  const other = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      seen.push(request.headers.get("authorization") ?? "none");
      return Response.json({});
    },
  });
  const url = `http://127.0.0.1:${other.port}`;
  const ran = await run(home, ["instance", "list", "--url", url]);
  await other.stop(true);
  expect(ran.code).toBe(1);
  expect(ran.errors).toContain(`roost login --url ${url}`);
  expect(seen).toEqual([]);
});

test("a redirect is reported, not followed", async () => {
  const other = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => Response.redirect("http://127.0.0.1:1/") });
  const ran = await run(home, ["instance", "list", "--url", `http://127.0.0.1:${other.port}`, "--key", "k"]);
  await other.stop(true);
  expect(ran.code).toBe(1);
  expect(ran.errors).toContain("redirects to http://127.0.0.1:1/");
});

test("another server, or none at all, is reported in one line", async () => {
  const other = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => new Response("<h1>404</h1>", { status: 404 }),
  });
  const words = ["instance", "list", "--url", `http://127.0.0.1:${other.port}`, "--key", "k"];
  const page = await run(home, words);
  await other.stop(true);
  expect(page.errors).toMatch(/^roost: .* answered 404, not in Roost's format; is it a Roost server\?.*\n$/);
  const gone = await run(home, words);
  expect(gone.code).toBe(1);
  expect(gone.errors).toMatch(/^roost: cannot reach .*\n$/);
});

test("a server whose certificate nobody has signed is told from one that is not there, with what helps", async () => {
  const certificates = makeCertificates("IP:127.0.0.1");
  const tls = certificates.of("IP:127.0.0.1");
  const own = Bun.serve({ port: 0, hostname: "127.0.0.1", tls, fetch: () => new Response("", { status: 404 }) });
  const words = ["instance", "list", "--url", `https://127.0.0.1:${own.port}`, "--key", "k"];
  const refused = await run(home, words);
  expect(refused.errors).toMatch(/^roost: cannot reach \S+; its certificate is refused: .*NODE_EXTRA_CA_CERTS.*\n$/);
  const ca = join(home.folder, "ca.pem");
  writeFileSync(ca, certificates.ca);
  const trusted = await run(home, words, { env: { NODE_EXTRA_CA_CERTS: ca } });
  await own.stop(true);
  expect(trusted.errors).toContain("is it a Roost server?");
});

test("without a login, a command says how to sign in", async () => {
  const other = makeHome();
  const ran = await run(other, ["instance", "list"]);
  other.remove();
  expect(ran).toMatchObject({ code: 1, output: "" });
  expect(ran.errors).toBe("roost: you are not signed in; run roost login, or give --key\n");
});

test("an instance is created, stopped, started and deleted by name or id", async () => {
  const { instanceId, name } = await makeInstance();
  expect((await run(home, ["instance", "stop", name, "--json"])).json()).toMatchObject({
    instanceId,
    status: "stopped",
  });
  expect((await run(home, ["instance", "start", instanceId])).output).toContain(`${name} is running`);
  expect((await run(home, ["instance", "list"])).output).toContain(instanceId);
  expect((await run(home, ["instance", "delete", name, "--yes", "--json"])).json()).toEqual({
    instanceId,
    deleted: true,
  });
  const again = await run(home, ["instance", "stop", name]);
  expect(again.code).toBe(1);
  expect(again.errors).toContain("roost instance list");
});

test("an ambiguous name is refused: the id is needed", async () => {
  const [first] = [await makeInstance(), await makeInstance()];
  await run(home, ["instance", "create", first.name]);
  const ran = await run(home, ["instance", "stop", first.name]);
  expect(ran.code).toBe(1);
  expect(ran.errors).toContain("give the id");
});

test("a list includes every page", async () => {
  const { instanceId } = await makeInstance();
  const { key } = credentials();
  const path = `${server.url}/v1/instances/${instanceId}/agents`;
  for (let n = 1; n <= 103; n++) {
    const body = JSON.stringify({ name: `Agent ${n}`, useDefaults: false });
    await fetch(path, { method: "POST", headers: { "X-API-Key": key, "Content-Type": "application/json" }, body });
  }
  const agents = (await run(home, ["agent", "list", instanceId, "--json"])).json();
  expect(agents).toHaveLength(103);
  expect(new Set(agents.map((agent: { agentId: string }) => agent.agentId)).size).toBe(103);
});

test("an agent is created with local files, edited, and deleted", async () => {
  const { name } = await makeInstance();
  const path = join(home.folder, "soul.md");
  writeFileSync(path, "You are kind.\n");
  const agent = (
    await run(home, ["agent", "create", name, "Ada", "--display-name", "Ada L", "--file", `SOUL.md=${path}`, "--json"])
  ).json();
  expect(agent).toMatchObject({ slug: "ada", displayName: "Ada L", files: { "SOUL.md": "You are kind.\n" } });
  writeFileSync(path, "You are brief.\n");
  const words = ["agent", "edit", name, "ada", "--model", "local:x", "--file", `SOUL.md=${path}`, "--file", "USER.md="];
  const edited = (await run(home, [...words, "--json"])).json();
  expect(edited).toMatchObject({ model: "local:x", files: { "SOUL.md": "You are brief.\n" } });
  expect(Object.keys(edited.files)).not.toContain("USER.md");
  expect((await run(home, ["agent", "edit", name, "Ada", "--model", "default", "--json"])).json().model).toBeNull();
  expect((await run(home, ["agent", "list", name])).output).toContain("Ada L");
  expect((await run(home, ["agent", "edit", name, "ada"])).code).toBe(2);
  const unread = await run(home, ["agent", "edit", name, "ada", "--file", "SOUL.md=/nowhere"]);
  expect(unread.errors).toBe("roost: the file /nowhere cannot be read: there is no such file or folder\n");
  expect((await run(home, ["agent", "delete", name, "ada", "--yes", "--json"])).json()).toMatchObject({
    deleted: true,
  });
});

test("an agent is shown with its files; as JSON with their contents", async () => {
  const { name } = await makeInstance();
  await run(home, ["agent", "create", name, "Ada", "--no-defaults"]);
  const path = join(home.folder, "soul.md");
  writeFileSync(path, "You are kind.\n");
  await run(home, ["agent", "edit", name, "ada", "--file", `SOUL.md=${path}`]);
  const { code, output } = await run(home, ["agent", "show", name, "ada"]);
  expect(code).toBe(0);
  expect(output).toMatch(/^Name {7}Ada\nShown as {3}Ada\nSlug {7}ada\nModel {6}default\n/);
  expect(output).toMatch(/\nFILE {5}BYTES {2}CHANGED\nSOUL\.md {2}14 {5}\d{4}-\d\d-\d\d \d\d:\d\dZ\n$/);
  const record = (await run(home, ["agent", "show", name, "ada", "--json"])).json();
  expect(record).toMatchObject({ slug: "ada", files: { "SOUL.md": "You are kind.\n" } });
});

test("a list is complete in a pipe", async () => {
  const { name } = await makeInstance();
  const long = "Ada Lovelace, Countess of computing machinery";
  await run(home, ["agent", "create", name, long]);
  expect((await run(home, ["agent", "list", name])).output).toContain(long);
});

test("instances are filtered by status", async () => {
  const { instanceId, name } = await makeInstance();
  await run(home, ["instance", "stop", name]);
  const idsOf = async (status: string) =>
    (await run(home, ["instance", "list", "--status", status, "--json"]))
      .json()
      .map((one: { instanceId: string }) => one.instanceId);
  expect(await idsOf("stopped")).toContain(instanceId);
  expect(await idsOf("running")).not.toContain(instanceId);
  expect((await run(home, ["instance", "list", "--status", "gone"])).code).toBe(2);
});

test("a skill from the catalog is installed, listed and removed", async () => {
  const { name } = await makeInstance();
  const [skill] = (await run(home, ["skill", "list", "--json"])).json();
  expect((await run(home, ["skill", "install", name, skill.name])).code).toBe(0);
  expect((await run(home, ["skill", "list", name, "--json"])).json()).toMatchObject([{ name: skill.name }]);
  expect((await run(home, ["skill", "install", name, skill.name])).code).toBe(1);
  expect((await run(home, ["skill", "remove", name, skill.name])).code).toBe(0);
  expect((await run(home, ["skill", "install", name, "no-such-skill"])).errors).toContain("not found");
});

test("what a skill requires is shown in the catalog, at its installation and in the list", async () => {
  const { name } = await makeInstance();
  const catalog = (await run(home, ["skill", "list"])).output;
  expect(catalog).toMatch(/^github +1\.0\.0 +GITHUB_TOKEN +api\.github\.com /m);
  const { output, errors } = await run(home, ["skill", "install", name, "github"]);
  expect(output).toContain("Installed github 1.0.0.");
  expect(errors).toContain("Agents may now send requests to api.github.com.");
  expect(errors).toContain(`It needs GITHUB_TOKEN: roost secret set '${name}' NAME`);
  expect((await run(home, ["skill", "list", name])).output).toMatch(/^github .+ api\.github\.com +GITHUB_TOKEN/m);
  await run(home, ["secret", "set", name, "GITHUB_TOKEN"], { input: "token" });
  expect((await run(home, ["skill", "list", name])).output).not.toContain("GITHUB_TOKEN");
});

test("a secret's value comes from standard input, without the line end, and is never shown", async () => {
  const { instanceId, name } = await makeInstance();
  const set = await run(home, ["secret", "set", name, "TOKEN", "--json"], { input: "s3cr3t\n" });
  expect(set.json()).toEqual({ keys: ["TOKEN"] });
  const list = await run(home, ["secret", "list", instanceId, "--json"]);
  expect(list.json()).toEqual([{ key: "TOKEN", createdAt: expect.any(String), updatedAt: expect.any(String) }]);
  expect(set.output + set.errors + list.output).not.toContain("s3cr3t");
  expect((await run(home, ["secret", "set", name, "TOKEN"], { input: "" })).code).toBe(1);
  expect((await run(home, ["secret", "set", name, "TOKEN", "value"])).code).toBe(2);
  expect((await run(home, ["secret", "delete", name, "TOKEN", "--yes", "--json"])).json()).toEqual({
    key: "TOKEN",
    deleted: true,
  });
});

test("on a terminal a secret is not shown while typed", async () => {
  const { name } = await makeInstance();
  await using terminal = onTerminal(home, ["secret", "set", name, "TYPED"]);
  await terminal.until(/Value of TYPED: /);
  terminal.type("unseen-value\r");
  await terminal.until(/Set TYPED\./);
  expect(await terminal.exited).toBe(0);
  expect(terminal.screen()).not.toContain("unseen");
});

test("on a terminal, deleting asks first", async () => {
  const { instanceId, name } = await makeInstance();
  await using no = onTerminal(home, ["instance", "delete", name]);
  await no.until(/\[y\/N\]/);
  no.type("\r");
  expect(await no.exited).toBe(1);
  await using sure = onTerminal(home, ["instance", "delete", instanceId, "--yes"]);
  await sure.until(/Deleted/);
  expect(await sure.exited).toBe(0);
});

test("a terminal shows what fails in red, and nothing else that is said beside the output", async () => {
  const red = `${String.fromCharCode(27)}[31m`;
  await using notice = onTerminal(home, ["login", "--url", server.url]);
  await notice.until(/Signing in to .*[\s\S]*E-mail: /);
  expect(notice.screen()).not.toContain(red);
  await using failure = onTerminal(home, ["agent", "list", "No such instance"]);
  await failure.exited;
  expect(failure.screen()).toStartWith(`${red}roost: there is no instance`);
});

test("only terminals get colour, and NO_COLOR turns it off", async () => {
  await makeInstance();
  const esc = String.fromCharCode(27);
  expect((await run(home, ["instance", "list"], { env: { CI: "true" } })).output).not.toContain(esc);
  await using coloured = onTerminal(home, ["instance", "list"]);
  await coloured.exited;
  expect(coloured.screen()).toContain(`${esc}[1m`);
  await using plain = onTerminal(home, ["instance", "list"], { NO_COLOR: "1" });
  await plain.exited;
  expect(plain.screen()).not.toContain(`${esc}[`);
});

test("a suspended account gets the server's message", async () => {
  const other = makeHome();
  try {
    const { url } = server;
    const parts = { ...other, dataDir: home.dataDir };
    expect((await signIn(parts, url, "gone@example.org")).code).toBe(0);
    await operate(home, ["account", "suspend", "gone@example.org"]);
    const ran = await run(other, ["instance", "list"]);
    expect(ran.code).toBe(1);
    expect(ran.errors).toContain("suspended");
  } finally {
    other.remove();
  }
});

test("usage has the names of agents and of instances", async () => {
  const { instanceId, name } = await makeInstance();
  await run(home, ["agent", "create", name, "Ada"]);
  expect((await run(home, ["send", name, "ada", "Hello"])).code).toBe(0);
  const byInstance = (await run(home, ["usage", "--by", "instance"])).output;
  expect(byInstance).toMatch(new RegExp(`^${name} +1 +1 `, "m"));
  expect(byInstance).not.toContain(instanceId);
  expect((await run(home, ["usage", "--by", "agent"])).output).toMatch(new RegExp(`^${name}/ada +1 +1 `, "m"));
});
