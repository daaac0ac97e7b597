import type { Agents } from "../agents/agents.ts";
import type { Agent } from "../agents/schema.ts";
import { withTimeout } from "../lib/concurrency.ts";
import type { Log } from "../lib/log.ts";
import { pauseAfter } from "../storage/background-work.ts";
import type { Store } from "../storage/store.ts";
import type { DiskBound } from "./disk-bound.ts";
import { BEGINNING, type MemoryQueue } from "./queue.ts";
import type { Queued } from "./schema.ts";
import type { Source } from "./search/entry.ts";
import { IndexTroubleError, LostIndexError, type SearchThread } from "./search-thread.ts";
import type { Sources } from "./sources.ts";

/** Keeps the indexes up with what is written, besides everything else: accounts take turns, one source at a time. */
export interface Indexing {
  /** Resolves when what was written of the agent can be found by its words, or after `ms`. */
  catchUp(agentId: string, ms: number): Promise<void>;
  /** Whether what was written of the agent could not be taken in, and is tried again later. */
  isBehind(agentId: string): boolean;
  /** Looks for work, now and from time to time. */
  run(): void;
  /** Resolves when all texts that were written can be found by their words. */
  settled(): Promise<void>;
  stop(): Promise<void>;
}

export interface IndexingParts {
  store: Store;
  log: Log;
  queue: MemoryQueue;
  sources: Sources;
  thread: Pick<SearchThread, "ask">;
  agents: Pick<Agents, "find">;
  bound: DiskBound;
}

/** How often the queue is looked at: triggers of the database fill it, which wake nobody. */
const LOOK_MS = 250;
const RETRY_MS = 2_000;
/** What is in trouble is tried again after a pause that is twice as long each time, up to this. */
const MAX_REST_MS = 3_600_000;
/** Files that are queued in one commit. */
const FILES_AT_ONCE = 250;
/** Sources between two pauses, and the time that each takes of this thread at most. */
const SOURCES_A_PAUSE = 4;
const MOST_MS = 2;
/** How often a text is tried that is itself the reason why it cannot be taken in. */
const MAX_TRIES = 3;

