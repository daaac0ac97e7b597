import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { copyFile, mkdir, mkdtemp, open, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import packageFile from "../../package.json" with { type: "json" };
import { bundleConsole } from "../../src/console/bundle.ts";
import { loadCatalog } from "../../src/skills/catalog.ts";
import { buildBinary, runBinary, type StartOptions, startBinary } from "../support/binary.ts";
import { startMockModelServer } from "../support/mock-model-server.ts";
import { canCutNetwork, OFFLINE } from "../support/offline.ts";

const MAX_BYTES = 320e6;

/** Signs in to a new server and returns the embedded model's answer to a message. */
async function sayHello(options: StartOptions & { dataDir: string }): Promise<string> {
  await using server = await startBinary(options);
  const { output } = await runBinary(["login-link", "ada@example.org", "--data", options.dataDir, "--json"], options);
  const link = new URL(JSON.parse(output).url);
  const post = async (path: string, body: object, token?: string) => {
    const headers = { "Content-Type": "application/json", ...(token ? { Authorization: `Bearer ${token}` } : {}) };
    const answer = await fetch(`${server.url}/v1${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    // biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects and fails where it is not there
    return (await answer.json()) as any;
  };
  const { token } = await post("/auth/redeem-link", { link: link.hash.slice("#link=".length) });
  const { instanceId } = await post("/instances", { name: "home" }, token);
  const { agentId } = await post(`/instances/${instanceId}/agents`, { name: "Ada" }, token);
  return (await post(`/instances/${instanceId}/agents/${agentId}/messages`, { message: "Hello?" }, token)).message;
}

describe("dist/roost, copied alone into an empty folder", () => {
  let folder = "";
  let binary = "";

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "roost-alone-"));
    binary = join(folder, "roost");
    await copyFile(await buildBinary(), binary);
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  test("is not larger than its limit", async () => {
    expect((await stat(binary)).size).toBeLessThanOrEqual(MAX_BYTES);
  });

  test("names no folder of the machine that built it", async () => {
    const bytes = await Bun.file(binary).arrayBuffer();
    expect(Buffer.from(bytes).indexOf(join(import.meta.dir, "../../node_modules"))).toBe(-1);
  });

  test("shows its version and its commands, and writes nothing", async () => {
    const version = await runBinary(["--version"], { binary, cwd: folder });
    expect({ code: version.code, version: version.output.trim() }).toEqual({ code: 0, version: packageFile.version });
    const help = await runBinary(["--help"], { binary, cwd: folder });
    expect(help.code).toBe(0);
    expect(help.output).toContain("serve");
    expect(await readdir(folder)).toEqual(["roost"]);
  });

  test("refuses an unknown command with exit code 2", async () => {
    expect((await runBinary(["no-such-command"], { binary, cwd: folder })).code).toBe(2);
  });

  test("serves, writes only to its data folder, and exits with 0 when asked to stop", async () => {
    const server = await startBinary({ binary, cwd: folder });
    const health = await fetch(`${server.url}/healthz`);
    expect(health.status).toBe(200);
    expect(await server.stop()).toBe(0);
    expect(await readdir(folder)).toEqual(["roost"]);
  });

  test("contains the skills, their scripts included, as they are in the source", async () => {
    await using server = await startBinary({ binary, cwd: folder });
    const { data } = (await (await fetch(`${server.url}/v1/skills?limit=100`)).json()) as {
      data: { sha256: string }[];
    };
    const own = loadCatalog().list(null, 100);
    expect(data.map(({ sha256 }) => sha256)).toEqual(own.map(({ sha256 }) => sha256));
    expect(own.length).toBeGreaterThanOrEqual(12);
  });

  test("contains the console as its source builds it", async () => {
    await using server = await startBinary({ binary, cwd: folder, dataDir: join(folder, "console") });
    for (const { path, plain } of await bundleConsole()) {
      expect(Buffer.from(await (await fetch(server.url + path)).bytes()).toString("base64")).toBe(plain);
    }
  });

  test("reads web pages, on a thread of its own", async () => {
    const html = { headers: { "Content-Type": "text/html" } };
    const web = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () => new Response("<h1>Birds</h1><p>Herons.", html),
    });
    const mock = startMockModelServer();
    mock.script({ kind: "tools", calls: [{ name: "web_fetch", arguments: { url: web.url.href } }] });
    const env = {
      ROOST_MODEL: "openai:mock",
      ROOST_OPENAI_BASE_URL: mock.url,
      ROOST_EGRESS: `127.0.0.1:${web.port}`,
    };
    try {
      await sayHello({ binary, cwd: folder, dataDir: join(folder, "web"), env });
      expect(mock.requests[1]?.body.messages.at(-1).content).toContain(
        `\nURL: ${web.url.href}\n\n# Birds\n\nHerons.\n`,
      );
    } finally {
      await Promise.all([mock.stop(), web.stop(true), rm(join(folder, "web"), { recursive: true })]);
    }
  });

  test("unpacks only below its data folder, checks files before it loads them, and leaves HOME alone", async () => {
    const [home, dataDir] = [join(folder, "home"), join(folder, "data")];
    const old = join(home, ".cache/roost/models-old");
    await mkdir(old, { recursive: true });
    const env = { HOME: home, XDG_CACHE_HOME: join(home, ".cache"), ROOST_LOG_LEVEL: "info" };
    const library = async () => {
      const names = await readdir(join(dataDir, "cache"));
      expect(names).toEqual([expect.stringMatching(/^models-[0-9a-f]{16}$/)]);
      return join(dataDir, "cache", names[0] ?? "", "native/libonnxruntime.so.1");
    };
    const sum = async () =>
      new Bun.CryptoHasher("sha256").update(await Bun.file(await library()).bytes()).digest("hex");

    expect(await sayHello({ binary, cwd: folder, dataDir, env })).not.toBe("");
    expect((await stat(join(dataDir, "cache"))).mode & 0o777).toBe(0o700);
    const whole = await sum();
    const file = await open(await library(), "r+");
    const { size } = await file.stat();
    const byte = Buffer.alloc(1);
    await file.read(byte, 0, 1, size - 1);
    await file.write(Buffer.of((byte[0] ?? 0) ^ 1), 0, 1, size - 1);
    await file.close();
    expect(await sum()).not.toBe(whole);

    expect(await sayHello({ binary, cwd: folder, dataDir, env })).not.toBe("");
    expect(await sum()).toBe(whole);
    expect((await readdir(home, { recursive: true })).sort()).toEqual([
      ".cache",
      ".cache/roost",
      ".cache/roost/models-old",
    ]);
    await Promise.all([home, dataDir].map((path) => rm(path, { recursive: true })));
  });

  test.skipIf(!canCutNetwork)("serves without any network (skipped where the network cannot be cut off)", () => {
    const program = join(import.meta.dir, "start-once.ts");
    const { stdout, stderr } = Bun.spawnSync([...OFFLINE, process.execPath, program, binary]);
    expect(stderr.toString()).toBe("");
    expect(stdout.toString()).toBe("answered 200, ended with 0\n");
  });

  test("ignores a .env and a bunfig.toml in the current folder", async () => {
    const cwd = join(folder, "elsewhere");
    await mkdir(cwd);
    await Bun.write(join(cwd, ".env"), "ROOST_PORT=not-a-port\n");
    await Bun.write(join(cwd, "bunfig.toml"), 'preload = ["./not-found-cache.ts"]\n');
    await using server = await startBinary({ binary, cwd });
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
    await rm(cwd, { recursive: true });
  });
});
