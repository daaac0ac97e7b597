import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import type { Answer, Operation } from "../../../clients/typescript/src/index.ts";
import { BUNDLE_BOUNDS, MANIFEST_FILE, parseManifest, SKILLS_PART } from "../../bundles/format.ts";
import { readTar, TarError } from "../../bundles/tar.ts";
import { MAX_ARCHIVE_BYTES } from "../../http/bounds.ts";
import { describeSystemError } from "../../lib/system-error.ts";
import { OUTGOING } from "../../limits/outgoing.ts";
import { Failure, UsageError } from "../failure.ts";
import { colours, mayDraw, note, printJson, say, shortSize, streamBytes } from "../output.ts";
import { createProgress, type Progress } from "../progress.ts";
import { shellWord } from "../shell-word.ts";
import { openClient, type ServerOptions } from "./credentials.ts";
import { AGENT, findAgent, findInstance, INSTANCE, idsOf } from "./find.ts";
import { packOpenClaw, skillInFolder } from "./openclaw-folder.ts";

/** The server packs a bundle before it sends any of it, and unpacks one before it answers. */
const { fileDeadlineMs: deadlineMs } = OUTGOING.command;
type ImportRecord = Answer<Operation<"post", `${typeof INSTANCE}/import`>>;

interface ExportOptions extends ServerOptions {
  history?: true;
  output?: string;
  force?: true;
  json?: true;
}

/** `roost agent export INSTANCE AGENT`: into a file that only its owner can read, whole or not at all. */
export async function exportAgent(instance: string, given: string, options: ExportOptions): Promise<void> {
  const client = openClient(options);
  const agent = await findAgent(client, instance, given);
  const file = options.output ?? `${safeName(agent.slug)}.tar.gz`;
  const isPiped = file === "-";
  if (isPiped && mayDraw())
    throw new UsageError("a bundle is not for a terminal", "give a file with --output, or a pipe");
  if (!isPiped && !options.force && existsSync(file))
    throw new Failure(`${file} exists already`, "--force replaces it");
  const history = options.history === true ? "true" : "false";
  const progress = createProgress("Exporting", { quiet: options.json === true });
  // Nothing comes before the server has packed all of it.
  progress.show(0, 1);
  const [bytes, leftOut] = await client
    .open("get", `${AGENT}/bundle`, { path: idsOf(agent), query: { history }, deadlineMs })
    .then((answer) => {
      const [whole, beginning] = bundleIn(answer).tee();
      const bundle = watched(whole, Number(answer.headers.get("content-length")), progress);
      return Promise.all([isPiped ? pipe(bundle) : save(bundle, file), leftOutOf(beginning)]);
    })
    .finally(progress.end);
  if (options.json && !isPiped) {
    printJson({ file, bytes, leftOut });
    return;
  }
  if (!isPiped) say(`Exported ${agent.displayName} to ${file} (${shortSize(bytes)}).`);
  for (const what of leftOut) tell("left out", what, "");
}

