import { endsRun } from "../../src/messages/events/event.ts";
import { type HandClock, handClock } from "../lib/hand-clock.ts";
import { type Conversation, startConversation } from "../messages/conversation.ts";
import type { Answer } from "../support/test-server.ts";

export const START = Date.parse("2026-11-22T12:00:30Z");

/** An agent on a server whose clock the test moves. */
export interface Planned {
  clock: HandClock;
  talk: Conversation;
  ask(method: string, path: string, body?: object): Promise<Answer>;
  /** Lets time pass, decides about what has come due, and waits until the runs that began have ended or wait. */
  pass(ms: number): Promise<void>;
  slots(scheduleId: string): Promise<{ slotAt: string; status: string; reason: string | null; runId: string | null }[]>;
  stop(): Promise<void>;
}

export async function startPlanned(
  settings: Record<string, string> = {},
  options: Parameters<typeof startConversation>[3] = {},
  startMs = START,
): Promise<Planned> {
  const clock = handClock(startMs);
  const talk = await startConversation(settings, undefined, undefined, { ...options, clock });
  // A token would expire while days pass.
  const { key } = (await talk.person.ask("POST", "/v1/auth/keys", { name: "test" })).body;
  const ask = (method: string, path: string, body?: object) =>
    talk.server.ask(method, path, { key, ...(body && { body }) });
  return {
    clock,
    talk,
    ask,
    async pass(ms) {
      clock.step(ms);
      await talk.server.app.scheduleTimer.tick();
      const { body } = await ask("GET", talk.at("/runs"));
      for (const { runId, status } of body.data) {
        if (!["queued", "running"].includes(status)) continue;
        await using stream = await talk.events(0);
        await stream.until(
          ({ event, data }) => data.runId === runId && (endsRun(event) || event === "approval.requested"),
        );
      }
    },
    slots: async (scheduleId) => (await ask("GET", talk.at(`/schedules/${scheduleId}/slots`))).body.data,
    stop: talk.stop,
  };
}
