import type { AgentIds, RunEvent } from "../../../clients/typescript/src/index.ts";
import { roost } from "./api.ts";
import { approvalsChanged, untilDecided } from "./open-approvals.ts";

export interface StreamOptions {
  /** The last event that is known. */
  after?: number | undefined;
  signal: AbortSignal;
  /** Called when the server does not answer, and when it does again. */
  away?: (is: boolean) => void;
}

/** Events come in bursts: a run that has said nothing more for this long waits. */
const BURST_MS = 1_000;
const LOOK_INTERVAL_MS = 15_000;
/** A connection that broke for less than this is not told. */
const AWAY_MS = 1_000;

/**
 * A run's events, to its last. A browser opens six connections to a host for all of its tabs, and a stream is one of them: a
 * page that nobody sees has none, nor has a run that waits for what only people decide, which may take a day.
 */
export async function* followRun(
  agent: AgentIds,
  runId: string,
  { after, signal, away = () => undefined }: StreamOptions,
): AsyncGenerator<RunEvent, undefined> {
  /** The approvals that it waits for. */
  let open: string[] = [];
  for (;;) {
    if (open.length > 0) await untilDecided(open, signal);
    await untilSeen(signal);
    const leaving = new AbortController();
    const leave = () => leaving.abort();
    const leaveUnseen = () => isSeen() || leave();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let awayTimer: ReturnType<typeof setTimeout> | undefined;
    const connected = (is: boolean) => {
      clearTimeout(awayTimer);
      if (is) away(false);
      else awayTimer = setTimeout(away, AWAY_MS, true);
    };
    document.addEventListener("visibilitychange", leaveUnseen);
    try {
      const either = AbortSignal.any([signal, leaving.signal]);
      const stream = roost.events(agent, { runId, after, signal: either, connected });
      // They are all that this stream has.
      for await (const event of stream as AsyncIterable<RunEvent>) {
        yield event;
        after = event.id;
        open = openAfter(event, open);
        clearTimeout(timer);
        if (open.length > 0) timer = setTimeout(leave, BURST_MS);
      }
      return;
    } catch (error) {
      if (signal.aborted || !leaving.signal.aborted) throw error;
    } finally {
      clearTimeout(timer);
      connected(true);
      document.removeEventListener("visibilitychange", leaveUnseen);
    }
  }
}

/** The approvals that a run waits for after this event, if it waits for nothing else. */
function openAfter(event: RunEvent, open: string[]): string[] {
  switch (event.type) {
    case "run.waiting": {
      const isForPeople = event.calls.every(({ waitsFor: { kind } }) => kind === "approval" || kind === "answer");
      return isForPeople ? event.calls.map(({ waitsFor }) => waitsFor.id) : [];
    }
    case "approval.decided":
      return open.filter((approvalId) => approvalId !== event.approval.approvalId);
    case "run.resumed":
    case "run.restarted":
      return [];
    default:
      return open;
  }
}

const isSeen = (): boolean => document.visibilityState !== "hidden";

/** Resolves when somebody sees the page, or the signal is aborted. Until then, its title tells what waits for a decision. */
async function untilSeen(signal: AbortSignal): Promise<void> {
  if (isSeen() || signal.aborted) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const look = setInterval(approvalsChanged, LOOK_INTERVAL_MS);
  const see = () => isSeen() && resolve();
  document.addEventListener("visibilitychange", see);
  signal.addEventListener("abort", () => resolve(), { once: true });
  await promise;
  clearInterval(look);
  document.removeEventListener("visibilitychange", see);
}
