import { Failure } from "../failure.ts";
import { shellWord } from "../shell-word.ts";
import type { Client, Records } from "./client.ts";

/** An agent; in lists it has only the names of its files. */
export type AgentRecord = Records["Agent"] | Records["ListedAgent"];
export type ConversationRecord = Records["Conversation"];

const ID = /^(inst|agt|conv)_[0-9a-f]{32}$/;

/** The id of an instance given by id or name. Throws if none or several have the name. */
export async function findInstance(client: Client, given: string): Promise<string> {
  if (ID.test(given)) return given;
  const named: Records["Instance"][] = [];
  for await (const instance of client.all("/v1/instances")) if (instance.name === given) named.push(instance);
  return only(named, `instance "${given}"`, "roost instance list").instanceId;
}

/** By id; one that is deleted has none any more. */
export async function namesOfInstances(client: Client): Promise<Map<string, string>> {
  const names = new Map<string, string>();
  for await (const { instanceId, name } of client.all("/v1/instances")) names.set(instanceId, name);
  return names;
}

/** An agent given by id, slug or name. */
export async function findAgent(client: Client, givenInstance: string, given: string): Promise<AgentRecord> {
  const instanceId = await findInstance(client, givenInstance);
  if (ID.test(given)) return await client.get(AGENT, { path: { instanceId, agentId: given } });
  const all = await Array.fromAsync(client.all(AGENTS, { path: { instanceId } }));
  return (
    all.find(({ slug }) => slug === given) ??
    only(
      all.filter(({ name }) => name === given),
      `agent "${given}"`,
      `roost agent list ${shellWord(givenInstance)}`,
    )
  );
}

/**
 * A conversation that a command names by id or title, or `default`, of an agent that is `typed` so. Throws if none or several
 * have the title.
 */
export async function findConversation(
  client: Client,
  agent: AgentRecord,
  given: string,
  typed: { instance: string; agent: string },
): Promise<ConversationRecord> {
  if (ID.test(given)) return await client.get(CONVERSATION, { path: { ...idsOf(agent), conversationId: given } });
  const all = await Array.fromAsync(client.all(CONVERSATIONS, { path: agent }));
  const found = all.filter(({ isDefault, title }) => (given === "default" ? isDefault : title === given));
  const list = `roost conversation list ${shellWord(typed.instance)} ${shellWord(typed.agent)}`;
  return only(found, `conversation "${given}"`, list);
}

/** Paths of the API that several commands use. */
export const INSTANCE = "/v1/instances/{instanceId}";
export const AGENTS = `${INSTANCE}/agents` as const;
export const AGENT = `${AGENTS}/{agentId}` as const;
export const CONVERSATIONS = `${AGENT}/conversations` as const;
export const CONVERSATION = `${CONVERSATIONS}/{conversationId}` as const;

export const idsOf = ({ instanceId, agentId }: AgentRecord) => ({ instanceId, agentId });

/** What was found by a name. Throws if it is nothing, or several; `list` is the command that shows what there is. */
export function only<T>(found: T[], what: string, list: string): T {
  const [first, ...others] = found;
  if (first === undefined) throw new Failure(`there is no ${what}`, `to see what there is: ${list}`);
  if (others.length > 0) throw new Failure(`${found.length} match ${what} by name`, `give the id, shown by: ${list}`);
  return first;
}
