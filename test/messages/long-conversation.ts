/** A conversation of hundreds of messages, written straight into the database of a running server. */
import { newId } from "../../src/lib/id.ts";
import { NO_ORIGIN } from "../../src/messages/exchange.ts";
import { messageQueries, type NewMessageRow } from "../../src/messages/queries.ts";
import type { TestServer } from "../support/test-server.ts";

export const defaultOf = (agentId: string): string => agentId.replace("agt_", "conv_");

/** Writes messages of a person and the agent by turns; returns their ids. */
export function writeMessages(
  server: TestServer,
  agentId: string,
  texts: readonly string[],
  change: (at: number) => Partial<NewMessageRow> = () => ({}),
): string[] {
  const { store } = server.foundation;
  const { insertMessage } = messageQueries(store.db);
  const ids: string[] = [];
  let runId = newId("run");
  let asked: string | null = null;
  store.transaction(() => {
    for (const [at, text] of texts.entries()) {
      const isPerson = at % 2 === 0;
      if (isPerson) [runId, asked] = [newId("run"), null];
      const messageId = newId("msg");
      insertMessage({
        ...{ messageId, agentId, runId, text, createdAt: at, tainted: false, ...NO_ORIGIN },
        conversationId: defaultOf(agentId),
        role: isPerson ? "user" : "agent",
        ...{ senderType: isPerson ? "user" : "agent", senderId: "x", senderName: "x", inReplyTo: asked },
        ...{ finishReason: isPerson ? null : "stop", promptTokens: null, completionTokens: null },
        ...change(at),
      });
      if (isPerson) asked = messageId;
      ids.push(messageId);
    }
  });
  return ids;
}

/** Facts in the first ten messages, and talk of about `tokens` tokens in each of the others. */
export const longTalk = (count: number, tokens = 120): string[] =>
  Array.from({ length: count }, (_, at) =>
    at < 10
      ? `Fact ${at}: the colour of house ${at} is shade${at}.`
      : `Message ${at}: ${"we talked about the garden and the weather. ".repeat(Math.ceil((tokens * 3) / 44))}`,
  );
