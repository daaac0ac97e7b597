import type { Log } from "../lib/log.ts";
import { createBackgroundWork, pauseAfter } from "../storage/background-work.ts";
import type { ClearRows } from "../storage/removals.ts";
import type { Store } from "../storage/store.ts";

/** What remains to be done after an instance's change, in the order in which it is done. */
type Kind = "agent.deleted" | "cancel" | "instance.runway" | "instance.status" | "mcp.changed";

export interface AftermathParts {
  store: Store;
  log: Log;
  /** Cancels at most `most` runs from before the instance's last stop; returns how many. */
  cancelStopped(instanceId: string, most: number): number;
  /**
   * Reports to an agent what happened to its instance, or that both are deleted; returns how many changes that took.
   */
  tell(agentId: string, kind: Exclude<Kind, "cancel">, data: object): number;
  retryMs?: number;
}

/**
 * The consequences of a change to an instance that has many agents and runs. The change's own transaction handles the
 * first slice, which is enough for most instances; the rest follows in the background, in slices that take turns, and
 * survives a crash.
 */
export interface Aftermath {
  /** Of each kind, only the newest is reported. Call it in the transaction of the change. */
  add(instanceId: string, kind: Kind, data?: object): void;
  /** Informs everyone who follows or waits for an agent of a deleted instance, before its rows are deleted. */
  beforeClearing: ClearRows;
  /** Starts with what an earlier process left unfinished. */
  run(): void;
  settled(): Promise<void>;
  stop(): Promise<void>;
}

interface Remainder {
  instance_id: string;
  kind: Kind;
  data: string;
  told_to: string;
  told_until: string;
}

/** How many runs are cancelled and agents informed in one commit. */
export const AFTERMATH_SLICE = 100;
/** Sorts after every agent id. */
const LAST = "~";
const RETRY_MS = 5_000;

export function createAftermath(parts: AftermathParts): Aftermath {
  const { store, log, cancelStopped, tell, retryMs = RETRY_MS } = parts;
  const { sqlite } = store;
  let spent = 0;
  let at = { instance_id: "", kind: "" };

  const find = (instanceId: string, kind: Kind) =>
    sqlite
      .query<Remainder, [string, string]>("SELECT * FROM instance_aftermath WHERE instance_id = ? AND kind = ?")
      .get(instanceId, kind);
  const drop = (instanceId: string, kind: Kind) =>
    sqlite.query("DELETE FROM instance_aftermath WHERE instance_id = ? AND kind = ?").run(instanceId, kind);
  const agentsOf = (instanceId: string, after: string, last: string, limit: number) =>
    sqlite
      .query<{ id: string }, [string, string, string, number]>(
        `SELECT agent_id AS id FROM agents WHERE instance_id = ? AND removed_at IS NULL AND agent_id > ? AND agent_id <= ?
         ORDER BY agent_id LIMIT ?`,
      )
      .all(instanceId, after, last, limit);
  /** Round-robin, so that an instance with a lot left does not hold up the others. */
  const next = () => {
    const after = sqlite.query<Remainder, [string, string]>(
      `SELECT * FROM instance_aftermath WHERE (instance_id, kind) > (?, ?) ORDER BY instance_id, kind LIMIT 1`,
    );
    return after.get(at.instance_id, at.kind) ?? after.get("", "");
  };

  /** Makes at most `most` further changes for one of them; returns how many it made. */
  function slice(instanceId: string, kind: Kind, most: number): number {
    const left = find(instanceId, kind);
    if (!left) return 0;
    if (kind !== "cancel") return round(left, kind, most);
    const count = cancelStopped(instanceId, most);
    if (count < most) drop(instanceId, kind);
    return count;
  }

  /**
   * From `told_to` to the last agent; if a newer change replaced this one on the way, then also from the first agent to
   * where that happened.
   */
  function round(
    { instance_id, data, told_to, told_until }: Remainder,
    kind: Exclude<Kind, "cancel">,
    most: number,
  ): number {
    const isSecondHalf = told_to < told_until;
    const agents = agentsOf(instance_id, told_to, isSecondHalf ? told_until : LAST, most);
    const news = JSON.parse(data) as object;
    let count = 0;
    let toldTo = told_to;
    for (const { id } of agents) {
      if (count >= most) break;
      count += tell(id, kind, news);
      toldTo = id;
    }
    const isEnd = agents.length < most && toldTo === (agents.at(-1)?.id ?? told_to);
    if (isSecondHalf ? isEnd || toldTo === told_until : isEnd && told_until === "") drop(instance_id, kind);
    else {
      sqlite
        .query("UPDATE instance_aftermath SET told_to = ? WHERE instance_id = ? AND kind = ?")
        .run(isEnd ? "" : toldTo, instance_id, kind);
    }
    return count;
  }

  /** How many more changes fit into this commit, however many callers share it. */
  function roomOfCommit(): number {
    if (spent === 0) {
      const reset = () => {
        spent = 0;
      };
      store.afterCommit(reset, reset);
    }
    return AFTERMATH_SLICE - spent;
  }

  async function drain(): Promise<void> {
    for (let left = next(); left !== null && !work.isStopped(); left = next()) {
      const { instance_id, kind } = left;
      // Set before the commit, so that after a failure the next attempt starts with another one.
      at = { instance_id, kind };
      const startedMs = performance.now();
      await store.commitSoon(() => slice(instance_id, kind, AFTERMATH_SLICE), "process");
      await pauseAfter(performance.now() - startedMs);
    }
  }

  const work = createBackgroundWork({
    hasWork: () => next() !== null,
    drain,
    onFailure: (err) => log.error({ err }, "the consequences of an instance's change could not be written; retrying"),
    retryMs,
  });

  return {
    add(instanceId, kind, data = {}) {
      sqlite
        .query(
          `INSERT INTO instance_aftermath (instance_id, kind, data) VALUES (?, ?, ?)
           ON CONFLICT DO UPDATE SET data = excluded.data, told_until = told_to`,
        )
        .run(instanceId, kind, JSON.stringify(data));
      const room = roomOfCommit();
      // Plus one, so that a slice that changes nothing counts too.
      if (room > 0) spent += 1 + slice(instanceId, kind, room);
      if (find(instanceId, kind)) store.afterCommit(work.wakeSoon);
    },
    *beforeClearing(instanceId) {
      for (slice(instanceId, "agent.deleted", AFTERMATH_SLICE); find(instanceId, "agent.deleted"); ) {
        yield;
        slice(instanceId, "agent.deleted", AFTERMATH_SLICE);
      }
    },
    run: work.run,
    settled: work.settled,
    stop: work.stop,
  };
}
