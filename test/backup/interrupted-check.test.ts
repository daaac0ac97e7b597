import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openFoundation } from "../../src/app/foundation.ts";
import { createBackup } from "../../src/backup/create.ts";
import { locate } from "../../src/backup/destination.ts";
import { ownCommand } from "../../src/lib/own-program.ts";
import { startBinary } from "../support/binary.ts";
import { addAgent } from "./folders.ts";

const SCHEDULED = "roost-20260301T000000Z.tar.zst";

/** A bucket with one backup. Of all of it, it sends most, and then nothing more. */
const stalling = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  idleTimeout: 0,
  fetch({ method, headers, url }) {
    if (url.includes("list-type")) {
      return new Response(`<ListBucketResult><Contents><Key>${SCHEDULED}</Key></Contents></ListBucketResult>`);
    }
    if (method === "HEAD") return new Response(archive);
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(headers.get("range") ?? "") ?? [];
    if (last !== undefined) {
      const range = `bytes ${first}-${last}/${archive.length}`;
      const part = archive.slice(Number(first), Number(last) + 1);
      return new Response(part, { status: 206, headers: { "Content-Range": range } });
    }
    return new Response(
      new ReadableStream({
        async pull(controller) {
          controller.enqueue(archive.slice(0, -100));
          asked.shift()?.();
          await ended.promise;
        },
      }),
      { headers: { "Content-Length": String(archive.length) } },
    );
  },
});
/** Called in turn when a backup is asked for. */
const asked: (() => void)[] = [];
const ended = Promise.withResolvers<void>();

let home: string;
let dataDir: string;
let temporary: string;
let archive: Uint8Array<ArrayBuffer>;
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "roost-interrupted-"));
  dataDir = join(home, "data");
  openFoundation({ dataDir }).store.close();
  addAgent(dataDir, "a");
  const noise = crypto.getRandomValues(new Uint8Array(60_000));
  await Bun.write(join(dataDir, "instances/inst_a/agents/a/noise.bin"), noise);
  const file = join(home, "b.tar.zst");
  await createBackup({ dataDir, ...locate(file), withKeys: true, passphrase: null });
  archive = await Bun.file(file).bytes();
});
afterAll(async () => {
  ended.resolve();
  await stalling.stop(true);
  rmSync(home, { recursive: true, force: true });
});
beforeEach(() => {
  temporary = join(home, "tmp");
  mkdirSync(temporary);
});
afterEach(() => rmSync(temporary, { recursive: true }));

const bucketKeys = () => ({
  AWS_ENDPOINT: `http://127.0.0.1:${stalling.port}`,
  AWS_ACCESS_KEY_ID: "any",
  AWS_SECRET_ACCESS_KEY: "any",
});

/** Begins a check of a backup whose end does not come; resolves when its beginning has been sent. */
async function begin(folder: string) {
  const sent = Promise.withResolvers<void>();
  asked.push(sent.resolve);
  const child = Bun.spawn(ownCommand("backup", "verify", "s3://kept/b.tar.zst", "--data", folder), {
    cwd: home,
    env: { HOME: home, TMPDIR: temporary, ...bucketKeys() },
    stdio: ["ignore", "ignore", "pipe"],
  });
  await sent.promise;
  return child;
}

const verifyLocal = (folder: string) =>
  Bun.spawn(ownCommand("backup", "verify", join(home, "b.tar.zst"), "--data", folder), {
    env: { HOME: home, TMPDIR: temporary },
    stdio: ["ignore", "ignore", "ignore"],
  }).exited;

const PLACES: [place: string, dataDir: () => string, found: () => string[]][] = [
  ["in the data folder", () => dataDir, () => readdirSync(join(dataDir, "backups"))],
  ["without a data folder", () => join(home, "nowhere"), () => readdirSync(temporary)],
];

for (const [place, folder, found] of PLACES) {
  test.each(["SIGINT", "SIGTERM"] as const)(
    `a check ${place} that %s ends leaves nothing of the backup`,
    async (name) => {
      const child = await begin(folder());
      expect(found()).toEqual([expect.stringMatching(/^(\.|roost-)verify-/)]);
      child.kill(name);
      expect(await child.exited).toBe(1);
      expect(await new Response(child.stderr).text()).toContain("roost: the check was interrupted");
      expect(found()).toEqual([]);
    },
  );

  test(`what a killed check ${place} has left is removed by the next one, but not what is being checked`, async () => {
    const killed = await begin(folder());
    const [left = ""] = found();
    killed.kill("SIGKILL");
    await killed.exited;
    expect(found()).toEqual([left]);
    const other = await begin(folder());
    const [working = "", ...more] = found();
    expect([working === left, more]).toEqual([false, []]);
    expect(await verifyLocal(folder())).toBe(0);
    expect(found()).toEqual([working]);
    other.kill("SIGTERM");
    await other.exited;
    expect(found()).toEqual([]);
  });
}

test("a second SIGTERM, as a service manager and the server send them, does not keep a check from cleaning up", async () => {
  const child = await begin(dataDir);
  child.kill("SIGTERM");
  child.kill("SIGTERM");
  expect(await child.exited).toBe(1);
  expect(readdirSync(join(dataDir, "backups"))).toEqual([]);
});

test("nor does the server leave anything of a backup that it restores for a trial when it stops", async () => {
  const sent = Promise.withResolvers<void>();
  asked.push(sent.resolve);
  const settings = { ROOST_BACKUP_EVERY: "3650d", ROOST_BACKUP_TO: "s3://kept" };
  await using server = await startBinary({ dataDir, env: { ...bucketKeys(), ...settings } });
  await sent.promise;
  expect(readdirSync(join(dataDir, "backups"))).toEqual([expect.stringMatching(/^\.verify-/)]);
  expect(await server.stop()).toBe(0);
  expect(readdirSync(join(dataDir, "backups"))).toEqual([]);
});
