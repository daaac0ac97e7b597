import { afterAll, expect, test } from "bun:test";
import fs from "node:fs";
import { gzipSync } from "node:zlib";
import { tarEnd, tarHeader, tarPadding } from "../../src/bundles/tar.ts";
import { bundleOf, filesIn, type Given, headerOf, manifest, tarOf } from "./archives.ts";
import { startWorld } from "./world.ts";

const world = await startWorld({ ROOST_WRITES_PER_SECOND: "100000" });
afterAll(() => world.server.stop());

/** All names in the data folder, besides those of the database and its like. */
const onDisk = () =>
  fs
    .readdirSync(world.server.dataDir, { recursive: true })
    .map(String)
    .filter((name) => !/^(roost\.db|server\.lock|cache|audit-head)/.test(name))
    .sort();
const rowsIn = (table: string) =>
  world.server.foundation.store.sqlite.query<{ rows: number }, []>(`SELECT count(*) AS rows FROM ${table}`).get()?.rows;
const everything = () => ({
  files: onDisk(),
  agents: rowsIn("agents"),
  files_indexed: rowsIn("workspace_files"),
  messages: rowsIn("messages"),
  conversations: rowsIn("conversations"),
  schedules: rowsIn("schedules"),
  changes: rowsIn("workspace_changes"),
  usage: world.server.foundation.store.sqlite.query("SELECT * FROM account_usage").all(),
});

// The folder for scratch is there from the first import on.
await world.import(bundleOf());
const before = everything();

/** A bundle whose manifest is good, and something else. */
const withRaw = (...blocks: Uint8Array[]) =>
  gzipSync(Buffer.concat([tarOf([manifest()]).subarray(0, -1024), ...blocks, tarEnd()]));
const line = (fields: object) => `${JSON.stringify(fields)}\n`;
const heading = line({ title: null, isDefault: true, createdAt: "2026-01-01T00:00:00.000Z" });
const message = (fields: object = {}) =>
  line({
    ...{ role: "user", message: "Hello", sender: { type: "human", id: "a", name: "A" }, inReplyTo: null },
    ...{ createdAt: "2026-01-01T00:00:00.000Z", finishReason: null, promptTokens: null, completionTokens: null },
    ...fields,
  });
const schedule = (fields: object = {}) =>
  line({
    ...{ name: "Morning", message: "Hello", cron: "0 8 * * *", everySeconds: null, timeZone: "UTC", missed: "skip" },
    ...{ activeHours: null, conversation: "own", announce: true, model: null },
    ...fields,
  });
const scheduled = (fields: object): Buffer => bundleOf(manifest(), ["schedules/1.json", schedule(fields)]);
const named = (name: string): Buffer => bundleOf(manifest(), [name, "x"]);
const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;
const many = (count: number, name: (at: number) => string): Given[] =>
  Array.from({ length: count }, (_, at) => [name(at), ""] as const);

