import { afterAll, beforeAll, expect, test } from "bun:test";
import { cpSync, existsSync, mkdirSync, rmSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { startHub } from "../support/hub.ts";
import {
  BINARY,
  CALLED,
  type Home,
  makeHome,
  onTerminal,
  operate,
  run,
  type Server,
  signIn,
  startServer,
} from "./command-line.ts";

const TINY = resolve(import.meta.dir, "../models/tiny-model");
const REPOSITORY = "tests/Tiny-Model";
const WEIGHTS = "onnx/model.onnx";
const hub = await startHub(REPOSITORY, TINY);
const weightBytes = hub.files.get(WEIGHTS)?.length ?? 0;
const fromHub = { ROOST_MODEL_HUB: hub.url };

let home: Home;
let server: Server;
beforeAll(async () => {
  home = makeHome();
  server = await startServer(home);
  await signIn(home, server.url, "ada@example.org");
  await run(home, ["instance", "create", "home"]);
});
afterAll(async () => {
  await server.stop();
  await hub.close();
  home.remove();
});

const added = async () => (await operate(home, ["models", "list", "--json"])).json().added;
const partOf = (name: string) => join(home.dataDir, "models/.work", name, "files", `${WEIGHTS}.part`);

/** Resolves when the file has so many bytes; nothing tells when another process has written them. */
async function until(path: string, bytes: number): Promise<void> {
  while (statSync(path, { throwIfNoEntry: false })?.size !== bytes) await Bun.sleep(10);
}

test("an agent of a running server answers with a model that was imported meanwhile", async () => {
  const imported = await operate(home, ["models", "import", TINY, "--name", "tiny"]);
  expect([imported.code, imported.errors]).toEqual([0, ""]);
  expect(imported.output).toMatch(
    /^Ready: local:tiny, a LlamaForCausalLM \(fp32, .* 512 tokens of context, .*apache-2\.0/,
  );
  expect(imported.output).toContain("runs on transformers.js");
  await run(home, ["agent", "create", "home", "ada", "--model", "local:tiny"]);
  const sent = await run(home, ["send", "home", "ada", "Hello", "--json"]);
  expect([sent.code, sent.errors]).toEqual([0, ""]);
  expect(sent.json().message).toMatch(/^[a-z ]+$/);
  expect(await added()).toEqual([
    expect.objectContaining({
      name: "local:tiny",
      loaded: true,
      agents: 1,
      missing: [],
      source: TINY,
      license: "apache-2.0",
    }),
  ]);
});

test("a model that agents use is removed only with --force; then their runs fail, and say why", async () => {
  const refused = await operate(home, ["models", "remove", "tiny"]);
  expect(refused.code).toBe(1);
  expect(refused.errors).toContain("local:tiny is used by one agent; give them another first, or use --force");
  expect(await operate(home, ["models", "remove", "local:tiny", "--force"])).toMatchObject({
    code: 0,
    output: "Removed local:tiny.\n",
  });
  expect(existsSync(join(home.dataDir, "models/tiny"))).toBe(false);
  const sent = await run(home, ["send", "home", "ada", "Hello"]);
  expect(sent.code).toBe(1);
  expect(sent.errors).toContain('There is no model "local:tiny" on this host. It has "local:smollm2-135m-instruct"');
  expect((await operate(home, ["audit", "--json"])).json()).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ action: "model.add", subject: "local:tiny" }),
      expect.objectContaining({ action: "model.remove", subject: "local:tiny" }),
    ]),
  );
});

test("what is a part of Roost, or not there, cannot be removed", async () => {
  expect((await operate(home, ["models", "remove", "smollm2-135m-instruct"])).errors).toContain("is a part of Roost");
  expect((await operate(home, ["models", "remove", "nothing"])).errors).toContain(
    "there is no model nothing to remove",
  );
  expect((await operate(home, ["models", "remove", "../../roost.db"])).errors).toContain("there is no model");
});

