import { Failure } from "../failure.ts";
import { colours, printJson, printTable, say, shortTime } from "../output.ts";
import { shellWord } from "../shell-word.ts";
import { openClient, type ServerOptions } from "./credentials.ts";
import {
  AGENT,
  CONVERSATION,
  CONVERSATIONS,
  type ConversationRecord,
  findAgent,
  findConversation,
  idsOf,
} from "./find.ts";
import { confirm } from "./prompt.ts";

interface Options extends ServerOptions {
  json?: true;
}

/** `roost conversation list INSTANCE AGENT`: the latest activity first, the default one marked. */
export async function listConversations(instance: string, givenAgent: string, options: Options): Promise<void> {
  const client = openClient(options);
  const agent = await findAgent(client, instance, givenAgent);
  const conversations = await Array.fromAsync(client.all(CONVERSATIONS, { path: agent }));
  if (options.json) {
    printJson(conversations);
    return;
  }
  printTable(
    ["", "TITLE", "ORIGIN", "MESSAGES", "ACTIVE", "ID"],
    conversations.map(({ title, isDefault, origin, messageCount, updatedAt, conversationId }) => [
      // Another may have that title.
      isDefault ? "*" : "",
      title ?? (isDefault ? "default" : "-"),
      origin.type,
      String(messageCount),
      shortTime(updatedAt),
      conversationId,
    ]),
    "There are no conversations.",
    { leaveOut: ["ORIGIN"], shorten: ["TITLE"] },
  );
}

/** `roost conversation new INSTANCE AGENT` */
export async function newConversation(
  instance: string,
  givenAgent: string,
  { title, ...options }: Options & { title?: string },
): Promise<void> {
  const client = openClient(options);
  const agent = await findAgent(client, instance, givenAgent);
  const made = await client.post(CONVERSATIONS, { path: agent, body: { title } });
  print("Begun", made, options);
}

/** `roost conversation rename INSTANCE AGENT CONVERSATION --title TITLE` */
export async function renameConversation(
  instance: string,
  givenAgent: string,
  given: string,
  { title, ...options }: Options & { title: string },
): Promise<void> {
  const client = openClient(options);
  const agent = await findAgent(client, instance, givenAgent);
  const { conversationId } = await findConversation(client, agent, given, { instance, agent: givenAgent });
  const renamed = await client.patch(CONVERSATION, { path: { ...idsOf(agent), conversationId }, body: { title } });
  print("Renamed to", renamed, options);
}

/** `roost conversation fork INSTANCE AGENT CONVERSATION`: up to and including a message, the last one if none is named. */
export async function forkConversation(
  instance: string,
  givenAgent: string,
  given: string,
  { message, ...options }: Options & { message?: string },
): Promise<void> {
  const client = openClient(options);
  const agent = await findAgent(client, instance, givenAgent);
  const { conversationId } = await findConversation(client, agent, given, { instance, agent: givenAgent });
  const last = { order: "desc", limit: 1, conversationId } as const;
  const messageId = message ?? (await client.get(`${AGENT}/messages`, { path: agent, query: last })).data[0]?.messageId;
  if (messageId === undefined) {
    throw new Failure("there is nothing to fork: nothing was said in this conversation yet");
  }
  const made = await client.post(`${CONVERSATION}/fork`, {
    path: { ...idsOf(agent), conversationId },
    body: { messageId },
  });
  print("Forked into", made, options);
}

/** `roost conversation delete INSTANCE AGENT CONVERSATION`: with its messages; its runs are cancelled. */
export async function deleteConversation(
  instance: string,
  givenAgent: string,
  given: string,
  options: Options & { yes?: true },
): Promise<void> {
  const client = openClient(options);
  const agent = await findAgent(client, instance, givenAgent);
  const typed = { instance, agent: givenAgent };
  const { conversationId, isDefault } = await findConversation(client, agent, given, typed);
  if (isDefault) {
    throw new Failure(
      "an agent's default conversation cannot be deleted",
      `to clear it: /clear in roost chat ${shellWord(instance)} ${shellWord(givenAgent)}`,
    );
  }
  await confirm(`Delete the conversation ${given} with its messages?`, options.yes);
  const deleted = await client.delete(CONVERSATION, { path: { ...idsOf(agent), conversationId } });
  if (options.json) printJson(deleted);
  else say(`Deleted ${conversationId}.`);
}

function print(done: string, made: ConversationRecord, { json }: Options): void {
  if (json) printJson(made);
  else say(`${done} ${made.title ?? "a conversation"}  `, colours.dim(made.conversationId));
}
