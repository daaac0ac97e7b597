import { afterAll, beforeAll, expect, test } from "bun:test";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type AddedEngineOptions, createAddedEngine } from "../../src/models/added.ts";
import { messagesIn, type OutputForm } from "../../src/models/engine.ts";
import type { Dtype } from "../../src/models/store/dtypes.ts";
import { importModel } from "../../src/models/store/import.ts";
import { readLoaded } from "../../src/models/store/loaded.ts";
import { readManifest, writeManifest } from "../../src/models/store/manifest.ts";
import { findModel } from "../../src/models/store/store.ts";
import { chat, collect, createLogbook, never, processCommand, textOf } from "./local-setting.ts";

const dataDir = mkdtempSync(join(tmpdir(), "roost-added-"));
const TINY = resolve(import.meta.dir, "tiny-model");
const MIB = 1024 * 1024;
afterAll(() => rmSync(dataDir, { recursive: true, force: true }));

const adding = (name: string, folder: string, dtype: Dtype | null = null) =>
  importModel({
    dataDir,
    name,
    folder,
    dtype,
    cacheDir: join(dataDir, "cache"),
    command: processCommand,
    onProgress() {},
  });

/** The same model under three names, each said to take 100 MiB. */
const NAMES = ["one", "two", "three"];
beforeAll(async () => {
  await adding("one", TINY);
  for (const name of NAMES) {
    const folder = join(dataDir, "models", name);
    if (name !== "one") cpSync(join(dataDir, "models/one"), folder, { recursive: true });
    const manifest = readManifest(join(dataDir, "models/one"));
    if (manifest !== null) writeManifest(folder, { ...manifest, name, memoryBytes: 100 * MIB });
  }
});

function open(options: Partial<AddedEngineOptions> = {}) {
  const logbook = createLogbook();
  const engine = createAddedEngine({
    dataDir,
    cacheDir: join(dataDir, "cache"),
    memoryBytes: 250 * MIB,
    idleMs: 60_000,
    log: logbook.log,
    command: processCommand,
    seed: 7,
    ...options,
  });
  const ask = (name: string, more = {}, signal = never) =>
    engine.stream(chat("Hello there", { model: `local:${name}`, maxTokens: 12, ...more }), signal);
  const answer = async (name: string, more = {}) => textOf(await collect(ask(name, more)));
  return { engine, logbook, ask, answer };
}

test("a model answers by its own template, and the log says when it was loaded", async () => {
  const { engine, logbook, ask } = open();
  const events = await collect(ask("one"));
  expect(textOf(events)).toMatch(/^[a-z ]+$/);
  // `<|start|>system\n…<|end|>\n<|start|>user\nHello there<|end|>\n<|start|>assistant\n`, a token for each byte.
  const bytes = messagesIn(chat("Hello there").messages).reduce(
    (sum, { role, content }) => sum + role.length + content.length + 4,
    0,
  );
  expect(events).toContainEqual({
    type: "usage",
    promptTokens: bytes + 11,
    completionTokens: expect.any(Number),
    cachedTokens: 0,
  });
  expect(logbook.lines).toContainEqual({
    message: "local model loaded",
    fields: { model: "one", stepper: "transformers", sinceStartMs: expect.any(Number) },
  });
  await engine.close();
});

test("the next turn of a conversation rewinds the cache, and is answered like a new one", async () => {
  const { engine, answer } = open();
  const [a, b] = [{ seed: 1 }, chat("And you?")];
  const long = { ...b, messages: [...chat("Hello there").messages, ...b.messages.slice(1)], temperature: 0 };
  await answer("one", a);
  const continued = await answer("one", { ...long, model: "local:one" });
  await engine.close();
  const fresh = open();
  expect(await fresh.answer("one", { ...long, model: "local:one" })).toBe(continued);
  await fresh.engine.close();
});

test("several models stay loaded within the budget; for one more, the least recently used is unloaded", async () => {
  const { engine, logbook, answer } = open();
  await answer("one");
  await answer("two");
  expect(readLoaded(dataDir).sort()).toEqual(["one", "two"]);
  await answer("one");
  await answer("three");
  expect(readLoaded(dataDir).sort()).toEqual(["one", "three"]);
  await answer("one");
  const loads = logbook.lines.filter(({ message }) => message === "local model loaded");
  expect(loads.map(({ fields }) => fields.model)).toEqual(["one", "two", "three"]);
  await engine.close();
  expect(readLoaded(dataDir)).toEqual([]);
});

