import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { copyFile, mkdir, mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import packageFile from "../../package.json" with { type: "json" };
import { buildBinary, runBinary, startBinary } from "../support/binary.ts";
import { canCutNetwork, OFFLINE } from "../support/offline.ts";

const MAX_BYTES = 320e6;

describe("dist/roost, copied alone into an empty folder", () => {
  let folder = "";
  let binary = "";

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "roost-alone-"));
    binary = join(folder, "roost");
    await copyFile(await buildBinary(), binary);
  }, 120_000);
  afterAll(() => rm(folder, { recursive: true, force: true }));

  test("is no larger than it may be", async () => {
    expect((await stat(binary)).size).toBeLessThanOrEqual(MAX_BYTES);
  });

  test("names no folder of the machine that built it", async () => {
    const bytes = await Bun.file(binary).arrayBuffer();
    expect(Buffer.from(bytes).indexOf(join(import.meta.dir, "../../node_modules"))).toBe(-1);
  });

  test("says its version and its commands, and writes nothing", async () => {
    const version = await runBinary(["--version"], { binary, cwd: folder });
    expect({ code: version.code, version: version.output.trim() }).toEqual({ code: 0, version: packageFile.version });
    const help = await runBinary(["--help"], { binary, cwd: folder });
    expect(help.code).toBe(0);
    expect(help.output).toContain("serve");
    expect(await readdir(folder)).toEqual(["roost"]);
  });

  test("refuses an unknown command with 2", async () => {
    expect((await runBinary(["no-such-command"], { binary, cwd: folder })).code).toBe(2);
  });

  test("serves, keeps to its data folder, and ends with 0 when asked", async () => {
    const server = await startBinary({ binary, cwd: folder });
    const health = await fetch(`${server.url}/healthz`);
    expect(health.status).toBe(200);
    expect(await server.stop()).toBe(0);
    expect(await readdir(folder)).toEqual(["roost"]);
  });

  test.skipIf(!canCutNetwork)("serves without any network (skipped where none can be cut off)", () => {
    const program = join(import.meta.dir, "start-once.ts");
    const { stdout, stderr } = Bun.spawnSync([...OFFLINE, process.execPath, program, binary]);
    expect(stderr.toString()).toBe("");
    expect(stdout.toString()).toBe("answered 200, ended with 0\n");
  });

  test("ignores a .env and a bunfig.toml in the folder it is started from", async () => {
    const cwd = join(folder, "elsewhere");
    await mkdir(cwd);
    await Bun.write(join(cwd, ".env"), "ROOST_PORT=not-a-port\n");
    await Bun.write(join(cwd, "bunfig.toml"), 'preload = ["./missing.ts"]\n');
    await using server = await startBinary({ binary, cwd });
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
    await rm(cwd, { recursive: true });
  });
});
