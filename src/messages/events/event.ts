import type { z } from "zod";
import { isoTime } from "../../lib/clock.ts";
import type { StoredEvent } from "../schema.ts";
import type { EventRecord } from "./event-record.ts";

type Shown = z.output<typeof EventRecord>;
type Reported<Event> = Event extends unknown ? Omit<Event, "id" | "agentId" | "conversationId" | "createdAt"> : never;

/** Everything that can happen to an agent, as it is reported: the log adds the rest of what its stream shows. */
export type AgentEvent = Reported<Shown>;

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
