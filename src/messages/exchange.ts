import type { Agent } from "../agents/schema.ts";
import type { Instance } from "../instances/schema.ts";
import type { Clock } from "../lib/clock.ts";
import { newId } from "../lib/id.ts";
import type { EventLog } from "./events/event-log.ts";
import type { MessageQueries, NewMessageRow } from "./queries.ts";
import { showMessage } from "./record.ts";
import { NEW_RUN } from "./runs/new-runs.ts";
import type { RunUsage } from "./runs/progress.ts";
import { replyOfRun } from "./runs/reply.ts";
import type { Run } from "./schema.ts";

export interface Sender {
  type: string;
  id: string;
  name: string;
}

/** A question and its answer, which were not written while the agent answered. */
export interface Exchange {
  conversationId: string;
  /** What identifies it to whoever asked. */
  originId: string;
  sender: Sender;
  question: string;
  answer: string;
  finishReason: "stop" | "length";
  usage: RunUsage;
  model: string | null;
  steps: number;
  /** Whether the question has what a stranger may have written, such as the result of a function. */
  isQuestionTainted: boolean;
  isTainted: boolean;
  /** When it was asked, in milliseconds. */
  createdAt: number;
}

/** Of a person's messages and the answers to them. */
export const NO_ORIGIN = { originType: null, originId: null } as const;

/** The message that a run answers. */
export const questionOf = (
  { messageId, agentId, conversationId, runId, createdAt, originType, originId }: Run,
  text: string,
  sender: Sender,
): NewMessageRow => ({
  messageId,
  agentId,
  conversationId,
  runId,
  role: "user",
  text,
  senderType: sender.type,
  senderId: sender.id,
  senderName: sender.name,
  inReplyTo: null,
  finishReason: null,
  promptTokens: null,
  completionTokens: null,
  createdAt,
  tainted: false,
  ...(originType === "user" ? NO_ORIGIN : { originType, originId }),
});

/** Writes an exchange as a completed run with its two messages and its events. */
export const createKeeping =
  (
    clock: Clock,
    queries: Pick<MessageQueries, "insertRun" | "insertMessage">,
    events: Pick<EventLog, "append">,
  ): ((instance: Instance, agent: Agent, exchange: Exchange) => string | null) =>
  ({ instanceId, stops }, { agentId, displayName }, exchange) => {
    const { conversationId, originId, sender, question, answer, finishReason, isTainted, createdAt } = exchange;
    const { usage, model, steps } = exchange;
    const [runId, messageId] = [newId("run"), newId("msg")];
    const last = events.append(
      agentId,
      [
        { type: "run.queued", runId },
        { type: "run.started", runId },
      ],
      conversationId,
    );
    if (last === 0) return null;
    const run: Run = {
      ...NEW_RUN,
      ...{ runId, agentId, instanceId, conversationId, messageId, stops, model, steps, createdAt, ...usage },
      status: "completed",
      originType: "openai",
      originId,
      firstEventId: last - 1,
      startedAt: createdAt,
      finishedAt: clock.now(),
    };
    const reply = replyOfRun(run, {
      text: answer,
      outcome: { kind: "completed", finishReason },
      usage,
      isTainted,
      sender: { id: agentId, name: displayName },
      createdAt: clock.now(),
    });
    queries.insertRun(run);
    queries.insertMessage({ ...questionOf(run, question, sender), tainted: exchange.isQuestionTainted });
    queries.insertMessage(reply);
    const message = showMessage(reply);
    events.append(
      agentId,
      [
        ...(answer === "" ? [] : [{ type: "message.delta", runId, delta: answer } as const]),
        { type: "message.completed", runId, message },
        { type: "run.completed", runId },
      ],
      conversationId,
    );
    return reply.messageId;
  };
