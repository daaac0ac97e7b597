import type { Clock } from "../lib/clock.ts";
import { newId } from "../lib/id.ts";
import type { EventLog } from "./events/event-log.ts";
import type { MessageQueries } from "./queries.ts";
import { showMessage } from "./record.ts";
import { defaultConversationOf, type Run } from "./schema.ts";

/** An answer that says that there is nothing to say. */
const NO_REPLY = "NO_REPLY";

/**
 * Copies the final text of a run in another conversation into the agent's default one, unless there is nothing to say.
 * Nothing else of that run gets there: what happens in the background must not steer the conversation with a person.
 */
export const createAnnouncing =
  (
    clock: Clock,
    queries: Pick<MessageQueries, "insertMessage" | "reply">,
    events: Pick<EventLog, "append">,
  ): ((run: Run) => void) =>
  ({ agentId, conversationId, messageId, runId, originType, originId }) => {
    const target = defaultConversationOf(agentId);
    const reply = queries.reply(conversationId, messageId);
    if (!reply || conversationId === target || ["", NO_REPLY].includes(reply.text.trim())) return;
    const message = {
      ...reply,
      messageId: newId("msg"),
      conversationId: target,
      inReplyTo: null,
      createdAt: clock.now(),
      originType,
      originId,
    };
    queries.insertMessage(message);
    events.append(agentId, [{ type: "message.completed", runId, message: showMessage(message) }], target);
  };
