import { and, asc, gt, isNull } from "drizzle-orm";
import { AppError } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import { withTimeout } from "../lib/concurrency.ts";
import type { Log } from "../lib/log.ts";
import { createBackgroundWork } from "../storage/background-work.ts";
import type { Store } from "../storage/store.ts";
import { type ReindexParts, reindex } from "./reindex.ts";
import { agents } from "./schema.ts";
import type { WorkspaceFiles } from "./workspace-files.ts";

export interface Reindexer {
  /** Queues a comparison of the workspace with the disk, unless it was compared recently. */
  soon(agentId: string): void;
  /**
   * Waits for workspaces that were never indexed, as after an upgrade; they come first. Throws `instance_not_ready` if
   * that takes longer than a request should.
   */
  ready(agents: readonly { agentId: string; indexedAt: number | null }[]): Promise<void> | null;
  /** Starts, with all that was never indexed. */
  run(): void;
  /** Resolves when nothing is left to compare. */
  settled(): Promise<void>;
  stop(): Promise<void>;
}

export interface ReindexerParts extends ReindexParts {
  store: Store;
  clock: Clock;
  log: Log;
  index: WorkspaceFiles;
}

/** A pause between two slices is a multiple of the slice before it, so that requests are served meanwhile. */
const MIN_PAUSE_MS = 4;
const PAUSE_FACTOR = 9;
const MAX_PAUSE_MS = 100;
/** The pause while a request waits for the result. */
const SHORT_PAUSE_MS = 1;
/** A workspace is compared at most this often, and then rests for a multiple of the time that it took. */
const EVERY_MS = 10_000;
const REST_FACTOR = 5;
const MAX_QUEUED = 10_000;
const READY_TIMEOUT_MS = 10_000;
const RETRY_MS = 5_000;

/** Compares workspaces with the disk outside of requests: one at a time on the whole host, in slices. */
export function createReindexer(parts: ReindexerParts, retryMs = RETRY_MS): Reindexer {
  const { store, clock, log, index } = parts;
  const queue = new Set<string>();
  const awaited = new Map<string, PromiseWithResolvers<void>>();
  /** When each may be compared again, in milliseconds of the monotonic clock. */
  const restUntil = new Map<string, number>();
  let lastUnindexed = "";

  const nextUnindexed = () =>
    store.db
      .select({ agentId: agents.agentId })
      .from(agents)
      .where(and(isNull(agents.indexedAt), isNull(agents.removedAt), gt(agents.agentId, lastUnindexed)))
      .orderBy(asc(agents.agentId))
      .limit(1)
      .get()?.agentId;

  function next(): string | undefined {
    const [first = queue.values().next().value] = awaited.keys();
    return first ?? nextUnindexed();
  }

  async function compare(agentId: string): Promise<void> {
    const slices = reindex(parts, agentId);
    while (!work.isStopped()) {
      const startedMs = performance.now();
      const slice = await slices.next();
      if (slice.done) {
        if (slice.value) await store.commitSoon(() => index.noteIndexed(agentId, clock.now()), "process");
        return;
      }
      const share = Math.max(MIN_PAUSE_MS, PAUSE_FACTOR * (performance.now() - startedMs));
      await Bun.sleep(awaited.size > 0 ? SHORT_PAUSE_MS : Math.min(share, MAX_PAUSE_MS));
    }
  }

  async function compareAll(): Promise<void> {
    for (let agentId = next(); agentId !== undefined && !work.isStopped(); agentId = next()) {
      const startedMs = performance.now();
      if (!queue.delete(agentId) && !awaited.has(agentId)) lastUnindexed = agentId;
      try {
        await compare(agentId);
        // Looked up only now: a request may have come meanwhile.
        awaited.get(agentId)?.resolve();
      } catch (err) {
        log.error({ err, agentId }, "a workspace could not be compared with its index");
        awaited.get(agentId)?.reject(err);
      } finally {
        awaited.delete(agentId);
        const endedMs = performance.now();
        if (restUntil.size >= MAX_QUEUED) restUntil.clear();
        restUntil.set(agentId, endedMs + Math.max(EVERY_MS, REST_FACTOR * (endedMs - startedMs)));
      }
    }
  }

  const work = createBackgroundWork({
    hasWork: () => next() !== undefined,
    drain: compareAll,
    onFailure: (err) => log.error({ err }, "no workspace could be compared with its index; retrying"),
    retryMs,
  });

  function wait(agentId: string): Promise<void> {
    const waiting = awaited.get(agentId) ?? Promise.withResolvers<void>();
    awaited.set(agentId, waiting);
    work.wakeSoon();
    return waiting.promise;
  }

  return {
    soon(agentId) {
      if (queue.size >= MAX_QUEUED || performance.now() < (restUntil.get(agentId) ?? 0)) return;
      queue.add(agentId);
      work.wakeSoon();
    },
    ready(some) {
      const unknown = some.filter(({ indexedAt }) => indexedAt === null);
      if (unknown.length === 0) return null;
      return withTimeout(Promise.all(unknown.map(({ agentId }) => wait(agentId))), READY_TIMEOUT_MS).then((done) => {
        if (done !== null) return;
        throw new AppError("instance_not_ready", "the workspaces are being read after an upgrade; try again", {
          retryAfterSeconds: 5,
        });
      });
    },
    run: work.run,
    settled: work.settled,
    async stop() {
      await work.stop();
      for (const { reject } of awaited.values()) reject(new Error("the server is stopping"));
    },
  };
}
