import { readFileSync } from "node:fs";
import { everyInWords } from "../../lib/every-in-words.ts";
import { describeSystemError } from "../../lib/system-error.ts";
import type { Policy } from "../../tools/tool.ts";
import { Failure, UsageError } from "../failure.ts";
import { colours, printFields, printJson, printTable, say, shortTime } from "../output.ts";
import { shellWord } from "../shell-word.ts";
import { isRefusal, type Records } from "./client.ts";
import { openClient, type ServerOptions } from "./credentials.ts";
import { AGENT, AGENTS, type AgentRecord, findAgent, findInstance } from "./find.ts";
import { confirm } from "./prompt.ts";

interface Options extends ServerOptions {
  json?: true;
}

interface AgentOptions extends Options {
  name?: string;
  slug?: string;
  displayName?: string;
  /** `default` for the host's default. */
  model?: string;
  /** Name of a tool → what the owner says about it. */
  tool?: Record<string, Policy | null>;
  /** Milliseconds. */
  heartbeat?: number | "off";
  activeHours?: { from: string; to: string };
  timeZone?: string;
  /** Name in the workspace → local path. */
  file?: Record<string, string>;
}

/** `roost agent list INSTANCE`: oldest first. */
export async function listAgents(instance: string, options: Options): Promise<void> {
  const client = openClient(options);
  const instanceId = await findInstance(client, instance);
  const agents = await Array.fromAsync(client.all(AGENTS, { path: { instanceId } }));
  if (options.json) printJson(agents);
  else
    printTable(
      ["SLUG", "NAME", "MODEL", "FILES", "ID"],
      agents.map(({ slug, displayName, model, files, agentId }) => [
        slug,
        displayName,
        modelsOf(model),
        files.join(" "),
        agentId,
      ]),
      `There are no agents. To create one: roost agent create ${shellWord(instance)} NAME`,
      { leaveOut: ["FILES", "MODEL"], shorten: ["SLUG", "NAME"] },
    );
}

/** In the order in which they are tried. */
const modelsOf = (model: string | readonly string[] | null): string =>
  model === null ? "default" : [model].flat().join(", ");

/** As `modelsOf` shows them; undefined where nothing was said. */
function readModels(given: string | undefined): string | string[] | null | undefined {
  if (given === undefined) return undefined;
  if (given === "default") return null;
  const models = given.split(",").map((model) => model.trim());
  return models.length === 1 ? given : models;
}

/** `roost agent show INSTANCE AGENT`: the record and its files' names and sizes; with `--json`, their contents too. */
export async function showAgent(instance: string, given: string, options: Options): Promise<void> {
  const client = openClient(options);
  const agent = await findAgent(client, instance, given);
  if (options.json) {
    printJson(await client.get(AGENT, { path: agent }));
    return;
  }
  const files = await Array.fromAsync(client.all(`${AGENT}/files`, { path: agent }));
  printFields([
    ["Name", agent.name],
    ["Shown as", agent.displayName],
    ["Slug", agent.slug],
    ["Model", modelsOf(agent.model)],
    ["Tools", policiesOf(agent)],
    ["Heartbeat", agent.heartbeat ? beatOf(agent.heartbeat) : "none"],
    ["Created", shortTime(agent.createdAt)],
    ["Changed", shortTime(agent.updatedAt)],
    ["ID", agent.agentId],
    ["Instance", agent.instanceId],
  ]);
  say("");
  printTable(
    ["FILE", "BYTES", "CHANGED"],
    files.map(({ name, size, updatedAt }) => [name, String(size), shortTime(updatedAt)]),
    "Its workspace is empty.",
    { shorten: ["FILE"] },
  );
}

/** What the owner has said; a server of an older version says nothing. */
const policiesOf = ({ tools }: AgentRecord): string =>
  Object.entries(tools ?? {})
    .map(([tool, policy]) => `${tool}=${policy}`)
    .join(" ") || "default";

const beatOf = ({ everySeconds, timeZone, activeHours }: NonNullable<AgentRecord["heartbeat"]>): string =>
  everyInWords(everySeconds) + (activeHours === null ? "" : `, ${activeHours.from} to ${activeHours.to} ${timeZone}`);