const REFUSED: Record<string, () => Uint8Array> = {
  "a schedule that is never due": () => scheduled({ cron: "0 0 30 2 *" }),
  "a schedule of a time zone that is none": () => scheduled({ timeZone: "Mars/Olympus" }),
  "a schedule with cron and an interval": () => scheduled({ everySeconds: 60 }),
  "a schedule each second": () => scheduled({ cron: null, everySeconds: 1 }),
  "a schedule with too long a message": () => scheduled({ message: "x".repeat(32_001) }),
  "more schedules than an agent may have": () =>
    bundleOf(manifest(), ...many(101, (at) => `schedules/${at}.json`).map(([name]) => [name, schedule()] as const)),
  "nothing at all": () => new Uint8Array(),
  "what is not compressed": () => tarOf([manifest()]),
  "what is no archive": () => gzipSync("hello ".repeat(1000)),
  "a compressed file that is cut off": () => bundleOf(manifest(), ["workspace/a.md", "a"]).subarray(0, -20),
  "a compressed file with a wrong checksum": () => {
    const bundle = bundleOf(manifest());
    bundle[bundle.length - 6] = (bundle[bundle.length - 6] ?? 0) ^ 1;
    return bundle;
  },
  "an archive without its end": () => gzipSync(tarOf([manifest()]).subarray(0, -1024)),
  "an archive that goes on after its end": () => gzipSync(Buffer.concat([tarOf([manifest()]), Buffer.from("more")])),
  "a header with a wrong checksum": () => {
    const header = tarHeader({ name: "workspace/a.md", size: 0, modifiedAtMs: 0 });
    header.write("b", 10);
    return withRaw(header);
  },
  "no manifest": () => bundleOf(["workspace/SOUL.md", "I am"]),
  "a manifest that is not the first": () => bundleOf(["workspace/SOUL.md", "I am"], manifest()),
  "two manifests": () => bundleOf(manifest(), manifest()),
  "a manifest that is no JSON": () => bundleOf(["manifest.json", "{"]),
  "a manifest that is not UTF-8": () => bundleOf(["manifest.json", Buffer.from([0x7b, 0xff, 0x7d])]),
  "a manifest that is too long": () => bundleOf(manifest({ more: "x".repeat(1024 * 1024) })),
  "a manifest that is nested too deep": () =>
    bundleOf(["manifest.json", `{"bundle":"roost-agent","version":1,"agent":{"name":"A"},"x":${nested(250)}}`]),
  "a manifest of a later version": () => bundleOf(manifest({ version: 2 })),
  "another program's manifest": () => bundleOf(manifest({ bundle: "another" })),
  "a name with a line break": () => bundleOf(manifest({ agent: { name: "A\nB" } })),
  "a slug that is a path": () => bundleOf(manifest({ agent: { name: "A", slug: "../a" } })),
  "more rules than anybody has": () =>
    bundleOf(manifest({ rules: Array(1001).fill({ tool: "now", host: null, method: null }) })),
  "a name that leads out": () => named("workspace/../../../etc/passwd"),
  "a name that leads out of the archive": () => named("../workspace/a.md"),
  "a name that leads out of an unknown part": () => named("other/../../a"),
  "an absolute name": () => named("/workspace/a.md"),
  "a name with a backslash": () => named("workspace/..\\a.md"),
  "a name with a NUL": () => withRaw(paxOf("path", "workspace/a\0.md"), headerOf("0", "x")),
  "a name in another script, as no workspace has it": () => named("workspace/ノート.md"),
  "a name that is shown backwards": () => named("workspace/\u202edm.exe"),
  "a hidden file": () => named("workspace/.ssh/id_rsa"),
  "a name that is too long": () => named(`workspace/${"a".repeat(2000)}`),
  "a name that is too deep": () => named(`workspace/${"a/".repeat(20)}b`),
  "a name that comes twice": () => bundleOf(manifest(), ["workspace/a.md", "1"], ["workspace/a.md", "2"]),
  "a name that comes twice, once with ./": () =>
    bundleOf(manifest(), ["workspace/a.md", "1"], ["./workspace/a.md", "2"]),
  "names that differ only by case": () => bundleOf(manifest(), ["workspace/a.md", "1"], ["workspace/A.md", "2"]),
  "folders that differ only by case": () => bundleOf(manifest(), ["workspace/a/1.md", "1"], ["workspace/A/2.md", "2"]),
  "a file that is a folder too": () => bundleOf(manifest(), ["workspace/a", "1"], ["workspace/a/b", "2"]),
  "a folder that is a file too": () => bundleOf(manifest(), ["workspace/a/b", "1"], ["workspace/a", "2"]),
  "a symbolic link": () => withRaw(headerOf("2", "workspace/a.md", "/etc/passwd")),
  "a hard link": () => withRaw(headerOf("1", "workspace/a.md", "manifest.json")),
  "a character device": () => withRaw(headerOf("3", "workspace/a.md")),
  "a block device": () => withRaw(headerOf("4", "workspace/a.md")),
  "a named pipe": () => withRaw(headerOf("6", "workspace/a.md")),
  "a sparse file": () => withRaw(headerOf("S", "workspace/a.md")),
  "a file with holes": () => withRaw(headerOf("x", "x", "", 20), Buffer.alloc(512, 0x39)),
  "a header of many megabytes": () => withRaw(headerOf("x", "x", "", 8_000_000), Buffer.alloc(8_000_512)),
  "a GNU name of many megabytes": () => withRaw(headerOf("L", "x", "", 8_000_000), Buffer.alloc(8_000_512)),
  "a file that is named twice": () => withRaw(gnuNameOf("a"), gnuNameOf("b"), headerOf("0", "workspace/a.md")),
  "a file that is described twice": () =>
    withRaw(paxOf("mtime", "1"), gnuNameOf("a"), paxOf("mtime", "2"), headerOf("0", "workspace/a.md")),
  "a size that is a lie": () => withRaw(paxOf("size", "99999999999"), headerOf("0", "workspace/a.md")),
  "a size that is no number": () => withRaw(paxOf("size", "-1"), headerOf("0", "workspace/a.md")),
  "a file that is too large": () => bundleOf(manifest(), ["workspace/a.bin", new Uint8Array(256 * 1024 + 1)]),
  "more files than a workspace has": () => bundleOf(manifest(), ...many(10_001, (at) => `workspace/${at}`)),
  "more unknown files than anybody needs": () => bundleOf(manifest(), ...many(20_001, (at) => `other/${at}`)),
  "more bytes than a workspace has": () =>
    bundleOf(manifest(), ...Array.from({ length: 401 }, (_, at) => [`workspace/${at}`, ZEROS] as const)),
  "a bomb": bomb,
  "more folders than there can be files in": () => withRaw(...Array<Buffer>(80_001).fill(headerOf("5", "a/"))),
  "headers that describe nothing, without end": () => withRaw(...Array<Buffer>(80_001).fill(headerOf("g", "x"))),
  "more skills than an instance has": () => bundleOf(manifest(), ...many(101, (at) => `skills/s${at}/SKILL.md`)),
  "a message of an unknown role": () =>
    bundleOf(manifest(), ["history/0001.jsonl", heading + message({ role: "system" })]),
  "a message that is no JSON": () => bundleOf(manifest(), ["history/0001.jsonl", `${heading}{\n`]),
  "a line that never ends": () => bundleOf(manifest(), ["history/0001.jsonl", heading + "x".repeat(3 * 1024 * 1024)]),
  "a bad message behind many good ones": () =>
    bundleOf(manifest(), ["history/0001.jsonl", `${heading}${message().repeat(500)}{}`]),
  "two default conversations": () =>
    bundleOf(manifest(), ["history/0001.jsonl", heading], ["history/0002.jsonl", heading]),
};

