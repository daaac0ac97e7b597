import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
// @ts-expect-error It has no types.
import S3rver from "s3rver";
import { openFoundation } from "../../src/app/foundation.ts";
import { scheduledName } from "../../src/backup/destination.ts";
import { addAgent } from "../backup/folders.ts";
import { buildBinary, runBinary } from "../support/binary.ts";

let folder: string;
let dataDir: string;
let bucket = "";
let buckets = 0;
let server: { run(): Promise<{ port: number }>; close(): Promise<void>; configureBuckets(): Promise<void> };
let port = 0;
/** One for each test: they do not see each other's files. */
const BUCKETS = Array.from({ length: 8 }, (_, at) => `backups-${at + 1}`);

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "roost-s3-"));
  dataDir = join(folder, "data");
  openFoundation({ dataDir }).store.close();
  server = new S3rver({
    address: "127.0.0.1",
    port: 0,
    silent: true,
    directory: join(folder, "s3"),
    configureBuckets: BUCKETS.map((name) => ({ name, configs: [] })),
  });
  ({ port } = await server.run());
});
afterAll(async () => {
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(() => {
  bucket = BUCKETS[buckets++] ?? "";
});

const keys = () => ({
  AWS_ENDPOINT: `http://127.0.0.1:${port}`,
  AWS_ACCESS_KEY_ID: "S3RVER",
  AWS_SECRET_ACCESS_KEY: "S3RVER",
});

const backup = (words: string[], env: Record<string, string> = keys()) => runBinary(["backup", ...words], { env });

test("a backup in a bucket is made, listed, verified and restored", async () => {
  const file = `s3://${bucket}/host/mine.tar.zst`;
  expect(await backup(["create", file, "--data", dataDir])).toMatchObject({ code: 0 });
  expect(await backup(["verify", file, "--data", dataDir])).toMatchObject({ code: 0 });
  const { output } = await backup(["list", "--data", dataDir, "--json"], {
    ...keys(),
    ROOST_BACKUP_TO: `s3://${bucket}/host`,
  });
  expect(JSON.parse(output)).toMatchObject([{ file, encrypted: false }]);
  const restored = join(folder, "restored");
  expect(await backup(["restore", file, "--data", restored])).toMatchObject({ code: 0 });
  expect(await runBinary(["account", "list", "--data", restored])).toMatchObject({ code: 0 });
});

/** A data folder whose backup has several parts. */
async function largeFolder(name: string): Promise<{ dataDir: string; noise: Uint8Array }> {
  const large = join(folder, name);
  openFoundation({ dataDir: large }).store.close();
  addAgent(large, "a");
  const noise = new Uint8Array(40 * 1024 * 1024);
  for (let at = 0; at < noise.length; at += 65_536) crypto.getRandomValues(noise.subarray(at, at + 65_536));
  await Bun.write(join(large, "instances/inst_a/agents/a/noise.bin"), noise);
  return { dataDir: large, noise };
}

test("a file of several parts arrives whole", async () => {
  const { dataDir: large, noise } = await largeFolder("large");
  const file = `s3://${bucket}/large.tar.zst`;
  expect(await backup(["create", file, "--data", large])).toMatchObject({ code: 0 });
  const restored = join(folder, "large-restored");
  expect(await backup(["restore", file, "--data", restored])).toMatchObject({ code: 0 });
  const back = readFileSync(join(restored, "instances/inst_a/agents/a/noise.bin"));
  expect(Bun.hash(back)).toBe(Bun.hash(noise));
});

/** In front of the server: `take` answers for all parts but the first, and the ids of uploads are noted. */
function standBefore(take: () => Response | Promise<Response>) {
  const begun: string[] = [];
  const givenBack: string[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    async fetch(request) {
      const url = new URL(request.url);
      const { method, headers } = request;
      // The server behind knows no request that gives parts back.
      if (method === "DELETE") {
        givenBack.push(url.searchParams.get("uploadId") ?? "");
        return new Response(null, { status: 204 });
      }
      const body = await request.arrayBuffer();
      if (Number(url.searchParams.get("partNumber") ?? 1) > 1) return take();
      url.port = String(port);
      const answer = await fetch(url, { method, headers, ...(["GET", "HEAD"].includes(method) ? {} : { body }) });
      const [, upload] = /<UploadId>(.+)<\/UploadId>/.exec(await answer.clone().text()) ?? [];
      if (upload !== undefined) begun.push(upload);
      return answer;
    },
  });
  return { begun, givenBack, env: { ...keys(), AWS_ENDPOINT: server.url.origin }, stop: () => server.stop(true) };
}

test("a backup that the server takes only in part fails, and gives back the parts that it took", async () => {
  const { dataDir: large } = await largeFolder("refused");
  const front = standBefore(() => new Response("<Error><Code>SlowDown</Code></Error>", { status: 503 }));
  const file = `s3://${bucket}/mine.tar.zst`;
  const { code, errors } = await backup(["create", file, "--data", large], front.env);
  await front.stop();
  expect(code).toBe(1);
  expect(errors).toContain("SlowDown");
  expect(front.begun).toHaveLength(1);
  expect(front.givenBack).toEqual(front.begun);
  expect((await backup(["verify", file, "--data", large])).errors).toContain("there is no backup");
});

test("a backup that is ended while its server hangs gives back its parts, and leaves nothing on the disk", async () => {
  const { dataDir: large } = await largeFolder("ended");
  const hangs = Promise.withResolvers<void>();
  let hanging = 0;
  const front = standBefore(() => {
    hanging += 1;
    // By then everything has been read, and the upload waits for nothing but its server.
    if (hanging === 2) hangs.resolve();
    return new Promise<Response>(() => {});
  });
  const words = ["backup", "create", `s3://${bucket}/mine.tar.zst`, "--data", large];
  const child = Bun.spawn([await buildBinary(), ...words], { env: { HOME: folder, ...front.env }, stderr: "pipe" });
  await hangs.promise;
  child.kill("SIGTERM");
  const [code, errors] = await Promise.all([child.exited, Bun.readableStreamToText(child.stderr)]);
  await front.stop();
  expect([code, errors]).toEqual([1, expect.stringContaining("the backup was interrupted")]);
  expect(front.begun).toHaveLength(1);
  expect(front.givenBack).toEqual(front.begun);
  expect(readdirSync(join(large, "backups"))).toEqual([]);
});

test("a file that is there already is left as it is", async () => {
  const file = `s3://${bucket}/mine.tar.zst`;
  expect(await backup(["create", file, "--data", dataDir])).toMatchObject({ code: 0 });
  expect((await backup(["create", file, "--data", dataDir])).errors).toContain("exists already");
});

test("a file that another run has written meanwhile is left as it is, and the parts of this one are given back", async () => {
  const { dataDir: large } = await largeFolder("meanwhile");
  const file = `s3://${bucket}/mine.tar.zst`;
  let other: ReturnType<typeof backup> | undefined;
  const front = standBefore(async () => {
    other ??= backup(["create", file, "--data", dataDir, "--json"]);
    await other;
    return new Response(null, { headers: { etag: "any" } });
  });
  const { code, errors } = await backup(["create", file, "--data", large], front.env);
  await front.stop();
  expect([code, errors]).toEqual([1, expect.stringContaining(`${file} exists already, and is left as it is`)]);
  expect(front.givenBack).toEqual(front.begun);
  const [made, kept] = [JSON.parse((await other)?.output ?? ""), await backup(["list", "--json"], listing())];
  expect(JSON.parse(kept.output)).toMatchObject([{ file, size: made.size }]);
});

const listing = () => ({ ...keys(), ROOST_BACKUP_TO: `s3://${bucket}`, ROOST_DATA_DIR: dataDir });

test("without keys, or without a server, the error says what to set", async () => {
  const file = `s3://${bucket}/mine.tar.zst`;
  expect((await backup(["create", file, "--data", dataDir], {})).errors).toContain("set AWS_ACCESS_KEY_ID");
  const nobody = { ...keys(), AWS_ENDPOINT: "http://127.0.0.1:9" };
  expect((await backup(["create", file, "--data", dataDir], nobody)).errors).toContain("check AWS_ENDPOINT");
  expect((await backup(["verify", file, "--data", dataDir])).errors).toContain("there is no backup");
});

test("doctor judges the newest one in the bucket", async () => {
  const settings = { ...keys(), ROOST_BACKUP_TO: `s3://${bucket}/host`, ROOST_BACKUP_EVERY: "1d" };
  const findings = async () => {
    const { output } = await runBinary(["doctor", "--data", dataDir, "--json"], { env: settings });
    return JSON.parse(output).find(({ check }: { check: string }) => check === "backups");
  };
  expect(await findings()).toMatchObject({ ok: false, mend: expect.stringContaining("backup create") });
  const name = scheduledName(Date.now(), false);
  expect(await backup(["create", `s3://${bucket}/host/${name}`, "--data", dataDir])).toMatchObject({ code: 0 });
  expect(await findings()).toMatchObject({ ok: true });
});
