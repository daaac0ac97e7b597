import { Failure } from "../failure.ts";
import { colours, printJson, printTable, say, shortTime } from "../output.ts";
import type { Page } from "./client.ts";
import { openClient, type ServerOptions } from "./credentials.ts";
import { type ConversationRecord, findAgent, findConversation } from "./find.ts";
import { confirm } from "./prompt.ts";

interface Options extends ServerOptions {
  json?: true;
}

/** `roost conversation list INSTANCE AGENT`: the latest activity first. */
export async function listConversations(instance: string, agent: string, options: Options): Promise<void> {
  const client = openClient(options);
  const { path } = await findAgent(client, instance, agent);
  const conversations = await client.all<ConversationRecord>(`${path}/conversations`);
  if (options.json) {
    printJson(conversations);
    return;
  }
  printTable(
    ["TITLE", "ORIGIN", "MESSAGES", "ACTIVE", "ID"],
    conversations.map(({ title, isDefault, origin, messageCount, updatedAt, conversationId }) => [
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
  agent: string,
  { title, ...options }: Options & { title?: string },
): Promise<void> {
  const client = openClient(options);
  const { path } = await findAgent(client, instance, agent);
  const made = await client.call<ConversationRecord>("POST", `${path}/conversations`, {
    body: title === undefined ? {} : { title },
    headers: { "Idempotency-Key": crypto.randomUUID() },
  });
  print("Begun", made, options);
}

/** `roost conversation fork INSTANCE AGENT CONVERSATION`: up to and including a message, the last one if none is named. */
export async function forkConversation(
  instance: string,
  agent: string,
  given: string,
  { message, ...options }: Options & { message?: string },
): Promise<void> {
  const client = openClient(options);
  const { path } = await findAgent(client, instance, agent);
  const { conversationId } = await findConversation(client, path, given);
  const lastOf = `${path}/messages?order=desc&limit=1&conversationId=${encodeURIComponent(conversationId)}`;
  const messageId = message ?? (await client.call<Page<{ messageId: string }>>("GET", lastOf)).data[0]?.messageId;
  if (messageId === undefined) {
    throw new Failure("there is nothing to fork: nothing was said in this conversation yet");
  }
  const made = await client.call<ConversationRecord>(
    "POST",
    `${path}/conversations/${encodeURIComponent(conversationId)}/fork`,
    { body: { messageId }, headers: { "Idempotency-Key": crypto.randomUUID() } },
  );
  print("Forked into", made, options);
}

/** `roost conversation delete INSTANCE AGENT CONVERSATION`: with its messages; its runs are cancelled. */
export async function deleteConversation(
  instance: string,
  agent: string,
  given: string,
  options: Options & { yes?: true },
): Promise<void> {
  const client = openClient(options);
  const { path } = await findAgent(client, instance, agent);
  const { conversationId } = await findConversation(client, path, given);
  await confirm(`Delete the conversation ${given} with its messages?`, options.yes);
  const deleted = await client.call("DELETE", `${path}/conversations/${encodeURIComponent(conversationId)}`);
  if (options.json) printJson(deleted);
  else say(`Deleted ${conversationId}.`);
}

function print(done: string, made: ConversationRecord, { json }: Options): void {
  if (json) printJson(made);
  else say(`${done} ${made.title ?? "a conversation"}  `, colours.dim(made.conversationId));
}
