import { type AgentIds, RoostError } from "../../../clients/typescript/src/index.ts";
import { roost } from "./api.ts";
import { type Exchange, makeExchange } from "./exchange.ts";
import type { LogEnd } from "./log-end.ts";
import { newestRuns } from "./newest-runs.ts";
import { approvalsChanged } from "./open-approvals.ts";
import { AGENT, type Message, type Run } from "./records.ts";
import { followRun, type StreamOptions } from "./run-stream.ts";
import { sendMessage } from "./send-message.ts";

/** The open conversation with one agent. */
export interface Talk {
  /** Resolves when the conversation is loaded. Throws if it cannot be. */
  loaded: Promise<void>;
  /** Sends a message and shows it at once. If it is rejected, removes it again and throws. */
  send(text: string): Promise<void>;
  /** Cancels the run in progress; its partial answer is kept. */
  cancel(): Promise<void>;
  loadEarlier(): Promise<void>;
  /** Shows messages sent elsewhere: in another tab, or by a program. */
  catchUp(): Promise<void>;
  close(): void;
}

export interface TalkParts {
  agent: AgentIds;
  agentName: string;
  /** Null for the default one. */
  conversationId: string | null;
  log: HTMLElement;
  logEnd: LogEnd;
  /** Called when runs start or wait, and when none do any more. */
  busy(is: boolean): void;
  /** Called when a run has ended, and when the conversation is loaded. */
  settled(): void;
  hasEarlier(has: boolean): void;
  /** Called with a message whose run has failed, to send it again. */
  again(text: string): void;
  failed(error: unknown): void;
  /** Called with what interrupts the following of a run, until the next look. */
  lost(error: unknown): void;
  /** Called when the conversation is loaded, and with all that comes of its runs. */
  answered(): void;
}

interface Turn {
  runId: string;
  exchange: Exchange;
  /** The last event that is shown. */
  after?: number;
}

const UNFINISHED = new Set(["queued", "running", "waiting"]);
const PAGE = 50;
/** A run that could not be followed is followed again at the next look, later after a pause that grows. */
const RETRY_MS = { least: 15_000, most: 10 * 60_000 };
const PATH = `${AGENT}/messages` as const;