test("where it cannot be written which models are loaded, they answer all the same, and the log says so", async () => {
  const path = join(dataDir, "models/.loaded.json.tmp");
  mkdirSync(path);
  const { engine, logbook, answer } = open();
  expect(await answer("one")).not.toBe("");
  expect(await answer("one")).not.toBe("");
  expect(logbook.lines.filter(({ message }) => message === "model process started").length).toBe(1);
  await engine.close();
  expect(logbook.lines.map(({ message }) => message).join()).toContain("could not be written");
  rmSync(path, { recursive: true });
});

test("a model answers also where its folder has weights of another form", async () => {
  const path = join(dataDir, "models/one/onnx/model_q4.onnx_data");
  writeFileSync(path, "");
  const { engine, answer } = open();
  expect(await answer("one")).not.toBe("");
  await engine.close();
  rmSync(path);
});

test("a model that is answering is not unloaded: who needs its memory waits until it is done", async () => {
  const { engine, ask, answer } = open({ memoryBytes: 150 * MIB });
  const long = ask("one", { maxTokens: 300 })[Symbol.asyncIterator]();
  await long.next();
  let isDone = false;
  const waiting = answer("two").then((text) => {
    expect(isDone).toBe(true);
    return text;
  });
  while (!(await long.next()).done);
  isDone = true;
  expect(await waiting).not.toBe("");
  expect(readLoaded(dataDir)).toEqual(["two"]);
  await engine.close();
});

test("a request that gives up while it waits for memory leaves nothing behind", async () => {
  const { engine, ask, answer } = open({ memoryBytes: 150 * MIB });
  const long = ask("one", { maxTokens: 300 })[Symbol.asyncIterator]();
  await long.next();
  const abort = new AbortController();
  const given = collect(ask("two", {}, abort.signal)).catch((error) => error);
  abort.abort(new Error("the user left"));
  expect(await given).toMatchObject({ message: "the user left" });
  while (!(await long.next()).done);
  expect(await answer("three")).not.toBe("");
  await engine.close();
});

test("a model that cannot fit is refused at once, and the log's detail names the setting", async () => {
  const { engine, ask } = open({ memoryBytes: 99 * MIB });
  await expect(collect(ask("one"))).rejects.toMatchObject({
    kind: "unavailable",
    message: expect.stringContaining("needs more memory than this host gives models"),
    detail: "it needs 100 MiB, ROOST_MODEL_MEMORY allows 99",
  });
  await engine.close();
});

test("a model whose files were changed or are missing fails its own requests only", async () => {
  const { engine, ask, answer } = open();
  const broken = join(dataDir, "models/two/onnx/model.onnx");
  cpSync(join(dataDir, "models/two"), join(dataDir, "kept"), { recursive: true });
  const bytes = await Bun.file(broken).bytes();
  bytes[5_000] = (bytes[5_000] ?? 0) ^ 1;
  writeFileSync(broken, bytes);
  await expect(collect(ask("two"))).rejects.toMatchObject({
    kind: "unavailable",
    message: expect.stringContaining("local:two could not be loaded"),
    detail: expect.stringContaining("was changed since it was added"),
  });
  rmSync(broken);
  await expect(collect(ask("two"))).rejects.toMatchObject({ detail: expect.stringContaining("onnx/model.onnx") });
  expect(await answer("one")).not.toBe("");
  rmSync(join(dataDir, "models/two"), { recursive: true });
  cpSync(join(dataDir, "kept"), join(dataDir, "models/two"), { recursive: true });
  await engine.close();
});

test("a model that does not load in time is given up", async () => {
  const { engine, ask } = open({ command: ["sleep", "60"], silentMs: 200 });
  await expect(collect(ask("one"))).rejects.toMatchObject({ kind: "silent" });
  await engine.close();
});

