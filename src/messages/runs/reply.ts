import { newId } from "../../lib/id.ts";
import type { RunOutcome } from "../../runtime/protocol.ts";
import type { MessageQueries, NewMessageRow } from "../queries.ts";
import { type MessageRecord, showMessage } from "../record.ts";
import { hasUsage, type Run } from "../schema.ts";
import type { RunUsage } from "./progress.ts";

export interface ReplyParts {
  text: string;
  outcome: RunOutcome;
  usage: RunUsage;
  isTainted: boolean;
  /** The agent, as the message's sender. */
  sender: { id: string; name: string };
  createdAt: number;
}

/** The message that a run ends with. */
export function replyOfRun(
  run: Run,
  { text, outcome, usage, isTainted, sender, createdAt }: ReplyParts,
): NewMessageRow {
  const used = hasUsage(usage);
  return {
    messageId: newId("msg"),
    agentId: run.agentId,
    conversationId: run.conversationId,
    runId: run.runId,
    role: "agent",
    text,
    senderType: "agent",
    senderId: sender.id,
    senderName: sender.name,
    inReplyTo: run.messageId,
    finishReason:
      outcome.kind === "completed" ? outcome.finishReason : outcome.kind === "failed" ? "error" : "cancelled",
    promptTokens: used ? usage.promptTokens : null,
    completionTokens: used ? usage.completionTokens : null,
    createdAt,
    tainted: isTainted,
    originType: null,
    originId: null,
  };
}

/** The message that an ended run has ended with; null if it failed before it wrote any text, or was cleared since. */
export function readReply(queries: Pick<MessageQueries, "reply">, run: Run): MessageRecord | null {
  const reply = queries.reply(run.conversationId, run.messageId);
  return reply ? showMessage(reply) : null;
}