test("a pull that was killed goes on where it was, and another one at the same time is refused", async () => {
  hub.behaviour.hangsAfter = 90_000;
  const child = Bun.spawn([BINARY, "models", "pull", REPOSITORY, "--data", home.dataDir], {
    ...CALLED,
    cwd: home.folder,
    env: { ...home.env, ...fromHub },
    stdio: ["ignore", "ignore", "ignore"],
  });
  await until(partOf("tiny-model"), 90_000);
  const second = await operate(home, ["models", "pull", REPOSITORY], { env: fromHub });
  expect([second.code, second.errors]).toEqual([1, expect.stringContaining("another roost is working on tiny-model")]);
  child.kill("SIGKILL");
  await child.exited;
  expect((await operate(home, ["models", "list", "--json"])).json().unfinished).toEqual(["tiny-model"]);

  delete hub.behaviour.hangsAfter;
  hub.asked.length = 0;
  const pulled = await operate(home, ["models", "pull", REPOSITORY, "--json"], { env: fromHub });
  expect([pulled.code, pulled.errors]).toEqual([0, ""]);
  expect(hub.ranges(WEIGHTS)).toEqual(["bytes=90000-"]);
  expect(pulled.json()).toMatchObject({
    name: "local:tiny-model",
    source: { hub: hub.url, repository: REPOSITORY, revision: hub.revision },
    fast: false,
    callsTools: false,
  });
  const again = await operate(home, ["models", "pull", REPOSITORY], { env: fromHub });
  expect(again.output).toBe("local:tiny-model is there already, as new as on the hub.\n");
});

test("on a terminal a pull shows a bar; Ctrl+C leaves what has arrived, and says how to go on", async () => {
  hub.behaviour.hangsAfter = 120_000;
  const words = ["models", "pull", REPOSITORY, "--name", "other", "--data", home.dataDir];
  await using terminal = onTerminal(home, words, fromHub);
  await terminal.until(/Fetching other .*[█░]+.* \d+ %/);
  await until(partOf("other"), 120_000);
  terminal.type("\u0003");
  await terminal.until(/is not whole yet; run the same command again: it goes on from here/);
  expect(await terminal.exited).toBe(1);
  delete hub.behaviour.hangsAfter;
  hub.asked.length = 0;
  const pulled = await operate(home, ["models", "pull", REPOSITORY, "--name", "other"], { env: fromHub });
  expect(pulled.code).toBe(0);
  // Elsewhere than on a terminal, it says how far it is in lines.
  expect(pulled.errors).toMatch(
    /^Fetching other: \d+ %, .* of .*\n(?:Fetching other: \d+ %, .*\n)*Fetching other: 100 %/,
  );
  expect(hub.ranges(WEIGHTS)).toEqual(["bytes=120000-"]);
  expect(weightBytes).toBeGreaterThan(120_000);
});

test("the hub's token is never shown", async () => {
  hub.behaviour.token = "hf_topsecret";
  const env = { ...fromHub, ROOST_MODEL_HUB_TOKEN: "hf_topsecret" };
  const told = [
    await operate(home, ["models", "pull", REPOSITORY, "--name", "gated"], { env }),
    await operate(home, ["models", "pull", "tests/none", "--name", "none"], { env }),
    await operate(home, ["config"], { env }),
  ];
  delete hub.behaviour.token;
  expect(told.map(({ code }) => code)).toEqual([0, 1, 0]);
  for (const { output, errors } of told) expect(output + errors).not.toContain("topsecret");
});