test("a model that is added, replaced or removed counts for the next request", async () => {
  const { engine, logbook, ask, answer } = open();
  await expect(collect(ask("late"))).rejects.toMatchObject({
    kind: "unknown_model",
    message: expect.stringMatching(/no model "local:late" on this host.*"local:one"/),
  });
  await adding("late", TINY);
  expect(await answer("late")).not.toBe("");
  const found = findModel(dataDir, "late");
  if (found !== null) writeManifest(found.folder, { ...found.manifest, addedAt: "2026-01-01T00:00:00.000Z" });
  expect(await answer("late")).not.toBe("");
  expect(logbook.lines.filter(({ message }) => message === "local model loaded")).toHaveLength(2);
  rmSync(join(dataDir, "models/late"), { recursive: true });
  await expect(collect(ask("late"))).rejects.toMatchObject({ kind: "unknown_model" });
  await engine.close();
});

test("JSON of a schema is written by any model", async () => {
  const { engine, answer } = open();
  const schema = {
    type: "object",
    properties: { ok: { type: "boolean" } },
    required: ["ok"],
    additionalProperties: false,
  };
  const text = await answer("one", { output: { name: "ok", schema }, maxTokens: 100 });
  expect(JSON.parse(text)).toEqual({ ok: expect.any(Boolean) });
  await engine.close();
});

const NOW = {
  name: "now",
  description: "Tells the time",
  inputSchema: { type: "object", properties: {}, additionalProperties: false },
};

/** The tiny model, with a template by which a call begins with this. */
async function addCalling(name: string, opening: string) {
  const folder = join(dataDir, `${name}-files`);
  cpSync(TINY, folder, { recursive: true });
  const config = await Bun.file(join(folder, "tokenizer_config.json")).json();
  const template: string = config.chat_template;
  config.chat_template = `{% for t in tools or [] %}{{ t | tojson }}{% endfor %}${template.replace(
    "{{ m['content'] }}",
    "{{ m['content'] }}{% for c in m.tool_calls or [] %}" +
      `${opening}{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}{% endfor %}`,
  )}`;
  writeFileSync(join(folder, "tokenizer_config.json"), JSON.stringify(config));
  return adding(name, folder);
}

test("a model whose template has a form for calls calls tools, and is told their results", async () => {
  const { engine, ask, answer } = open();
  const request = { tools: [NOW], temperature: 0, maxTokens: 100 };
  // Its weights are random, so what it happens to write must begin a call.
  await addCalling("talking", "#");
  const [opening = ""] = await answer("talking", request);
  const { manifest } = await addCalling("calling", opening);
  expect(manifest.callsTools).toBe(true);
  expect(engine.abilities("local:calling").tools).toBe(true);
  const events = await collect(ask("calling", request));
  const calls = events.flatMap((event) => (event.type === "tool_call" ? [event.call] : []));
  expect(calls).toEqual([{ id: expect.stringMatching(/^call_/), name: "now", input: "{}" }]);
  expect(events.at(-1)).toEqual({ type: "finish", reason: "tool_calls" });
  await expect(collect(ask("calling", { ...request, maxTokens: 10 }))).rejects.toMatchObject({
    kind: "broken",
    message: expect.stringContaining("its limit of 10 tokens within a call of a tool, so nothing was called"),
  });

  const promptTokens = async (content: string) => {
    const asked = chat("What time is it?", { model: "local:calling", tools: [NOW], maxTokens: 1 });
    const [call] = calls;
    const made = call === undefined ? [] : [call];
    const answers = [
      { role: "assistant" as const, content: "", toolCalls: made },
      { role: "tool" as const, toolCallId: call?.id ?? "", content },
    ];
    const told = await collect(engine.stream({ ...asked, messages: [...asked.messages, ...answers] }, never));
    return told.flatMap((event) => (event.type === "usage" ? [event.promptTokens] : []))[0] ?? 0;
  };
  expect((await promptTokens("14:30")) - (await promptTokens(""))).toBe(5);
  await engine.close();
});

test("where a model says nothing after a call, what came of the call is told", async () => {
  const { manifest } = await addCalling("silent", "#");
  const { engine, ask } = open({ command: [process.execPath, join(import.meta.dir, "silent-process.ts")] });
  const call = { id: "c1", name: "write_file", input: JSON.stringify({ name: "a.md", text: "- milk\n- eggs" }) };
  const messages = [
    ...chat("Write a list.").messages,
    { role: "assistant" as const, content: "", toolCalls: [call] },
    { role: "tool" as const, toolCallId: "c1", content: "Created a.md, 13 bytes." },
  ];
  const events = await collect(ask(manifest.name, { messages, tools: [NOW] }));
  expect(events.map(({ type }) => type)).toEqual(["text", "usage", "finish"]);
  expect(textOf(events)).toBe("I have written this into a.md:\n\n- milk\n- eggs");
  expect(textOf(await collect(ask(manifest.name, { tools: [NOW] })))).toBe("");
  await engine.close();
});

