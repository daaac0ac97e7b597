import { expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { bundleOf, headerOf, manifest, tarOf } from "../bundles/archives.ts";
import { countsOf, inLanes } from "./connection.ts";
import { startWorld, type World } from "./world.ts";

const MIB = 1024 * 1024;

const imported = async ({ url, attacker }: World, instanceId: string, bundle: Uint8Array, name: string) => {
  const path = `/v1/instances/${instanceId}/import?name=${name}`;
  const body = bundle as Uint8Array<ArrayBuffer>;
  const response = await fetch(new URL(path, url), { method: "POST", headers: { "X-API-Key": attacker.key }, body });
  await response.arrayBuffer();
  return response.status;
};

test("an account imports bombs, and bundles of ten thousand files, as fast as it can: others are answered meanwhile", async () => {
  await using world = await startWorld();
  const instanceId = await world.attacker.newInstance();
  const start = gzipSync(
    Buffer.concat([tarOf([manifest()]).subarray(0, -1024), headerOf("0", "other", "", 7_000_000_000)]),
  );
  const zeros = gzipSync(Buffer.alloc(50 * MIB));
  // 30 GiB of zeros in 30 MiB.
  const bomb = Buffer.concat([start, ...Array<Buffer>(600).fill(zeros)]);
  expect(bomb.byteLength).toBeGreaterThan(25 * MIB);
  const noise = bundleOf(manifest(), ["other", randomBytes(30 * MIB)]);
  const files = Array.from({ length: 10_000 }, (_, at) => [`workspace/${at % 100}/${at}.md`, "x"] as const);
  const many = bundleOf(manifest(), ...files);
  const headers = gzipSync(
    Buffer.concat([tarOf([manifest()]).subarray(0, -1024), ...Array<Buffer>(300_000).fill(headerOf("5", "d/"))]),
  );
  const statuses = await world.attack(() =>
    inLanes(6, 24, (at) => imported(world, instanceId, [bomb, noise, many, headers][at % 4] ?? bomb, `x${at}`)),
  );
  expect(Object.keys(countsOf(statuses)).filter((status) => !["201", "400", "429", "503"].includes(status))).toEqual(
    [],
  );
  await world.expectUnharmed({ mostMiB: 300 });
  expect(readdirSync(join(world.dataDir, "bundles"))).toEqual([]);
});

test("an account exports its largest agent again and again, and reads nothing of it: others are answered meanwhile", async () => {
  await using world = await startWorld();
  const { attacker, url, dataDir } = world;
  const instanceId = await attacker.newInstance();
  const agent = await attacker.newAgent(instanceId, { name: "x", slug: "x" });
  await attacker.ask("POST", `/v1/instances/${instanceId}/secrets`, { key: "TOKEN", value: "a-value-to-look-for" });
  const folder = join(dataDir, "instances", instanceId, "agents", "x", "notes");
  mkdirSync(folder);
  for (let file = 0; file < 300; file++) writeFileSync(join(folder, `${file}.bin`), randomBytes(64 * 1024));
  const headers = { "X-API-Key": attacker.key };
  const leaving = new AbortController();
  const answers = await world.attack(async () => {
    const open = inLanes(4, 16, async () => {
      const response = await fetch(new URL(`${agent}/bundle`, url), { headers, signal: leaving.signal });
      return response.status;
    });
    return await open;
  });
  leaving.abort();
  expect(Object.keys(countsOf(answers)).filter((status) => !["200", "429"].includes(status))).toEqual([]);
  await world.expectUnharmed();
});
