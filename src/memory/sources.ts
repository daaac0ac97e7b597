import { and, asc, eq, gt, gte, max, min, sql } from "drizzle-orm";
import { isUnchanged } from "../agents/default-files.ts";
import { isKeptOutput } from "../agents/kept-outputs.ts";
import type { Agent } from "../agents/schema.ts";
import type { Workspaces } from "../agents/workspaces.ts";
import { AppError } from "../lib/app-error.ts";
import { conversations, type Message, messages, runs } from "../messages/schema.ts";
import { prepared } from "../storage/prepared.ts";
import type { Db } from "../storage/store.ts";
import { isNotesFile } from "./lines.ts";
import { type Notes, OTHER_LINES } from "./notes.ts";
import { memoryForgotten } from "./schema.ts";
import type { Found, Gone, MemoryOrigin } from "./search/entry.ts";
import type { FileText, MessageText } from "./search/worker.ts";

/** Messages that are taken in at once; fewer if they are long. */
const PAGE = 50;
const PAGE_CHARACTERS = 200_000;
/** Files that are looked at to tell whether there is anything but the host's own. */
const MAX_LOOKED_AT = 20;
/** Messages of a conversation that are looked at in one slice. */
const OUTLINED = 1_000;
/** Stands for all runs of a conversation. */
const ALL = "*";
/** Characters of a message that are shown there. */
const SHOWN = 1_000;
const IN_CONVERSATION = { file: null, fromLine: null, toLine: null, score: 0 } as const;

/** Messages that may be found: how many, and the first of them. */
export interface Said {
  count: number;
  first: Found[];
}

/** What an agent's memory is made of: its files, its conversations, and what is known of who wrote them. */
export interface Sources {
  /** Null if the memory has nothing of this file: there is none, or it is the host's own. */
  file(agent: Agent, name: string): FileText | null;
  /** Whether there is anything that is to be found. */
  hasAny(agent: Agent): boolean;
  /** The part of a conversation that is visible; null if nothing is. */
  conversation(agentId: string, conversationId: string): { firstSeq: number } | null;
  /** After this one, oldest first; `upTo` is the last one that was read, whether or not it is to be found. */
  messages(conversationId: string, after: number): { messages: MessageText[]; upTo: number; hasMore: boolean };
  /** What the owner had forgotten of a conversation, if that was when this message was its last, or later. */
  forgotten(conversationId: string, from: number): Gone;
  /** Whether a message may still be found. */
  isVisible(agentId: string, conversationId: string, seq: number, runId: string | null): boolean;
  /** Whether a file is there. */
  isThere(agent: Agent, name: string): boolean;
  /** Forgets what was said in a conversation until now; of one run, if it is named. Call it in a transaction. */
  forget(conversationId: string, runId: string | null): void;
  /** Whether the agent has, or had, this conversation. */
  owns(agentId: string, conversationId: string): boolean;
  /** The agent's conversations. */
  conversationsOf(agentId: string): string[];
  /** What was said in a conversation and may be found, by one run if it is named; looked up in slices. */
  said(conversationId: string, runId: string | null, limit: number): Generator<void, Said>;
  /** Whether people talk there: not a schedule's conversation, nor one of another agent. */
  isForeground(conversationId: string): boolean;
  /** A run of the agent with the conversation it was in, if it is still known. */
  run(agentId: string, runId: string): { conversationId: string } | null;
}

