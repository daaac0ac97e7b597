import type { ApprovalRecord } from "../../approvals/record.ts";
import { isoTime } from "../../lib/clock.ts";
import type { PlanItem } from "../../tools/ports.ts";
import type { Wait } from "../../tools/tool.ts";
import type { MessageRecord } from "../record.ts";
import type { StoredEvent } from "../schema.ts";

/** Everything that can happen to an agent, as its event stream reports it (docs/contract/api.md, Events). */
export type AgentEvent =
  | {
      type: "run.queued" | "run.started" | "run.restarted" | "run.resumed" | "run.completed" | "run.cancelled";
      runId: string;
    }
  | { type: "run.waiting"; runId: string; calls: { toolCallId: string; name: string; waitsFor: Wait }[] }
  | { type: "message.delta"; runId: string; delta: string }
  /** `step` is the model call, from 1; `following`: the calls after the first of the same answer, if there are any. */
  | ({ type: "tool.started"; runId: string; step: number; following?: StartedCall[] } & StartedCall)
  | { type: "tool.completed"; runId: string; toolCallId: string; name: string; output: string; isError: boolean }
  | { type: "message.completed"; runId: string; message: MessageRecord }
  | { type: "plan.updated"; runId: string; items: PlanItem[] }
  | { type: "approval.requested" | "approval.decided"; runId: string; approval: ApprovalRecord }
  | { type: "run.failed"; runId: string; error: { code: string; message: string } }
  | {
      type: "schedule.failing" | "schedule.disabled";
      scheduleId: string;
      name: string;
      failuresInARow: number;
      reason: string;
    }
  | { type: "agent.updated" | "agent.deleted" }
  | { type: "instance.status"; status: string }
  | { type: "instance.runway"; reason: string; secondsLeft: number; stopsAt: string };

export interface StartedCall {
  toolCallId: string;
  name: string;
  /** JSON, or the model's text if that is not JSON. */
  input: unknown;
}

const TERMINAL = new Set(["run.completed", "run.failed", "run.cancelled"]);

/** Exactly one of these ends a run. */
export const endsRun = (type: string): boolean => TERMINAL.has(type);

/** The event as its row: the fields of its own type go into `data`. The conversation is that of its run. */
export function toRow(
  agentId: string,
  conversationId: string | null,
  event: AgentEvent,
  createdAt: number,
): StoredEvent {
  const { type, runId = null, ...own } = event as AgentEvent & { runId?: string };
  return { agentId, eventId: 0, runId, conversationId, type, data: JSON.stringify(own), createdAt };
}

/** One frame of the event stream. Concatenated for speed: this runs once for each token of each answer. */
export function toFrame({ agentId, eventId, runId, conversationId, type, data, createdAt }: StoredEvent): string {
  const of = conversationId === null ? "" : `"conversationId":"${conversationId}",`;
  const run = runId === null ? "" : `"runId":"${runId}",${of}`;
  const own = data === "{}" ? "}" : `,${data.slice(1)}`;
  return `id: ${eventId}\nevent: ${type}\ndata: {"id":${eventId},"type":"${type}","agentId":"${agentId}",${run}"createdAt":"${isoTime(createdAt)}"${own}\n\n`;
}
