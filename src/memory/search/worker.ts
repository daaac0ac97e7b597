/**
 * Keeps the indexes of agents' memories, on a thread of its own: what it costs to write and to search them is nobody else's
 * time. Changes are made one after the other, in slices; searches come in between.
 */

import { closeSync, mkdirSync, openSync, renameSync, rmSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "../../lib/message-of.ts";
import { decodeUtf8 } from "../../lib/utf8.ts";
import { hashOfLine } from "../lines.ts";
import { type AgentIndex, openAgentIndex } from "./entries.ts";
import type { Entry, Gone, MemoryOrigin, SearchReply, Source } from "./entry.ts";
import { isDamage, isTrouble } from "./faults.ts";
import { notesOf, passagesOf } from "./passages.ts";

/** Who wrote a line of a file. */
export interface LineMark {
  hash: string;
  origin: MemoryOrigin;
  runId: string;
  conversationId: string;
  createdAt: number;
}

/** A file as it is to be found. */
export interface FileText {
  name: string;
  bytes: Uint8Array;
  /** Whether each line of it is found by itself. */
  isNotes: boolean;
  /** Of the lines without a mark. */
  origin: MemoryOrigin;
  runId: string | null;
  conversationId: string | null;
  updatedAt: number;
  marks: LineMark[];
}

/** One message as it is to be found. */
export type MessageText = Pick<Entry, "text" | "messageId" | "seq" | "origin" | "runId" | "createdAt">;

export type Ask =
  | { type: "position"; agentId: string; conversationId: string }
  | { type: "file"; agentId: string; file: FileText }
  | { type: "messages"; agentId: string; conversationId: string; messages: MessageText[]; upTo: number }
  | { type: "drop"; agentId: string; source: Source; gone?: Gone }
  | { type: "pending"; agentId: string; limit: number }
  | { type: "vectors"; agentId: string; vectors: { id: number; vector: Float32Array }[] }
  | { type: "search"; agentId: string; query: string; vector: Float32Array | null; limit: number }
  /** Begins an empty index; the one there was answers until `rebuilt`. */
  | { type: "rebuild"; agentId: string }
  | { type: "rebuilt"; agentId: string }
  | { type: "remove"; agentId: string };

export interface Replies {
  position: number;
  file: null;
  messages: null;
  drop: null;
  pending: { id: number; text: string }[];
  vectors: null;
  search: SearchReply & { isBeingBuilt: boolean };
  rebuild: null;
  rebuilt: null;
  remove: null;
}

export type ToIndex = { folder: string } | { id: number; ask: Ask };
export type FromIndex = { id: number; reply: Replies[keyof Replies] } | Failure;

export interface Failure {
  id: number;
  error: string;
  /** There is no index of this agent, or none that can be read: it has to be built. */
  isLost: boolean;
  /** Its files cannot be written or read at the moment, whatever was asked. */
  isTrouble: boolean;
}

declare const self: Worker;

/** Indexes that are open at the same time, and what they may hold in memory together: to open one doubles a search's time. */
const MAX_OPEN = 64;
const MAX_BYTES = 96 * 1024 * 1024;

interface Open {
  now: AgentIndex;
  /** The one that answers while `now` is being built. */
  before: AgentIndex | null;
}

class LostError extends Error {}

let folder = "";
const opened = new Map<string, Open>();
let changes: Promise<unknown> = Promise.resolve();
/** The agent whose index is being changed: it stays open between the slices. */
let changing = "";

const pathOf = (agentId: string) => join(folder, `${agentId}.db`);
const oldPathOf = (agentId: string) => join(folder, `${agentId}.old.db`);

function removeFiles(path: string): void {
  for (const suffix of ["", "-wal", "-shm"]) rmSync(path + suffix, { force: true });
}

function close(agentId: string): void {
  const open = opened.get(agentId);
  opened.delete(agentId);
  open?.now.close();
  open?.before?.close();
}

/** The index that there was stays readable, or an empty one says that this one is not complete yet; it is empty, too. */
function begin(agentId: string): void {
  close(agentId);
  // What is half built, because this was begun before, answers less than what there was.
  if (!exists(oldPathOf(agentId))) {
    // Closing has put everything into the file itself.
    if (exists(pathOf(agentId))) renameSync(pathOf(agentId), oldPathOf(agentId));
    else create(oldPathOf(agentId));
  }
  create(pathOf(agentId));
}

function create(path: string): void {
  removeFiles(path);
  // SQLite would create it readable by all; its WAL takes the same mode.
  closeSync(openSync(path, "wx", 0o600));
  openAgentIndex(path)?.close();
}

const exists = (path: string): boolean => Bun.file(path).size > 0;

function openOf(agentId: string): Open {
  const known = opened.get(agentId);
  if (known !== undefined) {
    opened.delete(agentId);
    opened.set(agentId, known);
    closeOthers(agentId);
    return known;
  }
  if (!exists(pathOf(agentId))) throw new LostError("there is no index yet");
  let now: AgentIndex | null;
  try {
    now = openAgentIndex(pathOf(agentId));
  } catch (error) {
    removeFiles(pathOf(agentId));
    throw new LostError(String(error));
  }
  if (now === null) throw new LostError("it is of another version");
  const open = { now, before: exists(oldPathOf(agentId)) ? openOld(agentId) : null };
  opened.set(agentId, open);
  closeOthers(agentId);
  return open;
}

/** The ones that were used longest ago: what an index holds grows while it is open. */
function closeOthers(agentId: string): void {
  let bytes = 0;
  for (const { now, before } of opened.values()) bytes += now.heldBytes() + (before?.heldBytes() ?? 0);
  for (const [oldest, { now, before }] of [...opened]) {
    if (oldest === changing) continue;
    if (oldest === agentId || (bytes <= MAX_BYTES && opened.size <= MAX_OPEN)) return;
    bytes -= now.heldBytes() + (before?.heldBytes() ?? 0);
    close(oldest);
  }
}

function openOld(agentId: string): AgentIndex | null {
  try {
    return openAgentIndex(oldPathOf(agentId), true);
  } catch {
    return null;
  }
}

function search({ agentId, query, vector, limit }: Ask & { type: "search" }): Replies["search"] {
  const { now, before } = openOf(agentId);
  // When it was used last, for those that are given up (disk-bound.ts).
  utimesSync(pathOf(agentId), new Date(), new Date());
  const reply = now.search(query, vector, limit);
  if (before === null) return { ...reply, isBeingBuilt: false };
  try {
    const old = before.search(query, vector, limit, (source) => now.has(source));
    const found = [...reply.found, ...old.found].sort((a, b) => b.score - a.score).slice(0, limit);
    return { found, pending: 0, total: reply.total, isBeingBuilt: true };
  } catch {
    // It is of a version that this one cannot read.
    return { ...reply, isBeingBuilt: true };
  }
}

async function change(ask: Ask): Promise<Replies[keyof Replies]> {
  const { agentId } = ask;
  switch (ask.type) {
    case "rebuild":
      begin(agentId);
      return null;
    case "rebuilt": {
      const open = openOf(agentId);
      open.before?.close();
      open.before = null;
      removeFiles(oldPathOf(agentId));
      return null;
    }
    case "remove":
      close(agentId);
      removeFiles(pathOf(agentId));
      removeFiles(oldPathOf(agentId));
      return null;
    case "file":
      for (const _ of openOf(agentId).now.putFile(ask.file.name, entriesOf(ask.file))) await nextTurn();
      return null;
    case "messages":
      openOf(agentId).now.addMessages(
        ask.conversationId,
        ask.messages.flatMap((message) =>
          passagesOf(message.text).map(({ text }) => ({
            ...message,
            text,
            fromLine: null,
            toLine: null,
            conversationId: ask.conversationId,
          })),
        ),
        ask.upTo,
      );
      return null;
    case "drop": {
      const { now, before } = openOf(agentId);
      now.drop(ask.source, ask.gone);
      before?.drop(ask.source, ask.gone);
      return null;
    }
    case "vectors":
      openOf(agentId).now.setVectors(ask.vectors);
      return null;
    default:
      throw new TypeError(`${ask.type} changes nothing`);
  }
}

/** Through the queue of messages, so that a search that has arrived goes first. */
const nextTurn = () => new Promise<void>((resolve) => setTimeout(resolve, 0));

/** What is no text has no passages. */
function entriesOf({ bytes, isNotes, origin, runId, conversationId, updatedAt, marks }: FileText): Entry[] {
  const text = textOf(bytes);
  if (text === null) return [];
  const passages = isNotes ? notesOf(text) : passagesOf(text);
  const rest = { origin, runId, conversationId, createdAt: updatedAt };
  const byHash = new Map(marks.map((mark) => [mark.hash, mark]));
  const lines = marks.length === 0 ? [] : text.split("\n");
  return passages.map(({ text, fromLine, toLine }) => {
    const own = lines.slice(fromLine - 1, toLine).flatMap((line) => byHash.get(hashOfLine(line)) ?? []);
    // One line that may be a stranger's makes all of it one.
    const { hash: _, ...mark } = own.find((one) => one.origin === "untrusted") ?? own[0] ?? { hash: "", ...rest };
    return { text, fromLine, toLine, messageId: null, seq: 0, ...mark };
  });
}

function textOf(bytes: Uint8Array): string | null {
  if (bytes.includes(0)) return null;
  return decodeUtf8(bytes)?.replace(/^\uFEFF/, "") ?? null;
}

async function answer(ask: Ask): Promise<Replies[keyof Replies]> {
  if (ask.type === "search") return search(ask);
  if (ask.type === "position") return openOf(ask.agentId).now.position(ask.conversationId);
  if (ask.type === "pending") return openOf(ask.agentId).now.pending(ask.limit);
  const done = changes.then(() => {
    changing = ask.agentId;
    return change(ask);
  });
  changes = done.catch(() => {});
  return done;
}

self.onmessage = async ({ data }: MessageEvent<ToIndex>) => {
  if ("folder" in data) {
    folder = data.folder;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    return;
  }
  const { id, ask } = data;
  try {
    self.postMessage({ id, reply: await answer(ask) } satisfies FromIndex);
  } catch (error) {
    const isLost = error instanceof LostError || isDamage(error);
    if (isDamage(error)) {
      close(ask.agentId);
      removeFiles(pathOf(ask.agentId));
    }
    const reason = messageOf(error);
    self.postMessage({ id, error: reason, isLost, isTrouble: isTrouble(error) } satisfies FromIndex);
  }
};
