import type { AgentIds } from "../../../clients/typescript/src/index.ts";
import { MAX_MESSAGE } from "../../limits/message-length.ts";
import { roost } from "./api.ts";
import { figure } from "./dom.ts";
import { AGENT } from "./records.ts";
import { ToldError } from "./told-error.ts";

/** Without an answer a message is sent again with the same key, so it is stored only once. */
const RETRIES = 5;
/** What is being sent, by agent and conversation. */
const sending = new Map<string, Promise<unknown>>();

/**
 * Sends messages of a conversation one after the other, in the order they were written, whatever else is opened. Rejects
 * one that is too long.
 */
export function sendMessage(
  agent: AgentIds,
  conversationId: string | undefined,
  message: string,
): Promise<{ runId: string; messageId: string }> {
  const length = [...message].length;
  if (length > MAX_MESSAGE)
    return Promise.reject(
      new ToldError(
        `this message has ${figure(length)} characters`,
        `At most ${figure(MAX_MESSAGE)} fit in one: shorten it.`,
      ),
    );
  const place = `${agent.agentId} ${conversationId}`;
  const send = () =>
    roost.post(`${AGENT}/messages`, {
      path: agent,
      body: { message, conversationId },
      headers: { Prefer: "respond-async" },
      retries: RETRIES,
    });
  const sent = (sending.get(place) ?? Promise.resolve()).then(send);
  const over = sent
    .catch(() => undefined)
    .then(() => {
      if (sending.get(place) === over) sending.delete(place);
    });
  sending.set(place, over);
  return sent;
}
