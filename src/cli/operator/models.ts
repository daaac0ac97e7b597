import { countModelUsers } from "../../agents/model-users.ts";
import type { Config } from "../../config.ts";
import { isLocal, LOCAL_PREFIX, nameOf } from "../../lib/model-name.ts";
import { LOCAL_EMBEDDER, LOCAL_MODEL } from "../../models/local-models.ts";
import { type Added, BusyModel } from "../../models/store/add.ts";
import type { Dtype } from "../../models/store/dtypes.ts";
import { createHub, HubError, REPOSITORY } from "../../models/store/hub.ts";
import { importModel } from "../../models/store/import.ts";
import { UnusableModel } from "../../models/store/inspect.ts";
import { readLoaded } from "../../models/store/loaded.ts";
import { type Manifest, sizeOf } from "../../models/store/manifest.ts";
import { MODEL_NAME, NAME_FORM, suggestedName } from "../../models/store/names.ts";
import { pullModel } from "../../models/store/pull.ts";
import { removeModel } from "../../models/store/remove.ts";
import { findModel, listModels, missingFiles, modelFolder, unfinishedModels } from "../../models/store/store.ts";
import { serverOf } from "../../storage/lock.ts";
import { Failure, UsageError } from "../failure.ts";
import { colours, note, printJson, printTable, say, shortSize } from "../output.ts";
import { createProgress } from "../progress.ts";
import { roost } from "./advice.ts";
import { type DataOptions, noteOwner, withData } from "./data-folder.ts";

type JsonOptions = DataOptions & { json?: true };
type AddOptions = JsonOptions & { name?: string; dtype?: Dtype };

/** `roost models list`: the embedded ones and those that were added. */
export function listAllModels(options: JsonOptions): Promise<void> {
  return withData(options, "refuse", ({ config, store }) => {
    const { dataDir } = config;
    const loaded = serverOf(dataDir) === null ? [] : readLoaded(dataDir);
    const users = countModelUsers(store.db);
    const usersOf = (model: string) => (users.get(model) ?? 0) + (config.model === model ? (users.get(null) ?? 0) : 0);
    const added = listModels(dataDir).map((model) => {
      const { manifest } = model;
      const name = LOCAL_PREFIX + manifest.name;
      return {
        name,
        kind: "text",
        architecture: manifest.architecture,
        dtype: manifest.dtype,
        size: sizeOf(manifest),
        memory: manifest.memoryBytes,
        contextTokens: manifest.contextTokens,
        fast: manifest.fast !== null,
        callsTools: manifest.callsTools === true,
        source: sourceOf(manifest),
        license: manifest.license,
        loaded: loaded.includes(manifest.name),
        agents: usersOf(name),
        missing: missingFiles(model),
      };
    });
    const unfinished = unfinishedModels(dataDir);
    if (options.json) {
      printJson({ embedded: EMBEDDED.map((one) => ({ ...one, agents: usersOf(one.name) })), added, unfinished });
      return;
    }
    printTable(
      ["NAME", "KIND", "SIZE", "AGENTS", "STATE", "SOURCE"],
      [
        ...EMBEDDED.map(({ name, kind }) => [name, kind, "-", String(usersOf(name)), "embedded", "roost"]),
        ...added.map(({ name, kind, size, agents, missing, source, ...one }) => [
          name,
          kind,
          shortSize(size),
          String(agents),
          missing.length > 0 ? "files missing" : one.loaded ? "loaded" : "ready",
          source,
        ]),
        ...unfinished.map((name) => [LOCAL_PREFIX + name, "text", "-", "-", "unfinished", "-"]),
      ],
      "",
      { leaveOut: ["SOURCE", "KIND"], shorten: ["NAME"] },
    );
  });
}

const EMBEDDED = [
  { name: LOCAL_MODEL, kind: "text" },
  { name: LOCAL_EMBEDDER, kind: "vectors" },
];

const sourceOf = ({ source }: Manifest): string =>
  "folder" in source ? source.folder : `${source.repository}@${source.revision.slice(0, 12)}`;

/** `roost models import FOLDER`. */
export async function importFolder(folder: string, options: AddOptions): Promise<void> {
  const { config, name } = await prepare(folder, options);
  const progress = createProgress("Copying", { quiet: options.json === true });
  const added = await importModel({
    ...placeOf(config, name),
    folder,
    dtype: options.dtype ?? null,
    onProgress: progress.show,
  })
    .catch(explained(folder))
    .finally(progress.end);
  await tell(added, options);
}

