import { Failure } from "../failure.ts";
import { note, printJson, sayText } from "../output.ts";
import { ask } from "./answer.ts";
import { openAnswerView, QUIET_VIEW } from "./answer-view.ts";
import { openClient, type ServerOptions } from "./credentials.ts";
import { findAgent, findConversation } from "./find.ts";
import { readInput } from "./input.ts";

/** A message has at most 32,000 characters (docs/contract/api.md, Sizes) of at most four bytes each. */
const MAX_BYTES = 128 * 1024;

/**
 * `roost send INSTANCE AGENT TEXT`: on a terminal, streams the answer; elsewhere prints its text; with `--json`, its
 * record. The text `-` reads the message from standard input.
 */
export async function send(
  instance: string,
  given: string,
  text: string,
  { json, conversation, ...options }: ServerOptions & { json?: true; conversation?: string },
): Promise<void> {
  const client = openClient(options);
  const agent = await findAgent(client, instance, given);
  const found =
    conversation === undefined
      ? undefined
      : await findConversation(client, agent, conversation, { instance, agent: given });
  const message = text === "-" ? await readMessage() : text;
  const streaming = process.stdout.isTTY === true && !json;
  const quiet = json ? { ...QUIET_VIEW, lost() {} } : QUIET_VIEW;
  const view = streaming ? openAnswerView(null) : quiet;
  const { reply, cancelled } = await ask(
    client,
    agent,
    { message, conversationId: found?.conversationId ?? null },
    view,
  );
  if (reply !== null && json) printJson(reply);
  else if (reply !== null && !streaming) sayText(reply.message);
  if (cancelled) throw new Failure("the answer was cancelled");
}

async function readMessage(): Promise<string> {
  if (process.stdin.isTTY) note("Type the message, then Ctrl-D on a new line:");
  const text = await readInput("the message", MAX_BYTES);
  if (text.trim() === "") throw new Failure("the message is empty", "with -, it is read from standard input");
  return text;
}