/** Loads the conversation and follows its runs one after the other, in the order in which they are answered. */
export function openTalk(parts: TalkParts): Talk {
  const { agent, agentName, log, logEnd, busy, settled, hasEarlier, again, failed, lost, answered } = parts;
  const conversationId = parts.conversationId ?? undefined;
  const closing = new AbortController();
  const exchanges = new Map<string, Exchange>();
  /** Unfinished runs in order; the first is followed. */
  const turns: Turn[] = [];
  /** Messages that are shown. */
  const shown = new Set<string>();
  /** Runs that are over, and shown as that, whether or not they have answered. */
  const over = new Set<string>();
  let earlier: string | null = null;
  /** The conversation's newest, by id. */
  let runs: ReadonlyMap<string, Run> = new Map();
  /** Of what was last loaded; null before anything was. */
  let newest: string | undefined | null = null;
  let following = false;
  /** When the first turn, once it could not be followed, is followed again. */
  let retryAtMs = 0;
  let retryMs = 0;
  let unsent = 0;
  let loading: Promise<void> = Promise.resolve();

  const newExchange = () => makeExchange(agent.instanceId, agentName, logEnd.keep, again);
  const cancelRun = (runId: string) => roost.post(`${AGENT}/runs/{runId}/cancel`, { path: { ...agent, runId } });
  const eventsOf = (runId: string, more?: Partial<StreamOptions>) =>
    followRun(agent, runId, { signal: closing.signal, ...more });

  /** Shows what of the page is not shown yet, where it belongs; what is newest before `next`, or at the end. */
  function showPage(page: readonly Message[], next: Element | null): void {
    const inOrder = new Set<HTMLElement>();
    for (const message of page) {
      const exchange = exchanges.get(message.runId) ?? newExchange();
      exchanges.set(message.runId, exchange);
      inOrder.add(exchange.element);
      // The answer of a run that is followed comes with its events.
      if (shown.has(message.messageId) || (message.role === "agent" && isFollowed(message.runId))) continue;
      shown.add(message.messageId);
      if (message.role === "user") exchange.ask(message);
      else exchange.finish(message);
    }
    for (const element of [...inOrder].reverse()) {
      // One that stands there already keeps its place, and the focus that may be in it.
      if (element.parentNode !== log) log.insertBefore(element, next);
      next = element;
    }
  }

  function enqueue(turn: Turn): void {
    turns.push(turn);
    if (turns.length === 1) turn.exchange.begin();
    else turn.exchange.wait(() => withdraw(turn));
    void follow();
  }

  async function withdraw(turn: Turn): Promise<void> {
    try {
      await cancelRun(turn.runId);
      // If its turn has come meanwhile, its events show how it ends.
      if (turns.indexOf(turn) > 0) {
        turns.splice(turns.indexOf(turn), 1);
        over.add(turn.runId);
        turn.exchange.explain("cancelled");
      }
    } catch (error) {
      failed(error);
    }
  }

  async function follow(): Promise<void> {
    if (following || turns.length === 0) return;
    following = true;
    busy(true);
    log.setAttribute("aria-busy", "true");
    try {
      for (let [turn] = turns; turn && !closing.signal.aborted; [turn] = turns) {
        const { runId, exchange } = turn;
        exchange.begin();
        const away = (is: boolean) => logEnd.keep(() => exchange.reconnect(is));
        try {
          for await (const event of eventsOf(runId, { after: turn.after, away })) {
            answered();
            // Not the newest for that: another message may have come meanwhile.
            if (event.type === "message.completed") shown.add(event.message.messageId);
            logEnd.keep(() => exchange.show(event));
            turn.after = event.id;
            retryMs = 0;
          }
        } catch (error) {
          // Its events are no longer kept, or it was deleted with its agent: that will not change.
          if (!(error instanceof RoostError && error.code === "not_found")) throw error;
          exchange.lose();
          answered();
        }
        turns.shift();
        over.add(runId);
        settled();
      }
    } catch (error) {
      turns[0]?.exchange.lose();
      retryAtMs = Date.now() + retryMs;
      retryMs = Math.min(Math.max(2 * retryMs, RETRY_MS.least), RETRY_MS.most);
      if (!closing.signal.aborted) lost(error);
    } finally {
      following = false;
      if (!closing.signal.aborted) {
        busy(false);
        log.setAttribute("aria-busy", "false");
      }
    }
  }

  /**
   * Shows of the runs of this page that are over why there is no answer, or no whole one, and offers what they did; returns
   * those that are not over.
   */
  function showEnds(page: readonly Message[]): Turn[] {
    const answered = new Set(page.filter(({ role }) => role === "agent").map(({ runId }) => runId));
    const found: Turn[] = [];
    for (const { role, runId, usage } of page) {
      const exchange = exchanges.get(runId);
      if (!exchange || over.has(runId) || isFollowed(runId) || (role === "user" && answered.has(runId))) continue;
      const run = runs.get(runId);
      if (run?.status === "cancelled") exchange.explain(run.status);
      else if (run?.status === "failed") exchange.fail(run.error?.message ?? run.status);
      else if (role === "user") {
        // One that has just ended well has its answer at the next look.
        if (run && UNFINISHED.has(run.status)) found.push({ runId, exchange });
        continue;
      }
      over.add(runId);
      if (mayHaveSteps(run, role === "agent" ? usage : run?.usage)) exchange.offerSteps(() => eventsOf(runId));
    }
    return found;
  }
  const isFollowed = (runId: string) => turns.some((turn) => turn.runId === runId);

  async function load(): Promise<void> {
    const page = await roost.get(PATH, { path: agent, query: { order: "desc", limit: PAGE, conversationId } });
    if (closing.signal.aborted) return;
    if (!page.data.some(({ messageId }) => shown.has(messageId))) {
      // The first load; or everything shown was cleared elsewhere, or is far behind.
      if (following) return;
      turns.length = 0;
      exchanges.clear();
      shown.clear();
      over.clear();
      log.replaceChildren();
    }
    const inOrder = page.data.reverse();
    if (exchanges.size > 0) logEnd.keep(() => showPage(inOrder, null));
    else {
      earlier = page.nextCursor;
      hasEarlier(earlier !== null);
      showPage(inOrder, null);
      logEnd.go();
    }
    const latest = inOrder.at(-1);
    if (latest) runs = await newestRuns(agent, latest.conversationId);
    if (closing.signal.aborted) return;
    logEnd.keep(() => showEnds(inOrder).forEach(enqueue));
    newest = latest?.messageId;
    answered();
    settled();
  }

  const loaded = load();
  loading = loaded;
  return {
    loaded,
    async send(text) {
      // A load in progress might already include this message, so wait for it.
      unsent++;
      await loading.catch(() => undefined);
      const exchange = newExchange();
      exchange.ask({ message: text });
      exchange.begin();
      // Who went to another conversation meanwhile reads it there, once it is sent.
      if (!closing.signal.aborted) {
        log.append(exchange.element);
        logEnd.go(exchange.element);
      }
      try {
        const { runId, messageId } = await sendMessage(agent, conversationId, text);
        if (closing.signal.aborted) return;
        shown.add(messageId);
        exchanges.set(runId, exchange);
        logEnd.keep(() => enqueue({ runId, exchange }));
      } catch (error) {
        exchange.element.remove();
        throw error;
      } finally {
        unsent--;
      }
    },
    async cancel() {
      const [turn] = turns;
      if (!turn) return;
      await cancelRun(turn.runId);
      // What it waited for can no longer be decided.
      approvalsChanged();
    },
    async loadEarlier() {
      if (earlier === null) return;
      const page = await roost.get(PATH, {
        path: agent,
        query: { order: "desc", limit: PAGE, after: earlier, conversationId },
      });
      if (closing.signal.aborted) return;
      earlier = page.nextCursor;
      hasEarlier(earlier !== null);
      const fromEnd = log.scrollHeight - log.scrollTop;
      showPage(page.data.reverse(), log.firstElementChild);
      showEnds(page.data);
      log.scrollTop = log.scrollHeight - fromEnd;
    },
    catchUp() {
      // One look after the other, and none beside a load: two would both follow the runs that they find.
      loading = loading
        .catch(() => undefined)
        .then(async () => {
          if (closing.signal.aborted || unsent > 0) return;
          const page = await roost.get(PATH, { path: agent, query: { order: "desc", limit: 1, conversationId } });
          if (closing.signal.aborted || unsent > 0) return;
          const isNews = page.data[0]?.messageId !== newest;
          if (isNews || Date.now() >= retryAtMs) void follow();
          if (isNews) await load();
        });
      return loading;
    },
    close: () => closing.abort(),
  };
}

/**
 * Whether it may have called tools, or is not known: after a call of the model that was not its last, or not cut off. What
 * an answer has used is without one that was.
 */
const mayHaveSteps = (run: Run | undefined, usage: Message["usage"] | undefined): boolean =>
  !run || run.steps > 1 || (run.status === "cancelled" && usage !== null);
