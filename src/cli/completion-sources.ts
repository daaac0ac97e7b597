import { visibleJson } from "../lib/visible-text.ts";
import { serverUrl } from "./arguments.ts";
import { oneLine } from "./output.ts";
import { type Client, createClient, type Records } from "./user/client.ts";
import { findLogin, readLogins, withEnvironment } from "./user/credentials.ts";
import { AGENTS, CONVERSATIONS, INSTANCE } from "./user/find.ts";

/** A possible completion at the cursor. */
export interface Candidate {
  value: string;
  /** Empty when the value needs none. */
  description: string;
}

/** What the line contains already: command words, arguments, and options by attribute name. */
export interface Typed {
  words: string[];
  arguments: string[];
  options: Record<string, string>;
}

/** Returns the possible values. Throws when they cannot be determined. */
export type Source = (typed: Typed) => Promise<Candidate[]>;

/** Per request: somebody is waiting at the keyboard. */
const DEADLINE_MS = 1_000;
/** Names are completed from one page: the newest, in an account that has more. */
const PAGE = { limit: 100 };

/** Values of arguments and options, by their names in the command tree. */
export const SOURCES: Readonly<Record<string, Source>> = {
  instance: async (typed) =>
    (await instancesOf(clientOf(typed))).map(({ instanceId, name, status }, _, all) =>
      isWord(name) && all.filter((other) => other.name === name).length === 1
        ? { value: name, description: status }
        : { value: instanceId, description: `${name}, ${status}` },
    ),
  agent: async (typed) =>
    (await agentsOf(typed)).map(({ slug, displayName }) => ({ value: slug, description: displayName })),
  conversation: async (typed) => {
    const { client, instanceId } = await whereOf(typed);
    const [, given] = typed.arguments;
    const agent = (await agentsOf(typed)).find(({ slug, agentId }) => slug === given || agentId === given);
    if (agent === undefined) throw new Error("no such agent");
    const { agentId } = agent;
    const { data } = await client.get(CONVERSATIONS, { path: { instanceId, agentId }, query: PAGE });
    return data.map(({ conversationId, isDefault, title }, _, all) => {
      if (isDefault) return { value: "default", description: title ?? "" };
      const isOwn = title !== null && isWord(title) && all.filter((other) => other.title === title).length === 1;
      return isOwn ? { value: title, description: "" } : { value: conversationId, description: title ?? "" };
    });
  },
  approval: async (typed) => {
    const query = { ...PAGE, status: "open" } as const;
    const { data: open } = await clientOf(typed).get("/v1/approvals", { query });
    const kind = typed.words.at(-1) === "approve" ? "tool" : typed.words.at(-1) === "answer" ? "question" : null;
    return open
      .filter((one) => kind === null || one.kind === kind)
      .map(({ approvalId, tool, questions, input }) => ({
        value: approvalId,
        description: `${tool} ${questions?.[0]?.question ?? visibleJson(input)}`.slice(0, 80),
      }));
  },
  skill: async (typed) => {
    const { client, instanceId } = await whereOf(typed);
    const isInstalled = typed.words.at(-1) === "remove";
    const { data } = isInstalled
      ? await client.get(`${INSTANCE}/skills`, { path: { instanceId }, query: PAGE })
      : await client.get("/v1/skills", { query: PAGE });
    return data.map(({ name, version, description }) => ({ value: name, description: description ?? version }));
  },
  server: async (typed) => {
    const { client, instanceId } = await whereOf(typed);
    const { data } = await client.get(`${INSTANCE}/mcp-servers`, { path: { instanceId }, query: PAGE });
    return data.map(({ name, status, url }) => ({ value: name, description: `${status}, ${url}` }));
  },
  secret: async (typed) => {
    const { client, instanceId } = await whereOf(typed);
    const input = { path: { instanceId }, query: PAGE };
    const set = (await client.get(`${INSTANCE}/secrets`, input)).data.map(({ key }) => key);
    const skills = await client.get(`${INSTANCE}/skills`, input);
    const missing = skills.data.flatMap(({ name, missingSecrets }) =>
      missingSecrets.map((value) => ({ value, description: `missing for ${name}` })),
    );
    const known = set.map((value) => ({ value, description: "set" }));
    return typed.words.at(-1) === "set" ? [...missing, ...known] : known;
  },
  model: async (typed) => {
    if (typed.words.includes("models")) return await addedModels(typed);
    const { LOCAL_MODEL } = await import("../models/local-models.ts");
    const used = await agentsOf(typed).catch(() => []);
    const names = new Set([LOCAL_MODEL, ...used.flatMap(({ model }) => model ?? [])]);
    return [
      { value: "default", description: "the host's own" },
      ...[...names].map((value) => ({ value, description: "" })),
    ];
  },
  profile: async () =>
    Object.entries(readLogins().logins).map(([value, { email, url }]) => ({
      value,
      description: `${email} on ${url}`,
    })),
  url: async () =>
    [...new Set(Object.values(readLogins().logins).map(({ url }) => url))].map((value) => ({ value, description: "" })),
};

/** Models that an operator has added. */
async function addedModels({ options: { data } }: Typed): Promise<Candidate[]> {
  const { readSettings } = await import("./operator/data-folder.ts");
  const { listModels } = await import("../models/store/store.ts");
  const { dataDir } = readSettings(data === undefined ? {} : { data }).config;
  return listModels(dataDir).map(({ manifest }) => ({ value: manifest.name, description: manifest.architecture }));
}

/** Whether a name can be typed as it is shown, and is not mistaken for an option. */
const isWord = (text: string): boolean => text === oneLine(text) && text.trim() === text && !text.startsWith("-");

function clientOf({ options: { url, profile, key } }: Typed): Client {
  const meant = withEnvironment({
    ...(url === undefined ? {} : { url: serverUrl(url) }),
    ...(profile === undefined ? {} : { profile }),
    ...(key === undefined ? {} : { key }),
  });
  const found = meant.key !== undefined && meant.url !== undefined ? null : findLogin(meant);
  const at = meant.url ?? found?.login.url;
  const credential = meant.key ?? found?.login.key;
  if (at === undefined || credential === undefined) throw new Error("no login");
  return createClient(at, credential, { deadlineMs: DEADLINE_MS });
}

const instancesOf = async (client: Client): Promise<Records["Instance"][]> =>
  (await client.get("/v1/instances", { query: PAGE })).data;

/** The server, and the instance named on the line. */
async function whereOf(typed: Typed): Promise<{ client: Client; instanceId: string }> {
  const client = clientOf(typed);
  const [given = ""] = typed.arguments;
  const known = /^inst_[0-9a-f]{32}$/.test(given)
    ? given
    : (await instancesOf(client)).find(({ name }) => name === given)?.instanceId;
  if (known === undefined) throw new Error("no such instance");
  return { client, instanceId: known };
}

async function agentsOf(typed: Typed): Promise<Records["ListedAgent"][]> {
  const { client, instanceId } = await whereOf(typed);
  return (await client.get(AGENTS, { path: { instanceId }, query: PAGE })).data;
}
