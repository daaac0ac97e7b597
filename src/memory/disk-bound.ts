import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { Store } from "../storage/store.ts";
import type { MemoryQueue } from "./queue.ts";
import type { SearchThread } from "./search-thread.ts";

/**
 * Bounds what the indexes of an account take on the disk together. Beyond it, those that were used longest ago are given up:
 * they are derived, and built anew when they are searched. The one used last stays.
 */
export interface DiskBound {
  /** Call it after a text of the account was taken in. */
  grew(accountId: string): Promise<void>;
}

export interface DiskBoundParts {
  store: Pick<Store, "commitSoon">;
  queue: Pick<MemoryQueue, "kept" | "giveUp">;
  thread: Pick<SearchThread, "ask">;
  folder: string;
  /** Bytes of all indexes of an account. */
  mostOf(accountId: string): number;
}

/** Texts that are taken in between two looks at an account's files: they grow by a few megabytes meanwhile. */
const TEXTS_A_LOOK = 32;
const MAX_COUNTED = 10_000;

export function createDiskBound({ store, queue, thread, folder, mostOf }: DiskBoundParts): DiskBound {
  /** Texts until the next look. */
  const left = new Map<string, number>();

  async function look(accountId: string): Promise<void> {
    const indexes: { agentId: string; bytes: number; usedMs: number }[] = [];
    for (const agentId of queue.kept(accountId)) {
      const path = join(folder, `${agentId}.db`);
      const [file, log] = await Promise.all([path, `${path}-wal`].map((one) => stat(one).catch(() => null)));
      if (file) indexes.push({ agentId, bytes: file.size + (log?.size ?? 0), usedMs: file.mtimeMs });
    }
    indexes.sort((a, b) => a.usedMs - b.usedMs);
    let over = indexes.reduce((sum, { bytes }) => sum + bytes, 0) - mostOf(accountId);
    for (const { agentId, bytes } of indexes.slice(0, -1)) {
      if (over <= 0) return;
      await store.commitSoon(() => queue.giveUp(agentId), "process");
      await thread.ask({ type: "remove", agentId });
      over -= bytes;
    }
  }

  return {
    async grew(accountId) {
      const now = (left.get(accountId) ?? 1) - 1;
      if (left.size > MAX_COUNTED) left.clear();
      left.set(accountId, now > 0 ? now : TEXTS_A_LOOK);
      if (now <= 0) await look(accountId);
    },
  };
}