export function createIndexing(
  { store, log, queue, sources, thread, agents, bound }: IndexingParts,
  retryMs = RETRY_MS,
): Indexing {
  /** Agents whose memories are waited for. */
  const awaited = new Map<string, PromiseWithResolvers<void>>();
  const failures = new Map<string, number>();
  /** Agents of which nothing can be taken in until a pause is over: others go on meanwhile. */
  const resting = new Map<string, { untilMs: number; forMs: number }>();
  let timer: ReturnType<typeof setInterval> | undefined;
  let work: Promise<void> | null = null;
  let stopped = false;
  let restUntil = 0;
  let lookFrom = 0;

  const commit = (change: () => void) => store.commitSoon(change, "process");

  /** Without an index there is nothing to forget: an agent that has only the host's own files has none. */
  async function drop(agentId: string, source: Source): Promise<void> {
    try {
      await thread.ask({ type: "drop", agentId, source });
    } catch (error) {
      if (!(error instanceof LostIndexError)) throw error;
    }
  }

  /** Takes one source into its agent's index. Returns whether that is all of it. */
  async function take(agent: Agent, { accountId, kind, agentId, source }: Queued): Promise<boolean> {
    switch (kind) {
      case "all": {
        if (source === BEGINNING) {
          await thread.ask({ type: "rebuild", agentId });
          await commit(() => queue.addConversations(accountId, agentId));
        }
        await commit(() => {
          const last = queue.addFiles(accountId, agentId, source, FILES_AT_ONCE);
          const next =
            last === null ? ({ kind: "swept", source: BEGINNING } as const) : ({ kind: "all", source: last } as const);
          queue.add({ accountId, agentId, ...next });
        });
        return true;
      }
      case "swept":
        await thread.ask({ type: "rebuilt", agentId });
        return true;
      case "file": {
        const file = sources.file(agent, source);
        if (file === null) await drop(agentId, { kind, name: source });
        else await thread.ask({ type: "file", agentId, file });
        return true;
      }
      case "conversation":
        return takeConversation(agentId, source);
    }
  }

  async function takeConversation(agentId: string, conversationId: string): Promise<boolean> {
    const from = { kind: "conversation", name: conversationId } as const;
    const visible = sources.conversation(agentId, conversationId);
    if (visible === null) {
      await drop(agentId, from);
      return true;
    }
    const after = await thread.ask({ type: "position", agentId, conversationId });
    const known = Math.max(after, visible.firstSeq - 1);
    const { messages, upTo, hasMore } = sources.messages(conversationId, known);
    if (after > 0) {
      // Read together with the messages: what was forgotten up to an earlier one has been dropped already.
      const { upTo: all, runIds } = sources.forgotten(conversationId, after);
      const gone = { upTo: Math.max(all, visible.firstSeq - 1), runIds };
      await thread.ask({ type: "drop", agentId, source: from, gone });
    }
    if (upTo > known) await thread.ask({ type: "messages", agentId, conversationId, messages, upTo });
    return !hasMore;
  }

  /** Returns whether it is given up: a text that is fine is kept for better times. */
  function fail({ kind, agentId, source }: Queued, err: unknown): boolean {
    const isOfText = (kind === "file" || kind === "conversation") && !(err instanceof IndexTroubleError);
    const key = keyOf({ kind, agentId, source });
    const tries = (failures.get(key) ?? 0) + 1;
    if (isOfText) {
      if (failures.size > 1_000) failures.clear();
      failures.set(key, tries);
    }
    const before = resting.get(agentId);
    const forMs = isOfText || before === undefined ? retryMs : Math.min(2 * before.forMs, MAX_REST_MS);
    resting.set(agentId, { untilMs: performance.now() + forMs, forMs });
    if (isOfText) log.error({ err, agentId, source }, "a text could not be taken into an agent's memory");
    else if (before === undefined) {
      log.error(
        { err, agentId, source },
        "nothing can be taken into an agent's memory; it is tried again from time to time",
      );
    }
    if (!isOfText || tries < MAX_TRIES) return false;
    resting.delete(agentId);
    return true;
  }

  const isResting = (agentId: string) => (resting.get(agentId)?.untilMs ?? 0) > performance.now();

  /** What is left is only of agents that rest: triggers write of others meanwhile, which is found a little later. */
  function rest(): void {
    for (const agentId of resting.keys()) if (queue.nextOf(agentId) === undefined) resting.delete(agentId);
    if (resting.size > 0) lookFrom = performance.now() + retryMs;
  }

  async function takeOne(row: Queued): Promise<void> {
    const { accountId, kind, agentId } = row;
    const agent = agents.find(agentId);
    let [isDone, hasTexts] = [true, false];
    try {
      if (agent !== undefined) {
        isDone = await take(agent, row);
        hasTexts = kind === "file" || kind === "conversation";
        if (hasTexts) await bound.grew(accountId);
      }
      failures.delete(keyOf(row));
      resting.delete(agentId);
    } catch (err) {
      if (stopped) return;
      if (err instanceof LostIndexError) await commit(() => queue.addAll(accountId, agentId));
      else isDone = fail(row, err);
    }
    await commit(() => {
      if (hasTexts) queue.vectors.add(accountId, agentId);
      if (isDone) queue.done(row);
    });
  }

  async function drain(): Promise<void> {
    let account = "";
    let taken = 0;
    while (!stopped && performance.now() >= restUntil) {
      for (const [agentId, { resolve }] of [...awaited]) {
        const row = isResting(agentId) ? undefined : queue.nextOf(agentId);
        if (row !== undefined) await takeOne(row);
        if (row === undefined || isResting(agentId) || queue.nextOf(agentId) === undefined) {
          awaited.delete(agentId);
          resolve();
        }
      }
      const row = queue.next(account, [...resting.keys()].filter(isResting));
      if (row === undefined) return rest();
      account = row.accountId;
      await takeOne(row);
      // Mostly it waits for the index's thread, so a pause now and then is enough.
      if (++taken % SOURCES_A_PAUSE === 0 && awaited.size === 0) await pauseAfter(MOST_MS);
    }
  }

  function wake(): void {
    if (stopped || work !== null || timer === undefined) return;
    if (awaited.size === 0 && queue.isEmpty()) return;
    work = drain()
      .catch((err: unknown) => {
        restUntil = performance.now() + retryMs;
        if (!stopped) log.error({ err }, "agents' memories could not be brought up to date; retrying");
      })
      .finally(() => {
        work = null;
      });
  }

  return {
    async catchUp(agentId, ms) {
      if (queue.nextOf(agentId) === undefined) return;
      const waiting = awaited.get(agentId) ?? Promise.withResolvers<void>();
      awaited.set(agentId, waiting);
      wake();
      await withTimeout(waiting.promise, ms);
    },
    isBehind: (agentId) => resting.has(agentId),
    run() {
      timer = setInterval(() => {
        if (performance.now() >= lookFrom) wake();
      }, LOOK_MS).unref();
    },
    async settled() {
      while (!stopped && !queue.isEmpty()) {
        wake();
        await work;
        await Bun.sleep(5);
      }
    },
    async stop() {
      stopped = true;
      clearInterval(timer);
      await work;
      for (const { resolve } of awaited.values()) resolve();
    },
  };
}

const keyOf = ({ kind, agentId, source }: Pick<Queued, "kind" | "agentId" | "source">) =>
  `${agentId} ${kind} ${source}`;
