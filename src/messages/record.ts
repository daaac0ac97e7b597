import { z } from "zod";
import { isoTime, isoTimeOrNull } from "../lib/clock.ts";
import { idForm, moneyForm } from "../lib/forms.ts";
import { formatMoney } from "../lib/money.ts";
import { record } from "../lib/record.ts";
import type { NewMessageRow } from "./queries.ts";
import {
  type Conversation,
  FINISH_REASONS,
  hasUsage,
  ORIGINS,
  RUN_STATUSES,
  type Run,
  waitsForPerson,
} from "./schema.ts";

const OriginRecord = z.object({ type: z.enum(ORIGINS), id: z.string().nullable() });

const UsageRecord = z.object({ promptTokens: z.int(), completionTokens: z.int(), totalTokens: z.int() });

/** A message as the API shows it (docs/contract/api.md, Messages). */
export const MessageRecord = record("Message", () =>
  z.object({
    messageId: idForm("msg"),
    agentId: idForm("agt"),
    conversationId: idForm("conv"),
    runId: idForm("run"),
    role: z.enum(["user", "agent"]),
    message: z.string(),
    sender: z.object({ type: z.string(), id: z.string(), name: z.string() }),
    inReplyTo: idForm("msg").nullable(),
    createdAt: z.iso.datetime(),
    usage: UsageRecord.nullable(),
    finishReason: z.enum(FINISH_REASONS).nullable(),
    origin: OriginRecord.nullable().describe("What caused it; null for what people write and what answers them"),
  }),
);
export type MessageRecord = z.output<typeof MessageRecord>;

/** A conversation as the API shows it (docs/contract/api.md, Conversations). */
export const ConversationRecord = record("Conversation", () =>
  z.object({
    conversationId: idForm("conv"),
    agentId: idForm("agt"),
    title: z.string().nullable(),
    isDefault: z.boolean(),
    origin: OriginRecord,
    messageCount: z.int(),
    createdAt: z.iso.datetime(),
    updatedAt: z.iso.datetime(),
  }),
);

export const RunRecord = record("Run", () =>
  z.object({
    runId: idForm("run"),
    conversationId: idForm("conv"),
    status: z.enum(RUN_STATUSES),
    origin: OriginRecord,
    model: z.string().nullable().describe("The model that answers; null until the run has started"),
    waitingFor: idForm("appr").nullable().describe("The approval that the run waits for, if it does"),
    error: z.object({ code: z.string(), message: z.string() }).nullable(),
    steps: z.int(),
    createdAt: z.iso.datetime(),
    startedAt: z.iso.datetime().nullable(),
    finishedAt: z.iso.datetime().nullable(),
    usage: UsageRecord.extend({
      cachedTokens: z.int().nullable().describe("How many of the prompt's tokens came from a cache; null if not known"),
      cost: moneyForm("0.001200").nullable().describe("In USD; null if no price is known"),
    }).nullable(),
  }),
);

const usageOf = (promptTokens: number, completionTokens: number) => ({
  promptTokens,
  completionTokens,
  totalTokens: promptTokens + completionTokens,
});

export const showMessage = (row: NewMessageRow): MessageRecord => ({
  messageId: row.messageId,
  agentId: row.agentId,
  conversationId: row.conversationId,
  runId: row.runId,
  role: row.role,
  message: row.text,
  sender: { type: row.senderType, id: row.senderId, name: row.senderName },
  inReplyTo: row.inReplyTo,
  createdAt: isoTime(row.createdAt),
  usage:
    row.promptTokens === null || row.completionTokens === null ? null : usageOf(row.promptTokens, row.completionTokens),
  finishReason: row.finishReason,
  origin: row.originType === null ? null : { type: row.originType, id: row.originId },
});

export const showConversation = (row: Conversation): z.output<typeof ConversationRecord> => ({
  conversationId: row.conversationId,
  agentId: row.agentId,
  title: row.title,
  isDefault: row.isDefault,
  origin: { type: row.originType, id: row.originId },
  messageCount: row.messageCount,
  createdAt: isoTime(row.createdAt),
  updatedAt: isoTime(row.updatedAt),
});

export const showRun = (row: Run): z.output<typeof RunRecord> => ({
  runId: row.runId,
  conversationId: row.conversationId,
  status: row.status,
  origin: { type: row.originType, id: row.originId },
  model: row.model,
  waitingFor: waitsForPerson(row) ? row.waitingId : null,
  error: row.errorCode === null ? null : { code: row.errorCode, message: row.errorMessage ?? "" },
  steps: row.steps,
  createdAt: isoTime(row.createdAt),
  startedAt: isoTimeOrNull(row.startedAt),
  finishedAt: isoTimeOrNull(row.finishedAt),
  usage: hasUsage(row)
    ? {
        ...usageOf(row.promptTokens, row.completionTokens),
        cachedTokens: row.cachedTokens,
        cost: row.cost === null ? null : formatMoney(BigInt(row.cost)),
      }
    : null,
});
