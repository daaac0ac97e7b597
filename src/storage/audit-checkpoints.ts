import { createPublicKey, type KeyObject, sign, verify } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { readPrivateJson, writePrivateFile } from "../lib/private-file.ts";
import { auditQueries, follows, GENESIS } from "./audit-queries.ts";
import type { Checkpoint } from "./schema.ts";
import type { Store } from "./store.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
/** A checkpoint is signed a day after the last one, and after so many rows: also the most that is looked at in one go. */
const EVERY_ROWS = 1_000;

/** How long, and how many, rows are kept; beyond either the oldest go. */
export interface Retention {
  keptMs: number;
  mostRows: number;
}
export const RETENTION: Retention = { keptMs: 400 * DAY_MS, mostRows: 1_000_000 };

/** True for rows up to this checkpoint, once `rows` in all are signed. */
export const isOver = (checkpoint: Checkpoint, rows: number, nowMs: number, { keptMs, mostRows }: Retention): boolean =>
  checkpoint.createdAt <= nowMs - keptMs || rows - checkpoint.rows >= mostRows;

const textOf = ({ auditId, hash, rows, createdAt }: Omit<Checkpoint, "signature">): Buffer =>
  Buffer.from(`roost audit checkpoint\n${auditId}\n${hash.toString("hex")}\n${rows}\n${createdAt}`);

export const isSigned = (checkpoint: Checkpoint, publicKey: KeyObject): boolean =>
  verify(null, textOf(checkpoint), publicKey, checkpoint.signature);

const headPath = (dataDir: string) => join(dataDir, "audit-head.json");

/**
 * The newest checkpoint as the file beside the database tells it; null where none was signed. Who has the database alone
 * could take the newest checkpoints away and go on from an older one, or from none. Throws when it cannot be read.
 */
export function readHead(dataDir: string): Pick<Checkpoint, "auditId" | "hash"> | null {
  const path = headPath(dataDir);
  if (!existsSync(path)) return null;
  const { auditId, hash } = readPrivateJson(path) as { auditId: number; hash: string };
  return { auditId, hash: Buffer.from(hash, "hex") };
}

function writeHead(dataDir: string, { auditId, hash, createdAt }: Checkpoint): void {
  writePrivateFile(headPath(dataDir), JSON.stringify({ auditId, hash: hash.toString("hex"), createdAt }));
}

export interface CheckpointParts {
  store: Store;
  clock: Clock;
  log: Log;
  dataDir: string;
  /** Ed25519, private half. */
  key: KeyObject;
  retention?: Retention;
}

export interface Checkpoints {
  /** Signs what is due, in slices. Throws where the chain does not lead on from the last one: nothing is signed then. */
  sign(): Promise<void>;
  /** Removes rows that are over, from one checkpoint to the next. Throws where those were changed: they stay then. */
  prune(): Promise<void>;
}

/** For the server alone: it holds the key, and nobody else signs. */
export function createCheckpoints(parts: CheckpointParts): Checkpoints {
  const { store, clock, log, dataDir, key, retention = RETENTION } = parts;
  const queries = auditQueries(store.db);
  const publicKey = createPublicKey(key);

  /** The hash and the number of the rows behind a checkpoint (or the beginning) up to `end`. Throws at a break. */
  function walk(from: Checkpoint | undefined, end: number): { hash: Buffer; rows: number; auditId: number } | null {
    if (from && !isSigned(from, publicKey))
      throw broken(`the checkpoint at row ${from.auditId} is not signed by this host`);
    let at = { hash: from?.hash ?? GENESIS, rows: from?.rows ?? 0, auditId: from?.auditId ?? 0 };
    const rows = queries.read(at.auditId, EVERY_ROWS).filter(({ auditId }) => auditId <= end);
    for (const row of rows) {
      if (!follows(at.hash, row)) throw broken(`row ${row.auditId} does not follow from the one before it`);
      at = { hash: row.hash, rows: at.rows + 1, auditId: row.auditId };
    }
    return rows.length === 0 ? null : at;
  }

  /** The next checkpoint, signed and written; null where none is due. */
  function signNext(): Checkpoint | null {
    const last = queries.newestCheckpoint();
    const head = readHead(dataDir);
    if (head !== null && (last === undefined || last.auditId < head.auditId)) {
      throw broken(`the checkpoint at row ${head.auditId} is gone from the database`);
    }
    const reached = walk(last, Number.MAX_SAFE_INTEGER);
    if (reached === null) return null;
    const createdAt = clock.now();
    const isFull = reached.rows - (last?.rows ?? 0) === EVERY_ROWS;
    if (!isFull && last && createdAt - last.createdAt < DAY_MS) return null;
    const told = { ...reached, createdAt };
    const checkpoint = { ...told, signature: sign(null, textOf(told), key) };
    queries.addCheckpoint(checkpoint);
    return checkpoint;
  }

  /** Removes what is over up to the next checkpoint; false where nothing is. */
  function pruneNext(): boolean {
    const [oldest] = queries.read(0, 1);
    const newest = queries.newestCheckpoint();
    if (!oldest || !newest) return false;
    const [next] = queries.checkpointsFrom(oldest.auditId, 1);
    // The newest one's own row stays, so that there is always one to show that the log was not cut off before it.
    if (!next || next.auditId === newest.auditId || !isOver(next, newest.rows, clock.now(), retention)) return false;
    const reached = walk(queries.checkpointBefore(oldest.auditId), next.auditId);
    if (!reached?.hash.equals(next.hash)) throw broken(`the checkpoint at row ${next.auditId} does not fit its row`);
    queries.removeUpTo(next.auditId);
    return true;
  }

  return {
    async sign() {
      let newest: Checkpoint | null = null;
      for (let signed = await next(); signed !== null; signed = await next()) newest = signed;
      if (newest === null) return;
      writeHead(dataDir, newest);
      // The log is elsewhere, and tells later what the chain's head was.
      const { auditId, rows, hash } = newest;
      log.info({ event: "audit_checkpoint", auditId, rows, hash: hash.toString("hex") }, "signed the audit log");
      function next() {
        return store.commitSoon(signNext, "full");
      }
    },
    async prune() {
      while (await store.commitSoon(pruneNext, "process"));
    },
  };
}

const broken = (what: string): Error =>
  new Error(`the audit log was changed: ${what}; nothing of it is signed or removed until that is mended`);