/** `roost models pull REPOSITORY`. */
export async function pullFromHub(repository: string, options: AddOptions): Promise<void> {
  if (!REPOSITORY.test(repository)) {
    throw new UsageError(`"${repository}" is no model of a hub`, "expected organisation/name, as in its address");
  }
  const { config, name } = await prepare(repository, options);
  const { modelHub: hubUrl, modelHubToken: token } = config;
  const interrupted = new AbortController();
  const progress = createProgress(`Fetching ${name}`, { quiet: options.json === true, lines: true });
  const onSignal = () => interrupted.abort();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, onSignal);
  try {
    const added = await pullModel({
      ...placeOf(config, name),
      hub: createHub({ url: hubUrl, token }),
      hubUrl,
      repository,
      dtype: options.dtype ?? null,
      signal: interrupted.signal,
      onProgress: progress.show,
      onRetry: (reason) => note(`${reason}; trying again`),
    }).catch(explained(repository));
    progress.end();
    if (added !== null) await tell(added, options);
    else if (options.json) printJson(shown(findModel(config.dataDir, name)?.manifest));
    else say(`${LOCAL_PREFIX}${name} is there already, as new as on the hub.`);
  } catch (error) {
    progress.end();
    if (!interrupted.signal.aborted) throw error;
    throw new Failure(`${repository} is not whole yet`, "run the same command again: it goes on from here");
  }
}

/** `roost models remove NAME`: not while agents use it, except with `--force`. */
export function removeByName(given: string, options: JsonOptions & { force?: true }): Promise<void> {
  return withData(options, "refuse", async ({ config, store, audit }) => {
    const { dataDir } = config;
    const name = isLocal(given) ? nameOf(given) : given;
    const model = LOCAL_PREFIX + name;
    if (model === LOCAL_MODEL || model === LOCAL_EMBEDDER) throw new Failure(`${model} is a part of Roost`);
    const isUnfinished = unfinishedModels(dataDir).includes(name);
    if (findModel(dataDir, name) === null && !isUnfinished) {
      throw new Failure(`there is no model ${name} to remove`, `to list models: ${roost("models list", dataDir)}`);
    }
    const users = countModelUsers(store.db);
    const agents = users.get(model) ?? 0;
    if (!options.force && (agents > 0 || config.model === model)) {
      const who = config.model === model ? "the host's default model, ROOST_MODEL" : `used by ${agentsOf(agents)}`;
      throw new Failure(`${model} is ${who}`, "give them another first, or use --force: their runs then fail");
    }
    await removeModel({ dataDir, name }).catch(explained(name, "removed"));
    audit.append({ actor: "operator", action: "model.remove", subject: model, detail: { agents } });
    if (options.json) printJson({ name: model, removed: true, agents });
    else say(`Removed ${model}.`);
  });
}

const agentsOf = (count: number): string => (count === 1 ? "one agent" : `${count} agents`);

/** Makes sure that the data folder is one, and chooses the model's name. */
async function prepare(from: string, options: AddOptions): Promise<{ config: Config; name: string }> {
  const name = options.name ?? suggestedName(from);
  if (!MODEL_NAME.test(name)) {
    throw new UsageError(`"${name}" cannot be a model's name`, `choose one with --name: ${NAME_FORM}`);
  }
  const model = LOCAL_PREFIX + name;
  if (model === LOCAL_MODEL || model === LOCAL_EMBEDDER) {
    throw new UsageError(`${model} is embedded already`, "choose another name with --name");
  }
  const config = await withData(options, "create", ({ config }) => config);
  return { config, name };
}

const placeOf = ({ dataDir }: Config, name: string) => ({ dataDir, name, cacheDir: `${dataDir}/cache` });

const explained =
  (what: string, done = "added") =>
  (error: unknown): never => {
    const isKnown = error instanceof HubError || error instanceof UnusableModel || error instanceof BusyModel;
    throw isKnown ? new Failure(`${what} cannot be ${done}: ${error.message}`, null, { cause: error }) : error;
  };

const shown = (manifest: Manifest | undefined) =>
  manifest && { ...manifest, name: LOCAL_PREFIX + manifest.name, fast: manifest.fast !== null };

async function tell({ manifest, text, chatTemplate }: Added, options: AddOptions): Promise<void> {
  const name = LOCAL_PREFIX + manifest.name;
  const { architecture, dtype, contextTokens, memoryBytes, fast, license, callsTools } = manifest;
  await withData(options, "refuse", ({ audit, config: { dataDir } }) => {
    audit.append({ actor: "operator", action: "model.add", subject: name, detail: { source: sourceOf(manifest) } });
    noteOwner(dataDir, modelFolder(dataDir, manifest.name));
  });
  if (options.json) {
    printJson({ ...shown(manifest), trial: text });
    return;
  }
  say(
    colours.green("Ready"),
    `: ${name}, a ${architecture} (${dtype}, ${shortSize(sizeOf(manifest))}, ${contextTokens} tokens of context, about ` +
      `${shortSize(memoryBytes)} of memory${callsTools ? ", calls tools" : ""}${license === null ? "" : `, license ${license}`}).`,
  );
  say(`On trial it wrote: ${text.trim() === "" ? "nothing" : text}`);
  if (!callsTools) say("Its chat template has no form for tools that Roost can read: agents only talk with it.");
  if (fast === null) say("Its graph has no shared cache: it runs on transformers.js, several times slower.");
  if (!chatTemplate) say("It has no chat template: it was not trained for conversations, and gets plain text.");
  say(`An agent uses it by its name: roost agent edit INSTANCE AGENT --model ${name}`);
}