const ZEROS = new Uint8Array(256 * 1024);

function paxOf(key: string, value: string): Buffer {
  const rest = ` ${key}=${value}\n`;
  const record = `${Buffer.byteLength(rest) + 2}${rest}`;
  const size = Buffer.byteLength(record);
  return Buffer.concat([headerOf("x", "pax", "", size), Buffer.from(record), tarPadding(size)]);
}

/** What GNU tar writes before a file with a long name. */
function gnuNameOf(name: string): Buffer {
  const size = Buffer.byteLength(name);
  return Buffer.concat([headerOf("L", "././@LongLink", "", size), Buffer.from(name), tarPadding(size)]);
}

/** A gigabyte and a half of zeros behind a manifest, in a file of an unknown part. */
function bomb(): Buffer {
  const size = 1_500_000_000;
  const start = tarOf([manifest()]).subarray(0, -1024);
  const one = gzipSync(Buffer.alloc(50_000_000));
  return Buffer.concat([
    gzipSync(Buffer.concat([start, headerOf("0", "other", "", size)])),
    ...Array<Buffer>(30).fill(one),
    gzipSync(tarEnd()),
  ]);
}

test.each(Object.keys(REFUSED))("%s is refused, and leaves nothing", async (what) => {
  const answer = await world.import(REFUSED[what]?.() ?? new Uint8Array());
  expect([answer.status, answer.body.error?.code]).toEqual([400, "invalid_request"]);
  expect(answer.body.error.message).toMatch(/^bundle: |^body: /);
  expect(answer.body.error.message.length).toBeLessThan(500);
  await world.server.app.settled();
  expect(everything()).toEqual(before);
});

test("a long name ends at its first NUL, whatever comes then", async () => {
  const name = `workspace/${"a".repeat(120)}.md`;
  const padded = `${name}\0${"\0".repeat(8_000)}x`;
  const archive = Buffer.concat([
    tarOf([manifest()]).subarray(0, -1024),
    gnuNameOf(padded),
    headerOf("0", "x"),
    tarEnd(),
  ]);
  expect([...(await filesIn(gzipSync(archive))).keys()]).toEqual(["manifest.json", name]);
});

test("an archive that is too long is refused before it is read", async () => {
  const answer = await world.import(new Uint8Array(32 * 1024 * 1024 + 1));
  expect([answer.status, answer.body.error.code]).toEqual([413, "payload_too_large"]);
});

test("what a later version may add is left out and listed, cut to what somebody reads", async () => {
  const bundle = bundleOf(
    manifest({ agent: { name: "Later" }, schedules: [], triggers: [{}], servers: ["npx evil"] }),
    ["schedules/daily.json", "{}"],
    ["memory.sqlite", "x"],
    ...many(200, (at) => `other/${at}`),
  );
  const { status, body } = await world.import(bundle);
  expect(status).toBe(201);
  expect(body.review.leftOut.slice(0, 5)).toEqual([
    "manifest.json: schedules",
    "manifest.json: triggers",
    "manifest.json: servers",
    "schedules/daily.json",
    "memory.sqlite",
  ]);
  expect([body.review.leftOut.length, body.review.leftOut.at(-1)]).toEqual([100, "and 106 more"]);
});
