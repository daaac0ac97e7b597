import { Failure } from "../failure.ts";
import { printJson, sayText, stream } from "../output.ts";
import { ask, createAnswerView } from "./answer.ts";
import { openClient, type ServerOptions } from "./credentials.ts";
import { findAgent } from "./find.ts";

/** `roost send INSTANCE AGENT TEXT`: the answer as it comes on a terminal, its text elsewhere, its record as JSON. */
export async function send(
  instance: string,
  agent: string,
  text: string,
  { json, ...options }: ServerOptions & { json?: true },
): Promise<void> {
  const client = openClient(options);
  const { path } = await findAgent(client, instance, agent);
  const streaming = process.stdout.isTTY && !json;
  const view = createAnswerView(stream);
  const { reply, cancelled } = await ask(client, path, text, (event) => {
    if (streaming) view.show(event);
  }).finally(view.end);
  if (reply !== null && json) printJson(reply);
  else if (reply !== null && !streaming) sayText(reply.message);
  if (cancelled) throw new Failure("the answer was cancelled");
}