/** What the server could not put into a bundle, by its manifest, which comes first. */
async function leftOutOf(bundle: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<readonly string[]> {
  try {
    for await (const entry of readTar(bundle.pipeThrough(unzip()), BUNDLE_BOUNDS.headers)) {
      if (entry.name !== MANIFEST_FILE) break;
      return parseManifest(await entry.bytes(BUNDLE_BOUNDS.manifestBytes)).manifest.leftOut;
    }
  } catch {
    // Whoever imports it says what is wrong with it.
  }
  return [];
}

const unzip = () => new DecompressionStream("gzip");

function bundleIn(answer: Response): ReadableStream<Uint8Array<ArrayBuffer>> {
  if (answer.headers.get("content-type") === "application/gzip" && answer.body !== null) return answer.body;
  throw new Failure("the server answered without a bundle", "is it a Roost server?");
}

/** A server names the agent, but not where a file goes. */
const safeName = (slug: string): string => (/^[a-z0-9][a-z0-9-]{0,62}$/.test(slug) ? slug : "agent");

/** The same bytes, of `total`. */
async function* watched(bundle: AsyncIterable<Uint8Array>, total: number, progress: Progress) {
  let done = 0;
  for await (const chunk of bundle) {
    done += chunk.byteLength;
    progress.show(done, Math.max(done, total));
    yield chunk;
  }
}

async function pipe(bundle: AsyncIterable<Uint8Array>): Promise<number> {
  let bytes = 0;
  for await (const chunk of bundle) {
    bytes += chunk.byteLength;
    streamBytes(chunk);
  }
  return bytes;
}

async function save(bundle: AsyncIterable<Uint8Array>, path: string): Promise<number> {
  const temporary = `${path}.${process.pid}.unfinished`;
  let bytes = 0;
  try {
    const file = openSync(temporary, "wx", 0o600);
    try {
      for await (const chunk of bundle) {
        for (let at = 0; at < chunk.byteLength; ) at += writeSync(file, chunk, at);
        bytes += chunk.byteLength;
      }
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw describeSystemError(`${path} cannot be written`, error);
  }
  return bytes;
}

interface ImportOptions extends ServerOptions {
  name?: string;
  json?: true;
}

/** `roost agent import INSTANCE FILE|FOLDER`: a bundle, or a folder of OpenClaw. */
export async function importAgent(instance: string, from: string, options: ImportOptions): Promise<void> {
  const progress = createProgress("Importing", { quiet: options.json === true });
  const client = openClient(options, { onSent: progress.show });
  const bytes = isFolder(from) ? packOpenClaw(from) : readBundle(from);
  if (bytes.byteLength > MAX_ARCHIVE_BYTES) {
    throw new Failure(
      `${from} is too long: a bundle has at most ${shortSize(MAX_ARCHIVE_BYTES)}`,
      "export the agent without its history, or with fewer files",
    );
  }
  const imported = await client
    .post(`${INSTANCE}/import`, {
      path: { instanceId: await findInstance(client, instance) },
      query: { name: options.name },
      body: bytes,
      deadlineMs,
    })
    .finally(progress.end);
  if (options.json) printJson(imported);
  else showImported(imported, instance, from);
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch (error) {
    throw describeSystemError(`${path} cannot be read`, error);
  }
}

function readBundle(path: string): Uint8Array<ArrayBuffer> {
  try {
    return readFileSync(path);
  } catch (error) {
    throw describeSystemError(`${path} cannot be read`, error);
  }
}

/** What arrived, and then what its owner should look at. */
function showImported({ displayName, slug, agentId, imported, review }: ImportRecord, instance: string, from: string) {
  const home = shellWord(instance);
  const messages = imported.messages === 0 ? "" : `, ${imported.messages} messages`;
  say(`Imported ${displayName} (${slug})  `, colours.dim(agentId), `  ${imported.files} files${messages}`);
  const { skills, policies, rules, model, schedules, heartbeat, leftOut } = review;
  for (const { name, version, state, requires, missingSecrets, missingTools } of skills) {
    if (state === "installed") continue;
    const hosts = requires.hosts.length === 0 ? "" : `, which opens ${requires.hosts.join(", ")}`;
    const source = state === "catalog" ? "" : ` --from ${shellWord(from)}`;
    const how =
      state === "different"
        ? "the instance has another skill of this name"
        : `not installed${hosts}: roost skill install ${home} ${shellWord(name)}${source}`;
    tell("skill", `${name} ${version}`, how);
    for (const secret of missingSecrets)
      tell("secret", secret, `not set: roost secret set ${home} ${shellWord(secret)}`);
    if (missingTools.length > 0) tell("tools", missingTools.join(", "), "this host does not have them");
  }
  for (const { tool, policy } of policies) {
    tell(
      "policy",
      `${tool}=${policy}`,
      `off: roost agent edit ${home} ${slug} --tool ${shellWord(`${tool}=${policy}`)}`,
    );
  }
  for (const { tool, host, method } of rules) {
    tell("rule", [tool, method, host].filter((word) => word !== null).join(" "), "off: it will be asked again");
  }
  if (model !== null) tell("model", model, "not offered here: the agent has the default one");
  for (const { name } of schedules) {
    tell("schedule", name, `off: roost schedule on ${home} ${slug} ${shellWord(name)}`);
  }
  if (heartbeat) tell("schedule", "Heartbeat", `off: roost schedule on ${home} ${slug} Heartbeat`);
  for (const what of leftOut) tell("left out", what, "");
}

function tell(kind: string, what: string, why: string): void {
  note(colours.yellow(kind.padEnd(8)), `  ${what}${why === "" ? "" : `  ${why}`}`);
}

/** The files of one skill of a bundle, or of a folder. Throws if it is not in there. */
export async function skillIn(from: string, skill: string): Promise<Record<string, string>> {
  const inFolder = isFolder(from);
  const files = inFolder ? skillInFolder(from, skill) : await skillInBundle(readBundle(from), skill);
  if (files !== null) return files;
  const below = `${skill}/SKILL.md`;
  throw new Failure(
    `there is no skill ${skill} in ${from}`,
    inFolder ? `expected SKILL.md, ${below} or skills/${below} in it` : "importing the bundle lists its skills",
  );
}

async function skillInBundle(bundle: Uint8Array<ArrayBuffer>, skill: string): Promise<Record<string, string> | null> {
  const prefix = `${SKILLS_PART}${skill}/`;
  const files: [string, string][] = [];
  try {
    for await (const entry of readTar(new Blob([bundle]).stream().pipeThrough(unzip()), BUNDLE_BOUNDS.headers)) {
      if (!entry.name.startsWith(prefix)) continue;
      const bytes = await entry.bytes(BUNDLE_BOUNDS.fileBytes);
      files.push([entry.name.slice(prefix.length), new TextDecoder("utf-8", { fatal: true }).decode(bytes)]);
    }
  } catch (cause) {
    const why = cause instanceof TarError ? cause.message : "it is damaged, or no bundle";
    throw new Failure(`the bundle cannot be read: ${why}`, null, { cause });
  }
  return files.length === 0 ? null : Object.fromEntries(files);
}
