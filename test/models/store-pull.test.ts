import { afterAll, beforeEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { BusyModel, filesFolder, whileHolding } from "../../src/models/store/add.ts";
import { createHub } from "../../src/models/store/hub.ts";
import { writeManifest } from "../../src/models/store/manifest.ts";
import { type PullOptions, pullModel } from "../../src/models/store/pull.ts";
import {
  findModel,
  listModels,
  MAX_MODELS,
  missingFiles,
  modelFolder,
  unfinishedModels,
} from "../../src/models/store/store.ts";
import { startHub } from "../support/hub.ts";
import { processCommand } from "./local-setting.ts";

const REPOSITORY = "tests/Tiny-Model";
const WEIGHTS = "onnx/model.onnx";
const hub = await startHub(REPOSITORY, resolve(import.meta.dir, "tiny-model"));
const original = new Map(hub.files);
const weights = original.get(WEIGHTS) as Buffer;
const folders: string[] = [];
let dataDir = "";

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "roost-pull-"));
  folders.push(dataDir);
  hub.files.clear();
  for (const [path, bytes] of original) hub.files.set(path, bytes);
  hub.revision = "1".repeat(40);
  for (const key of Object.keys(hub.behaviour)) delete (hub.behaviour as unknown as Record<string, unknown>)[key];
  Object.assign(hub.behaviour, { cuts: [], statuses: [] });
  hub.asked.length = 0;
});
afterAll(async () => {
  await hub.close();
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

const pull = ({ token = null, ...more }: Partial<PullOptions> & { token?: string | null; silentMs?: number } = {}) =>
  pullModel({
    dataDir,
    name: "tiny",
    cacheDir: join(dataDir, "cache"),
    command: processCommand,
    hub: createHub({ url: hub.url, token, ...(more.silentMs === undefined ? {} : { silentMs: more.silentMs }) }),
    hubUrl: hub.url,
    repository: REPOSITORY,
    dtype: null,
    signal: new AbortController().signal,
    onProgress: () => hub.cutAt(statPart() ?? -1),
    onRetry() {},
    backOffMs: 1,
    ...more,
  });

const part = () => join(filesFolder(dataDir, "tiny"), `${WEIGHTS}.part`);
const isWhole = () => {
  const found = findModel(dataDir, "tiny");
  return (
    found !== null && missingFiles(found).length === 0 && readFileSync(join(found.folder, WEIGHTS)).equals(weights)
  );
};

test("a pulled model is tried, and its manifest names its source, license and files with their hashes", async () => {
  const added = await pull();
  expect(added?.text).toMatch(/^[a-z ]+$/);
  expect(added?.manifest).toMatchObject({
    name: "tiny",
    source: { hub: hub.url, repository: REPOSITORY, revision: hub.revision },
    license: "apache-2.0",
    architecture: "LlamaForCausalLM",
    dtype: "fp32",
    contextTokens: 512,
    fast: null,
  });
  const sha256 = new Bun.CryptoHasher("sha256").update(weights).digest("hex");
  expect(added?.manifest.files).toContainEqual({ path: WEIGHTS, size: weights.length, sha256 });
  expect(isWhole()).toBe(true);
  expect(unfinishedModels(dataDir)).toEqual([]);
});

test("a connection that is cut goes on where it was, and nothing is sent twice", async () => {
  hub.behaviour.cuts = [50_000, 1, 30_000];
  const reasons: string[] = [];
  await pull({ onRetry: (reason) => void reasons.push(reason) });
  expect(hub.ranges(WEIGHTS)).toEqual([undefined, "bytes=50000-", "bytes=50001-", "bytes=80001-"]);
  const sent = hub.asked.filter(({ path }) => path === `/blobs/${WEIGHTS}`).reduce((sum, one) => sum + one.sent, 0);
  expect(sent).toBe(weights.length);
  expect(reasons).toHaveLength(3);
  expect(isWhole()).toBe(true);
});

test("a pull that gave up keeps what has arrived, and the next one asks for the rest only", async () => {
  hub.behaviour.cuts = [70_000, 0, 0, 0, 0, 0];
  await expect(pull()).rejects.toThrow("cut");
  expect(statSync(part()).size).toBe(70_000);
  expect([findModel(dataDir, "tiny"), unfinishedModels(dataDir)]).toEqual([null, ["tiny"]]);
  hub.behaviour.cuts = [];
  hub.asked.length = 0;
  await pull();
  expect(hub.ranges(WEIGHTS)).toEqual(["bytes=70000-"]);
  expect(hub.asked.filter(({ path }) => path.includes("/resolve/"))).toHaveLength(1);
  expect(isWhole()).toBe(true);
});

test("a hub that goes silent in the middle is left after a while, and asked again", async () => {
  hub.behaviour.hangsAfter = 60_000;
  hub.behaviour.onHang = () => delete hub.behaviour.hangsAfter;
  await pull({ silentMs: 12_000 });
  expect(hub.ranges(WEIGHTS)).toEqual([undefined, "bytes=60000-"]);
  expect(isWhole()).toBe(true);
});

test("a server that ignores ranges sends the file from its beginning", async () => {
  await interrupted();
  hub.behaviour.ignoresRanges = true;
  await pull();
  expect(isWhole()).toBe(true);
});

/** Leaves a part of the weights. */
async function interrupted(): Promise<void> {
  const abort = new AbortController();
  hub.behaviour.hangsAfter = 40_000;
  const ended = pull({
    signal: abort.signal,
    onProgress: () => void (hub.ranges(WEIGHTS).length > 0 && statPart() === 40_000 && abort.abort()),
  });
  await expect(ended).rejects.toThrow();
  delete hub.behaviour.hangsAfter;
}
const statPart = () => statSync(part(), { throwIfNoEntry: false })?.size;

test("bytes that are not those of the checksum are thrown away, and the next pull gets them anew", async () => {
  const other = Buffer.from(weights);
  other[1_000] = (other[1_000] ?? 0) ^ 1;
  hub.behaviour.sends = new Map([[WEIGHTS, other]]);
  await expect(pull()).rejects.toThrow("not what the hub promises");
  expect(findModel(dataDir, "tiny")).toBeNull();
  delete hub.behaviour.sends;
  await pull();
  expect(isWhole()).toBe(true);
});

test("a small file is compared with Git's hash of it", async () => {
  const bytes = Buffer.from(original.get("config.json") as Buffer);
  bytes[bytes.length - 1] = 0x20;
  hub.behaviour.sends = new Map([["config.json", bytes]]);
  await expect(pull()).rejects.toThrow("config.json is not what the hub promises");
});

test("a file that never ends is left at its stated size", async () => {
  hub.behaviour.sends = new Map([[WEIGHTS, Buffer.concat([weights, Buffer.alloc(100_000)])]]);
  await expect(pull()).rejects.toThrow("longer than");
});

test("a part of another revision is not continued, and a new revision replaces the model", async () => {
  await interrupted();
  hub.revision = "2".repeat(40);
  await pull();
  expect(hub.ranges(WEIGHTS).at(-1)).toBeUndefined();
  expect(await pull()).toBeNull();
  hub.revision = "3".repeat(40);
  expect((await pull())?.manifest.source).toMatchObject({ revision: hub.revision });
  expect(listModels(dataDir)).toHaveLength(1);
  expect(isWhole()).toBe(true);
});

test("files that were lost are fetched again", async () => {
  await pull();
  rmSync(join(dataDir, "models/tiny", WEIGHTS));
  expect(isWhole()).toBe(false);
  await pull();
  expect(isWhole()).toBe(true);
});

test("a host with as many models as it may have gets the files of one of them again, and no further model", async () => {
  await pull();
  const found = findModel(dataDir, "tiny") ?? expect.unreachable();
  for (let at = 1; at < MAX_MODELS; at++) {
    const [name, folder] = [`other-${at}`, modelFolder(dataDir, `other-${at}`)];
    mkdirSync(folder);
    writeManifest(folder, { ...found.manifest, name });
  }
  rmSync(join(found.folder, WEIGHTS));
  await pull();
  expect(isWhole()).toBe(true);
  await expect(pull({ name: "one-more" })).rejects.toThrow(`the host has ${MAX_MODELS} models already`);
});

test("the token is sent to the hub, and not to where its files are", async () => {
  hub.behaviour.token = "hf_secret";
  await expect(pull()).rejects.toThrow("ROOST_MODEL_HUB_TOKEN");
  await expect(pull({ token: "wrong" })).rejects.toThrow("ROOST_MODEL_HUB_TOKEN may not see it");
  hub.asked.length = 0;
  await pull({ token: "hf_secret" });
  const at = (origin: string) => hub.asked.filter((one) => one.origin === origin).map((one) => one.authorization);
  expect(new Set(at(hub.url))).toEqual(new Set(["Bearer hf_secret"]));
  expect(new Set(at(hub.filesUrl))).toEqual(new Set([undefined]));
});

test("the list of files may have pages, and names that lead elsewhere are never looked at", async () => {
  const oid = "0".repeat(40);
  const names = ["../../evil.json", "/etc/passwd", "onnx/../../x", "onnx/model.onnx_data/../../x", "a\0b", ".hidden"];
  hub.behaviour.lists = names.map((path) => ({ type: "file", path, size: 1, oid }));
  hub.behaviour.page = 2;
  await pull();
  expect(isWhole()).toBe(true);
  expect(hub.asked.map(({ path }) => path).filter((path) => /evil|passwd|hidden/.test(path))).toEqual([]);
});

test("what is no text-generation model is refused before anything large is fetched", async () => {
  hub.files.delete(WEIGHTS);
  hub.files.delete("onnx/model_fp16.onnx");
  await expect(pull()).rejects.toThrow(/no onnx\/model_q4\.onnx .* expected a text-generation model/);
  hub.files.set(WEIGHTS, weights);
  await expect(pull({ dtype: "q4" })).rejects.toThrow("it has no onnx/model_q4.onnx; --dtype may be fp32");
  await expect(pull({ repository: "tests/other" })).rejects.toThrow("has no model tests/other");
  expect(hub.ranges(WEIGHTS)).toEqual([]);
  expect(unfinishedModels(dataDir)).toEqual([]);
});

test("more bytes than the disk has are refused", async () => {
  hub.behaviour.lists = [{ type: "file", path: "onnx/model.onnx_data", size: 2e11, oid: "0".repeat(40) }];
  await expect(pull()).rejects.toThrow(/needs 2000\d\d MB, .* free some space/);
});

test("answers of 429 and 503 are waited for, others are final", async () => {
  hub.behaviour.statuses = [429, 503];
  await pull();
  expect(isWhole()).toBe(true);
  rmSync(join(dataDir, "models"), { recursive: true });
  hub.behaviour.statuses = [410];
  await expect(pull()).rejects.toThrow("410");
});

test("the same model is not pulled twice at once", async () => {
  await whileHolding({ dataDir, name: "tiny" }, async () => {
    await expect(pull()).rejects.toThrow(BusyModel);
  });
  await pull();
  expect(isWhole()).toBe(true);
});

test("where one form of a model does not load, another one is pulled alone, without what is left of the first", async () => {
  hub.files.set(WEIGHTS, Buffer.from(weights).fill(7, 0, 1_000));
  hub.files.set(`${WEIGHTS}_data`, Buffer.alloc(1_000));
  await expect(pull({ dtype: "fp32" })).rejects.toThrow("it does not work here");
  expect(await pull({ dtype: "fp16" })).not.toBeNull();
  expect(readdirSync(join(modelFolder(dataDir, "tiny"), "onnx"))).toEqual(["model_fp16.onnx"]);
});

test("a model that does not load does not appear", async () => {
  const broken = Buffer.from(weights).fill(7, 0, 1_000);
  hub.files.set(WEIGHTS, broken);
  await expect(pull()).rejects.toThrow("it does not work here");
  expect(findModel(dataDir, "tiny")).toBeNull();
});