const FORM: OutputForm = { name: "done", schema: { type: "boolean" }, strict: true };

test("what was asked to be shown is shown as it is, not as the model retells it", async () => {
  const { manifest } = await addCalling("retelling", "#");
  const { engine, ask } = open();
  const asked = async (question: string, name: string, input: object, content: string, output?: OutputForm) => {
    const call = { id: "c1", name, input: JSON.stringify(input) };
    const messages = [
      ...chat(question).messages,
      { role: "assistant" as const, content: "", toolCalls: [call] },
      { role: "tool" as const, toolCallId: "c1", content },
    ];
    return textOf(
      await collect(ask(manifest.name, { messages, tools: [NOW], maxTokens: 4, ...(output && { output }) })),
    );
  };
  expect(await asked("Read me rain.md.", "read_file", { name: "rain.md" }, "Drip,\ndrop.")).toBe(
    "rain.md:\n\nDrip,\ndrop.",
  );
  expect(await asked("Which files do you have?", "list_files", {}, "rain.md (12 bytes)")).toContain("rain.md");
  // What a program wants as JSON is JSON.
  expect(await asked("Read me rain.md.", "read_file", { name: "rain.md" }, "Drip,\ndrop.", FORM)).not.toContain("Drip");
  expect(await asked("How long is rain.md?", "read_file", { name: "rain.md" }, "Drip,\ndrop.")).not.toContain("Drip");
  await engine.close();
});

test("a model that was added before calls were looked for calls none", async () => {
  const { engine, ask } = open();
  const found = findModel(dataDir, "one");
  const { callsTools: _, ...before } = found?.manifest ?? {};
  writeFileSync(join(dataDir, "models/one/roost.json"), JSON.stringify(before));
  expect(engine.abilities("local:one").tools).toBe(false);
  expect(textOf(await collect(ask("one", { tools: [NOW] })))).not.toBe("");
  await engine.close();
});

test("the same weights write the same on both paths, where their graph can share its cache and where it cannot", async () => {
  const { manifest } = await adding("shared", TINY, "fp16");
  expect(manifest.fast).toEqual({
    positionIds: true,
    logitsToKeep: false,
    shape: { layers: 2, kvHeads: 2, headDim: 16, vocabulary: 258 },
  });
  const { engine, logbook, answer } = open({ memoryBytes: 2_000 * MIB });
  // Longer than one chunk of a prompt, and two turns.
  const question = chat("word ".repeat(40), { temperature: 0, maxTokens: 40 });
  const turns = [
    { ...question, model: "" },
    { ...question, messages: [...question.messages, ...chat("And?").messages.slice(1)] },
  ];
  for (const turn of turns) {
    const one = await answer("one", { ...turn, model: "local:one" });
    expect(await answer("shared", { ...turn, model: "local:shared" })).toBe(one);
  }
  const steppers = logbook.lines.flatMap(({ fields }) => fields.stepper ?? []);
  expect(steppers).toEqual(["transformers", "ffi"]);
  await engine.close();
});

test("a copy of the embedded model runs on the fast path, and writes what the embedded one writes", async () => {
  const folder = join(dataDir, "copy");
  symlinkSync(resolve(import.meta.dir, "../../models/smollm2-135m-instruct"), folder);
  const { manifest } = await adding("copy", folder);
  expect(manifest.fast).toEqual({
    positionIds: false,
    logitsToKeep: true,
    shape: { layers: 30, kvHeads: 3, headDim: 64, vocabulary: 49_152 },
  });
  const { engine, logbook, answer } = open({ memoryBytes: 2_000 * MIB });
  const { openLocalEngine } = await import("./local-setting.ts");
  const embedded = openLocalEngine({ guarded: false });
  const request = { temperature: 0, maxTokens: 24 };
  const expected = textOf(await collect(embedded.engine.stream(chat("Hello there", request), never)));
  expect(await answer("copy", request)).toBe(expected);
  expect(logbook.lines).toContainEqual(
    expect.objectContaining({ fields: expect.objectContaining({ stepper: "ffi" }) }),
  );
  await embedded.close();
  await engine.close();
});