/** `roost agent create INSTANCE NAME` */
export async function createAgent(
  instance: string,
  name: string,
  options: AgentOptions & { defaults: boolean },
): Promise<void> {
  const fields = fieldsOf(options);
  const client = openClient(options);
  const path = { instanceId: await findInstance(client, instance) };
  const agent = await client
    .post(AGENTS, { path, body: { ...fields, name, useDefaults: options.defaults } })
    .catch((error) => explainTools(error, null));
  print("Created", agent, options);
}

/** `roost agent edit INSTANCE AGENT`: changes only what is given. */
export async function editAgent(instance: string, given: string, options: AgentOptions): Promise<void> {
  const fields = fieldsOf(options);
  if (Object.keys(fields).length === 0) {
    throw new UsageError("nothing to change", "give --name, --display-name, --model, --tool, --heartbeat or --file");
  }
  const client = openClient(options);
  const agent = await findAgent(client, instance, given);
  const changed = await client
    .patch(AGENT, { path: agent, body: fields })
    .catch((error) => explainTools(error, () => Array.fromAsync(client.all(`${AGENT}/tools`, { path: agent }))));
  print("Changed", changed, options);
}

/** Throws the error; in the words of the command line if it is about the name of a tool. */
async function explainTools(error: unknown, list: (() => Promise<{ name: string }[]>) | null): Promise<never> {
  const [, named] = (isRefusal(error) && /^tools: .* got "(.*)"$/.exec(error.message)) || [];
  if (named === undefined) throw error;
  const names = (await list?.())?.map(({ name }) => name).join(", ");
  const next =
    names === undefined ? "create it without: an edit with a mistyped tool lists those it has" : `it has ${names}`;
  throw new Failure(`the agent has no tool ${named}`, next, { cause: error });
}

/** What `--heartbeat` and the options about it say. */
function heartbeatOf({ heartbeat, activeHours, timeZone }: AgentOptions): AgentRecord["heartbeat"] | undefined {
  if (heartbeat === undefined || heartbeat === "off") {
    if (activeHours === undefined && timeZone === undefined) return heartbeat && null;
    throw new UsageError(
      "--active-hours and --time-zone are about the heartbeat",
      "give --heartbeat with them, such as 30m",
    );
  }
  const zone = timeZone ?? Intl.DateTimeFormat().resolvedOptions().timeZone;
  return { everySeconds: Math.round(heartbeat / 1000), timeZone: zone, activeHours: activeHours ?? null };
}

function fieldsOf({ name, slug, displayName, model, tool, file, ...about }: AgentOptions): Record<string, unknown> {
  const files = file && Object.fromEntries(Object.entries(file).map(([to, path]) => [to, readText(path)]));
  const fields = {
    name,
    slug,
    displayName,
    model: readModels(model),
    tools: tool,
    heartbeat: heartbeatOf(about),
    files,
  };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** An empty path means no file: `--file NOTES.md=` removes it. */
function readText(path: string): string | null {
  if (path === "") return null;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(readFileSync(path));
  } catch (error) {
    if (error instanceof TypeError) throw new Failure(`the file ${path} is not UTF-8 text`, null, { cause: error });
    throw describeSystemError(`the file ${path} cannot be read`, error);
  }
}

function print(done: string, agent: Records["Agent"], { json }: Options): void {
  if (json) printJson(agent);
  else say(`${done} ${agent.displayName} (${agent.slug})  `, colours.dim(agent.agentId));
}

/** `roost agent delete INSTANCE AGENT`: deletes its workspace and history too. */
export async function deleteAgent(instance: string, given: string, options: Options & { yes?: true }): Promise<void> {
  const client = openClient(options);
  const agent = await findAgent(client, instance, given);
  await confirm(`Delete the agent ${given} with its workspace and history?`, options.yes);
  const deleted = await client.delete(AGENT, { path: agent });
  if (options.json) printJson(deleted);
  else say(`Deleted ${agent.agentId}.`);
}