test("a proxy of the environment is used, though not for what is on this machine", async () => {
  const seen: string[] = [];
  const proxy = Bun.serve({
    port: 0,
    fetch({ url }) {
      seen.push(url);
      return new Response("{}", { status: 404 });
    },
  });
  const env = { ROOST_MODEL_HUB: "http://hub.example", HTTP_PROXY: `http://127.0.0.1:${proxy.port}` };
  const pulled = await operate(home, ["models", "pull", REPOSITORY, "--name", "proxied"], { env });
  for (const more of [{}, { NO_PROXY: "intranet.example" }, { no_proxy: "intranet.example" }]) {
    const direct = { ROOST_MODEL_HUB: hub.url, HTTP_PROXY: env.HTTP_PROXY, ...more };
    const none = await operate(home, ["models", "pull", "tests/None", "--name", "none"], { env: direct });
    expect(none.errors).toContain(`${hub.url} has no model tests/None`);
  }
  await proxy.stop(true);
  expect(pulled.errors).toContain("http://hub.example has no model tests/Tiny-Model");
  expect(seen).toEqual(["http://hub.example/api/models/tests/Tiny-Model/revision/main"]);
});

test("a folder without what a model needs is refused with what is missing", async () => {
  const folder = join(home.folder, "half");
  cpSync(TINY, folder, { recursive: true });
  rmSync(join(folder, "tokenizer.json"));
  const half = await operate(home, ["models", "import", folder]);
  expect([half.code, half.errors]).toEqual([
    1,
    expect.stringContaining("it has no tokenizer.json; expected a text-generation"),
  ]);
  const embedder = resolve(import.meta.dir, "../../models/all-minilm-l6-v2");
  const vectors = await operate(home, ["models", "import", embedder, "--name", "vectors"]);
  expect(vectors.errors).toMatch(/it has no onnx|it is a BertModel, which does not generate text/);
  mkdirSync(join(home.folder, "empty"));
  expect((await operate(home, ["models", "import", join(home.folder, "empty")])).code).toBe(1);
  expect((await operate(home, ["models", "import", "/nowhere"])).errors).toContain("/nowhere");
  const file = await operate(home, ["models", "import", join(TINY, "config.json")]);
  expect(file.errors).toContain(
    "config.json cannot be added: it is a file; give the folder that has the model's files",
  );
  const named = await operate(home, ["models", "import", TINY, "--name", "No Name"]);
  expect([named.code, named.errors]).toEqual([2, expect.stringContaining("choose one with --name")]);
});

test("a model may be imported before the first start; the default model is then that one", async () => {
  const fresh = makeHome();
  const imported = await operate(fresh, ["models", "import", TINY, "--name", "tiny", "--json"]);
  expect([imported.code, imported.json().name]).toEqual([0, "local:tiny"]);
  const other = await startServer(fresh, { ROOST_MODEL: "local:tiny" });
  await signIn(fresh, other.url, "ada@example.org");
  await run(fresh, ["instance", "create", "home"]);
  await run(fresh, ["agent", "create", "home", "ada"]);
  expect((await run(fresh, ["send", "home", "ada", "Hello", "--json"])).json().message).toMatch(/^[a-z ]+$/);
  const refused = await operate(fresh, ["models", "remove", "tiny"], { env: { ROOST_MODEL: "local:tiny" } });
  expect(refused.errors).toContain("the host's default model, ROOST_MODEL");
  await other.stop();
  fresh.remove();
});

test("a backup brings back which models there were, and doctor says how to get them again", async () => {
  const file = join(home.folder, "backup.tar.zst");
  await operate(home, ["backup", "create", file]);
  expect(statSync(file).size).toBeLessThan(weightBytes);
  const restored = join(home.folder, "restored");
  const data = ["--data", restored];
  expect((await run(home, ["backup", "restore", file, ...data])).code).toBe(0);
  const findings = async () => (await run(home, ["doctor", "--json", ...data])).json();
  const models = async () => (await findings()).find(({ check }: { check: string }) => check === "models");
  expect(await models()).toMatchObject({
    ok: false,
    detail: expect.stringMatching(/^local:gated lacks \d of its files/),
    mend: expect.stringContaining(`models pull ${REPOSITORY} --name gated`),
  });
  for (const name of ["gated", "other", "tiny-model"]) {
    const pulled = await run(home, ["models", "pull", REPOSITORY, "--name", name, ...data], { env: fromHub });
    expect(pulled.code).toBe(0);
  }
  expect(await models()).toMatchObject({ ok: true });
});
