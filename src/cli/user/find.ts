import { Failure } from "../failure.ts";
import type { Client } from "./client.ts";

export interface InstanceRecord {
  instanceId: string;
  name: string;
  status: string;
  statusReason: string | null;
  createdAt: string;
  agentCount: number;
  billing: { pricePerHour: string; accrued: string; currency: string };
}

export interface AgentRecord {
  agentId: string;
  instanceId: string;
  name: string;
  slug: string;
  displayName: string;
  model: string | null;
  tools?: Record<string, string>;
  /** Only the names, in lists. */
  files: string[] | Record<string, string>;
  createdAt: string;
  updatedAt: string;
}

export interface ConversationRecord {
  conversationId: string;
  title: string | null;
  isDefault: boolean;
  origin: { type: string; id: string | null };
  messageCount: number;
  updatedAt: string;
}

const ID = /^(inst|agt|conv)_[0-9a-f]{32}$/;

/** The id of an instance given by id or name. Throws if none or several have the name. */
export async function findInstance(client: Client, given: string): Promise<string> {
  if (ID.test(given)) return given;
  const named = (await client.all<InstanceRecord>("/v1/instances")).filter(({ name }) => name === given);
  return only(named, `instance "${given}"`, "roost instance list").instanceId;
}

/** An agent given by id, slug or name, and its path in the API. */
export async function findAgent(
  client: Client,
  givenInstance: string,
  given: string,
): Promise<{ path: string; agent: AgentRecord }> {
  const agents = agentsPath(await findInstance(client, givenInstance));
  if (ID.test(given)) {
    const path = `${agents}/${given}`;
    return { path, agent: await client.call<AgentRecord>("GET", path) };
  }
  const all = await client.all<AgentRecord>(agents);
  const agent =
    all.find(({ slug }) => slug === given) ??
    only(
      all.filter(({ name }) => name === given),
      `agent "${given}"`,
      `roost agent list ${shellWord(givenInstance)}`,
    );
  return { path: `${agents}/${agent.agentId}`, agent };
}

/** A conversation that a command names by id or title, or `default`. Throws if none or several have the title. */
export async function findConversation(client: Client, path: string, given: string): Promise<ConversationRecord> {
  if (ID.test(given)) return await client.call<ConversationRecord>("GET", `${path}/conversations/${given}`);
  const all = await client.all<ConversationRecord>(`${path}/conversations`);
  const found = all.filter(({ isDefault, title }) => (given === "default" ? isDefault : title === given));
  return only(found, `conversation "${given}"`, "roost conversation list INSTANCE AGENT");
}

export const instancePath = (instanceId: string): string => `/v1/instances/${instanceId}`;
export const agentsPath = (instanceId: string): string => `${instancePath(instanceId)}/agents`;

const shellWord = (text: string): string => (/^[\w.-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

function only<T>(found: T[], what: string, list: string): T {
  const [first, ...others] = found;
  if (first === undefined) throw new Failure(`there is no ${what}`, `to see what there is: ${list}`);
  if (others.length > 0) throw new Failure(`${found.length} match ${what} by name`, `give the id, shown by: ${list}`);
  return first;
}
