import type { Run } from "../schema.ts";

/** The agent and conversation of a run, and who or what caused it. */
export type Caused = Pick<Run, "agentId" | "conversationId" | "originType" | "originId">;

/** A new run, waiting for its turn. */
export const queuedRun = (
  caused: Caused,
  own: Pick<Run, "runId" | "instanceId" | "messageId" | "firstEventId" | "stops" | "createdAt">,
): Run => ({
  ...caused,
  ...own,
  status: "queued",
  model: null,
  errorCode: null,
  errorMessage: null,
  steps: 0,
  promptTokens: 0,
  completionTokens: 0,
  startedAt: null,
  finishedAt: null,
  waitingKind: null,
  waitingId: null,
  journalUpTo: null,
});
