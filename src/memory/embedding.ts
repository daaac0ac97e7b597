import type { Log } from "../lib/log.ts";
import type { EmbedTexts } from "../models/local/embeddings.ts";
import type { Store } from "../storage/store.ts";
import type { MemoryQueue } from "./queue.ts";
import { LostIndexError, type SearchThread } from "./search-thread.ts";

/** Computes the vectors of what has none, by the embedding model, which others use too: searches go first. */
export interface Embedding {
  /** Of a query; null, with the reason, if there is none in time, by default a second. */
  ofQuery(query: string, withinMs?: number): Promise<{ vector: Float32Array } | { vector: null; reason: string }>;
  run(): void;
  stop(): Promise<void>;
}

export interface EmbeddingParts {
  store: Pick<Store, "commitSoon">;
  log: Log;
  queue: Pick<MemoryQueue, "vectors">;
  thread: Pick<SearchThread, "ask">;
  embed: EmbedTexts;
  /** Whether the embedded model is answering somebody. */
  isChatting(): boolean;
}

/** A query waits no longer: in so long, the model can be loaded on a machine that is not busy. */
const QUERY_MS = 1_000;
/** Nor does a text to be found later, for whose sake nobody waits. */
const TEXT_MS = 60_000;
const LOOK_MS = 1_000;
/** After a failure. */
const RETRY_MS = 30_000;
/** Whoever searches goes first: texts wait for so long after a query, and not much longer if there are many. */
const QUIET_MS = 250;
const MOST_QUIET_MS = 1_000;
/** As many times as long as the vectors took, the processor is left to others: more while somebody is being answered. */
const PAUSE = 1;
const PAUSE_BESIDE_CHAT = 3;
/** The model reads no more of a text. */
const MAX_CHARACTERS = 2_000;

/** An index that is lost, at any moment, is built anew, which asks for vectors again; or its agent is gone. */
const ifLost =
  <T>(instead: T) =>
  (error: unknown): T => {
    if (error instanceof LostIndexError) return instead;
    throw error;
  };

export function createEmbedding({ store, log, queue, thread, embed, isChatting }: EmbeddingParts): Embedding {
  const ended = new AbortController();
  let timer: ReturnType<typeof setInterval> | undefined;
  let work: Promise<void> | null = null;
  let restUntil = 0;
  let queriedMs = Number.NEGATIVE_INFINITY;

  async function letQueriesGo(): Promise<void> {
    const until = performance.now() + MOST_QUIET_MS;
    for (;;) {
      const leftMs = Math.min(until, queriedMs + QUIET_MS) - performance.now();
      if (leftMs <= 0) return;
      await Bun.sleep(leftMs);
    }
  }

  async function embedSome(accountId: string, agentId: string): Promise<void> {
    await letQueriesGo();
    // One at a time: a query that comes in between waits for no more.
    const texts = await thread.ask({ type: "pending", agentId, limit: 1 }).catch(ifLost([]));
    if (texts.length === 0) {
      await store.commitSoon(() => queue.vectors.done(accountId, agentId), "process");
      return;
    }
    const startedMs = performance.now();
    const vectors = await embed(
      texts.map(({ text }) => text.slice(0, MAX_CHARACTERS)),
      AbortSignal.any([ended.signal, AbortSignal.timeout(TEXT_MS)]),
    );
    const tookMs = performance.now() - startedMs;
    const computed = texts.flatMap(({ id }, at) => (vectors[at] ? [{ id, vector: vectors[at] }] : []));
    await thread.ask({ type: "vectors", agentId, vectors: computed }).catch(ifLost(null));
    await Bun.sleep((isChatting() ? PAUSE_BESIDE_CHAT : PAUSE) * tookMs);
  }

  async function drain(): Promise<void> {
    let account = "";
    while (!ended.signal.aborted) {
      const due = queue.vectors.next(account);
      if (due === undefined) return;
      account = due.accountId;
      await embedSome(due.accountId, due.agentId);
    }
  }

  function wake(): void {
    if (work !== null || performance.now() < restUntil || ended.signal.aborted) return;
    work = drain()
      .catch((err: unknown) => {
        if (ended.signal.aborted) return;
        restUntil = performance.now() + RETRY_MS;
        log.warn({ err }, "texts of agents' memories have no vectors yet: they are found by their words only");
      })
      .finally(() => {
        work = null;
      });
  }

  return {
    async ofQuery(query, withinMs = QUERY_MS) {
      queriedMs = performance.now();
      try {
        const signal = AbortSignal.any([ended.signal, AbortSignal.timeout(withinMs)]);
        const [vector] = await embed([query.slice(0, MAX_CHARACTERS)], signal, { whoWaits: "somebody" });
        return vector === undefined ? { vector: null, reason: BROKEN } : { vector };
      } catch (err) {
        const isLate = err instanceof DOMException && err.name === "TimeoutError";
        // The first search is often late, because it has the model loaded.
        if (isLate) log.debug("the embedding model was late for a search of a memory");
        else if (!ended.signal.aborted) log.warn({ err }, "a memory was searched without the embedding model");
        return { vector: null, reason: isLate ? LATE : BROKEN };
      }
    },
    run() {
      timer = setInterval(wake, LOOK_MS).unref();
    },
    async stop() {
      clearInterval(timer);
      ended.abort(new Error("the host is stopping"));
      await work;
    },
  };
}

const BROKEN = "the embedding model cannot be used, so only the words of the query were searched for";
const LATE = "the embedding model did not answer in time, so only the words of the query were searched for";
