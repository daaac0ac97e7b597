import { createPublicKey, type KeyObject, sign, verify } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { DAY_MS } from "../lib/calendar.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { readPrivateJson, writePrivateFile } from "../lib/private-file.ts";
import { auditQueries, follows, GENESIS } from "./audit-queries.ts";
import type { Life } from "./retention.ts";
import type { AuditCut, Checkpoint } from "./schema.ts";
import type { Store } from "./store.ts";

/** A checkpoint is signed every day, and every so many rows; also the number of rows read in one slice. */
const CHECKPOINT_ROWS = 1_000;

/** The oldest rows are removed beyond either bound. */
export interface AuditRetention {
  maxAgeMs: number;
  maxRows: number;
}
export const AUDIT_RETENTION: AuditRetention = { maxAgeMs: 400 * DAY_MS, maxRows: 1_000_000 };

/** Whether the rows up to this checkpoint may be removed, once `rows` in all are signed. */
export const isExpired = (
  checkpoint: Checkpoint,
  rows: number,
  nowMs: number,
  { maxAgeMs, maxRows }: AuditRetention,
): boolean => checkpoint.createdAt <= nowMs - maxAgeMs || rows - checkpoint.rows >= maxRows;

const textOf = ({ auditId, hash, rows, createdAt }: Omit<Checkpoint, "signature">): Buffer =>
  Buffer.from(`roost audit checkpoint\n${auditId}\n${hash.toString("hex")}\n${rows}\n${createdAt}`);

export const isSigned = (checkpoint: Checkpoint, publicKey: KeyObject): boolean =>
  verify(null, textOf(checkpoint), publicKey, checkpoint.signature);

const cutTextOf = ({ auditId, createdAt }: Omit<AuditCut, "signature">): Buffer =>
  Buffer.from(`roost audit cut\n${auditId}\n${createdAt}`);

/** Whether the host itself has removed the rows up to there. */
export const isSignedCut = (cut: AuditCut, publicKey: KeyObject): boolean =>
  verify(null, cutTextOf(cut), publicKey, cut.signature);

const headPath = (dataDir: string) => join(dataDir, "audit-head.json");

/**
 * The newest checkpoint according to the file beside the database; null if none was signed. Without this file, somebody
 * with write access to the database alone could drop the newest checkpoints unnoticed. Throws when it cannot be read.
 */
export function readAuditHead(dataDir: string): Pick<Checkpoint, "auditId" | "hash"> | null {
  const path = headPath(dataDir);
  if (!existsSync(path)) return null;
  const { auditId, hash } = Object(readPrivateJson(path)) as { auditId?: unknown; hash?: unknown };
  if (typeof auditId === "number" && typeof hash === "string") return { auditId, hash: Buffer.from(hash, "hex") };
  throw new Error(`${path} holds no checkpoint; restore it from a copy of the data folder`);
}

function writeHead(dataDir: string, { auditId, hash, createdAt }: Checkpoint): void {
  writePrivateFile(headPath(dataDir), JSON.stringify({ auditId, hash: hash.toString("hex"), createdAt }));
}

export interface AuditCheckpointParts {
  store: Store;
  clock: Clock;
  log: Log;
  dataDir: string;
  /** Ed25519, private half. */
  key: KeyObject;
  retention?: AuditRetention;
}

export interface AuditCheckpoints {
  /**
   * Signs the checkpoints that are due, in slices. Throws, signing nothing, if the chain does not continue the last
   * one.
   */
  sign(): Promise<void>;
  /** Removes expired rows up to the next checkpoint, and what came before. Throws, removing nothing, if they were changed. */
  prune: Life["slice"];
}

/** Only the server uses this: it alone holds the key. */
export function createAuditCheckpoints(parts: AuditCheckpointParts): AuditCheckpoints {
  const { store, clock, log, dataDir, key, retention = AUDIT_RETENTION } = parts;
  const queries = auditQueries(store.db);
  const publicKey = createPublicKey(key);

  /**
   * The hash and the number of the rows after a checkpoint (or the start) up to `end`. Throws if the chain is broken.
   */
  function walk(from: Checkpoint | undefined, end: number): { hash: Buffer; rows: number; auditId: number } | null {
    if (from && !isSigned(from, publicKey))
      throw broken(`the checkpoint at row ${from.auditId} is not signed by this host`);
    let at = { hash: from?.hash ?? GENESIS, rows: from?.rows ?? 0, auditId: from?.auditId ?? 0 };
    const rows = queries.read(at.auditId, CHECKPOINT_ROWS).filter(({ auditId }) => auditId <= end);
    for (const row of rows) {
      if (!follows(at.hash, row)) throw broken(`row ${row.auditId} does not follow from the one before it`);
      at = { hash: row.hash, rows: at.rows + 1, auditId: row.auditId };
    }
    return rows.length === 0 ? null : at;
  }

  /** Signs and writes the next checkpoint; null if none is due. */
  function signNext(): Checkpoint | null {
    const last = queries.newestCheckpoint();
    const head = readAuditHead(dataDir);
    if (head !== null && (last === undefined || last.auditId < head.auditId)) {
      throw broken(`the checkpoint at row ${head.auditId} is missing from the database`);
    }
    const reached = walk(last, Number.MAX_SAFE_INTEGER);
    if (reached === null) return null;
    const createdAt = clock.now();
    const isFull = reached.rows - (last?.rows ?? 0) === CHECKPOINT_ROWS;
    if (!isFull && last && createdAt - last.createdAt < DAY_MS) return null;
    const content = { ...reached, createdAt };
    const checkpoint = { ...content, signature: sign(null, textOf(content), key) };
    queries.addCheckpoint(checkpoint);
    return checkpoint;
  }

  /** Removes expired rows up to the next checkpoint; returns how many. */
  function pruneNext(): number {
    const [oldest] = queries.read(0, 1);
    const newest = queries.newestCheckpoint();
    if (!oldest || !newest) return 0;
    const [next] = queries.checkpointsFrom(oldest.auditId, 1);
    // The newest checkpoint keeps its row, which shows that the log was not cut off before it.
    if (!next || next.auditId === newest.auditId || !isExpired(next, newest.rows, clock.now(), retention)) return 0;
    const reached = walk(queries.checkpointBefore(oldest.auditId), next.auditId);
    if (!reached?.hash.equals(next.hash)) throw broken(`the checkpoint at row ${next.auditId} does not match its row`);
    const cut = { auditId: next.auditId, createdAt: clock.now() };
    return queries.removeUpTo({ ...cut, signature: sign(null, cutTextOf(cut), key) });
  }

  return {
    async sign() {
      let newest: Checkpoint | null = null;
      for (let signed = await next(); signed !== null; signed = await next()) newest = signed;
      if (newest === null) return;
      writeHead(dataDir, newest);
      // The log may be stored elsewhere, where it proves later what the chain's head was.
      const { auditId, rows, hash } = newest;
      log.info({ event: "audit_checkpoint", auditId, rows, hash: hash.toString("hex") }, "signed the audit log");
      function next() {
        return store.commitSoon(signNext, "full");
      }
    },
    prune() {
      const removed = pruneNext();
      return { removed, next: removed === 0 ? null : 0 };
    },
  };
}

const broken = (what: string): Error =>
  new Error(`the audit log was changed: ${what}; nothing in it is signed or removed until it is repaired`);