export function createSources(db: Db, workspaces: Workspaces, notes: Notes): Sources {
  const p = sql.placeholder;
  const { messageSeq, conversationId } = messages;
  const ofConversation = eq(conversationId, p("conversationId"));
  const page = prepared(db, () =>
    db
      .select()
      .from(messages)
      .where(and(ofConversation, gt(messageSeq, p("after"))))
      .orderBy(asc(messageSeq))
      .limit(PAGE),
  );
  const first = prepared(db, () =>
    db
      .select({ seq: min(messageSeq) })
      .from(messages)
      .where(and(ofConversation, gt(messageSeq, p("after")))),
  );
  const state = prepared(db, () =>
    db
      .select({
        agentId: conversations.agentId,
        state: conversations.state,
        originType: conversations.originType,
        cleared: conversations.clearedMessageSeq,
      })
      .from(conversations)
      .where(eq(conversations.conversationId, p("conversationId"))),
  );
  const bySeq = prepared(db, () =>
    db
      .select({ conversationId })
      .from(messages)
      .where(eq(messageSeq, p("seq"))),
  );
  const bySeqWhole = prepared(db, () =>
    db
      .select()
      .from(messages)
      .where(eq(messageSeq, p("seq"))),
  );
  const outline = prepared(db, () =>
    db
      .select({ messageSeq, runId: messages.runId })
      .from(messages)
      .where(and(ofConversation, gt(messageSeq, p("after"))))
      .orderBy(asc(messageSeq))
      .limit(OUTLINED),
  );
  const forgottenOf = prepared(db, () =>
    db
      .select({ runId: memoryForgotten.runId, upTo: memoryForgotten.upTo })
      .from(memoryForgotten)
      .where(and(eq(memoryForgotten.conversationId, p("conversationId")), gte(memoryForgotten.upTo, p("from")))),
  );
  // A row for each run that was forgotten by itself: they may be many, so one message is looked up among them.
  const forgottenAt = prepared(db, () =>
    db
      .select({ upTo: memoryForgotten.upTo })
      .from(memoryForgotten)
      .where(
        and(
          eq(memoryForgotten.conversationId, p("conversationId")),
          sql`${memoryForgotten.runId} IN (${ALL}, ${p("runId")})`,
          gte(memoryForgotten.upTo, p("seq")),
        ),
      ),
  );
  const runById = prepared(db, () =>
    db
      .select({ agentId: runs.agentId, conversationId: runs.conversationId, question: messageSeq })
      .from(runs)
      .leftJoin(messages, eq(messages.messageId, runs.messageId))
      .where(eq(runs.runId, p("runId"))),
  );
  const open = prepared(db, () =>
    db
      .select({ conversationId: conversations.conversationId })
      .from(conversations)
      .where(and(eq(conversations.agentId, p("agentId")), eq(conversations.state, "open"))),
  );

  const visible = (agentId: string, conversationId: string) => {
    const found = state.get({ conversationId });
    return found?.agentId === agentId && found.state === "open" ? found : null;
  };
  const isForgotten = (conversationId: string, seq: number, runId: string | null) =>
    forgottenAt.get({ conversationId, seq, runId: runId ?? ALL }) !== undefined;

  const anyMessage = prepared(db, () =>
    db
      .select({ messageSeq })
      .from(messages)
      .where(eq(messages.agentId, p("agentId")))
      .limit(1),
  );

  function file(agent: Agent, name: string): FileText | null {
    if (isKeptOutput(name) || name.split("/").some((part) => part.startsWith("."))) return null;
    const file = readOrNull(() => workspaces.read(agent, name));
    if (file === null) return null;
    const { bytes, updatedAtMs } = file;
    if (!name.includes("/") && isUnchanged({ name, text: bytes.toString() })) return null;
    const { agentId } = agent;
    const isTainted = workspaces.taintedOf(agent, [name]).length > 0;
    const isNotes = isNotesFile(name);
    const writer = isNotes ? null : notes.writerOf(agentId, { name, size: bytes.byteLength, updatedAt: updatedAtMs });
    const lines = isNotes ? notes.ofFile(agentId, name) : [];
    const isUntrusted = isTainted || lines.some(({ lineHash }) => lineHash === OTHER_LINES);
    return {
      name,
      bytes,
      isNotes,
      origin: isUntrusted ? "untrusted" : writer === null ? "owner" : "agent",
      runId: writer?.runId ?? null,
      conversationId: writer?.conversationId ?? null,
      updatedAt: updatedAtMs,
      marks: lines.map(({ lineHash, tainted, runId, conversationId, createdAt }) => ({
        ...{ hash: lineHash, runId, conversationId, createdAt },
        origin: tainted ? "untrusted" : "agent",
      })),
    };
  }

  return {
    file,
    hasAny(agent) {
      if (anyMessage.get({ agentId: agent.agentId }) !== undefined) return true;
      return workspaces.list(agent, "", MAX_LOOKED_AT).some(({ name }) => file(agent, name) !== null);
    },
    conversation(agentId, conversationId) {
      const found = visible(agentId, conversationId);
      const seq = found && first.get({ conversationId, after: found.cleared })?.seq;
      return seq == null ? null : { firstSeq: seq };
    },
    messages(conversationId, after) {
      const rows: Message[] = [];
      let characters = 0;
      const found = page.all({ conversationId, after });
      for (const row of found) {
        characters += row.text.length;
        if (rows.length > 0 && characters > PAGE_CHARACTERS) break;
        rows.push(row);
      }
      return {
        messages: rows.filter((row) => !isForgotten(conversationId, row.messageSeq, row.runId)).map(asFound),
        upTo: rows.at(-1)?.messageSeq ?? after,
        hasMore: found.length === PAGE || rows.length < found.length,
      };
    },
    forgotten(conversationId, from) {
      const rows = forgottenOf.all({ conversationId, from });
      return {
        upTo: rows.find(({ runId }) => runId === ALL)?.upTo ?? 0,
        runIds: rows.flatMap(({ runId }) => (runId === ALL ? [] : [runId])),
      };
    },
    isVisible(agentId, conversationId, seq, runId) {
      const found = visible(agentId, conversationId);
      if (found === null || seq <= found.cleared || bySeq.get({ seq })?.conversationId !== conversationId) return false;
      return !isForgotten(conversationId, seq, runId);
    },
    isThere: (agent, name) => workspaces.has(agent, name),
    forget(conversationId, runId) {
      const last = db
        .select({ seq: max(messageSeq) })
        .from(messages)
        .where(eq(messages.conversationId, conversationId))
        .get()?.seq;
      if (last == null) return;
      if (isForgotten(conversationId, last, runId)) return;
      if (runId === null) db.delete(memoryForgotten).where(eq(memoryForgotten.conversationId, conversationId)).run();
      db.insert(memoryForgotten)
        .values({ conversationId, runId: runId ?? ALL, upTo: last })
        .onConflictDoUpdate({
          target: [memoryForgotten.conversationId, memoryForgotten.runId],
          set: { upTo: last },
        })
        .run();
    },
    owns: (agentId, conversationId) => visible(agentId, conversationId) !== null,
    conversationsOf: (agentId) => open.all({ agentId }).map(({ conversationId }) => conversationId),
    *said(conversationId, runId, limit) {
      const forgotten = new Map(forgottenOf.all({ conversationId, from: 0 }).map((row) => [row.runId, row.upTo]));
      const upToOf = (runId: string | null) => forgotten.get(runId ?? ALL) ?? 0;
      const first: Found[] = [];
      let count = 0;
      // A run's question is the first of its messages, and copies come after what they are of.
      const question = runId === null ? null : runById.get({ runId })?.question;
      let after = Math.max(state.get({ conversationId })?.cleared ?? 0, (question ?? 0) - 1);
      for (;;) {
        const page = outline.all({ conversationId, after });
        for (const { messageSeq, runId: by } of page) {
          after = messageSeq;
          if ((runId !== null && by !== runId) || messageSeq <= Math.max(upToOf(ALL), upToOf(by))) continue;
          count++;
          const row = first.length < limit ? bySeqWhole.get({ seq: messageSeq }) : undefined;
          if (row) first.push({ ...asFound(row), ...IN_CONVERSATION, conversationId, text: row.text.slice(0, SHOWN) });
        }
        if (page.length < OUTLINED) return { count, first };
        yield;
      }
    },
    isForeground(conversationId) {
      const originType = state.get({ conversationId })?.originType;
      return originType === "user" || originType === "openai";
    },
    run(agentId, runId) {
      const found = runById.get({ runId });
      return found?.agentId === agentId ? found : null;
    },
  };
}

const asFound = ({ text, messageId, messageSeq, runId, createdAt, ...row }: Message): MessageText => ({
  ...{ text, messageId, runId, createdAt },
  seq: messageSeq,
  origin: originOf(row),
});

/** What a person said is the owner's; what the host said in the name of a schedule is the system's. */
function originOf({ role, tainted, originType }: Pick<Message, "role" | "tainted" | "originType">): MemoryOrigin {
  if (tainted || originType === "trigger") return "untrusted";
  if (role === "agent" || originType === "agent") return "agent";
  return originType === "schedule" || originType === "heartbeat" ? "system" : "owner";
}

function readOrNull<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    if (error instanceof AppError) return null;
    throw error;
  }
}
