import { z } from "zod";
import { isoTime, isoTimeOrNull } from "../lib/clock.ts";
import { idForm } from "../lib/forms.ts";
import { record } from "../lib/record.ts";
import type { NewMessage } from "./queries.ts";
import { FINISH_REASONS, RUN_STATUSES, type Run } from "./schema.ts";

const UsageRecord = z.object({ promptTokens: z.int(), completionTokens: z.int(), totalTokens: z.int() });

/** A message as the API shows it (api.md section 5). */
export const MessageRecord = record(
  "Message",
  z.object({
    messageId: idForm("msg"),
    agentId: idForm("agt"),
    runId: idForm("run"),
    role: z.enum(["user", "agent"]),
    message: z.string(),
    sender: z.object({ type: z.string(), id: z.string(), name: z.string() }),
    inReplyTo: idForm("msg").nullable(),
    createdAt: z.iso.datetime(),
    usage: UsageRecord.nullable(),
    finishReason: z.enum(FINISH_REASONS).nullable(),
  }),
);
export type MessageRecord = z.output<typeof MessageRecord>;

export const RunRecord = record(
  "Run",
  z.object({
    runId: idForm("run"),
    status: z.enum(RUN_STATUSES),
    error: z.object({ code: z.string(), message: z.string() }).nullable(),
    steps: z.int(),
    createdAt: z.iso.datetime(),
    startedAt: z.iso.datetime().nullable(),
    finishedAt: z.iso.datetime().nullable(),
    usage: UsageRecord.nullable(),
  }),
);

const usageOf = (promptTokens: number, completionTokens: number) => ({
  promptTokens,
  completionTokens,
  totalTokens: promptTokens + completionTokens,
});

export const showMessage = (row: NewMessage): MessageRecord => ({
  messageId: row.messageId,
  agentId: row.agentId,
  runId: row.runId,
  role: row.role,
  message: row.text,
  sender: { type: row.senderType, id: row.senderId, name: row.senderName },
  inReplyTo: row.inReplyTo,
  createdAt: isoTime(row.createdAt),
  usage:
    row.promptTokens === null || row.completionTokens === null ? null : usageOf(row.promptTokens, row.completionTokens),
  finishReason: row.finishReason,
});

export const showRun = (row: Run): z.output<typeof RunRecord> => ({
  runId: row.runId,
  status: row.status,
  error: row.errorCode === null ? null : { code: row.errorCode, message: row.errorMessage ?? "" },
  steps: row.steps,
  createdAt: isoTime(row.createdAt),
  startedAt: isoTimeOrNull(row.startedAt),
  finishedAt: isoTimeOrNull(row.finishedAt),
  usage: row.promptTokens + row.completionTokens === 0 ? null : usageOf(row.promptTokens, row.completionTokens),
});
