import { and, asc, eq, sql } from "drizzle-orm";
import type { Clock } from "../lib/clock.ts";
import { prepared } from "../storage/prepared.ts";
import type { Db } from "../storage/store.ts";
import { hashOfLine, isNotesFile, newLines } from "./lines.ts";
import { memoryFiles, memoryNotes, type Note } from "./schema.ts";

/** Lines of one agent whose writer is known; of more, the oldest become their file's. */
const MAX_NOTES = 10_000;

/** New lines of one change whose writer is kept, the last ones: all of them are written in one transaction. */
const MAX_NEW = 1_000;
/** In place of a line's hash, which never looks so: a stranger's lines of a file that were too many to be known. */
export const OTHER_LINES = "*";

/** A file that a run has written, in the transaction in which it did. */
export interface WrittenFile {
  agentId: string;
  conversationId: string;
  runId: string;
  isTainted: boolean;
  name: string;
  size: number;
  /** Milliseconds since 1970. */
  updatedAt: number;
  /** Its text before and after; null where there was none, or it is not text. */
  before: string | null;
  after: string | null;
}

/**
 * Which run wrote which file, and which line of the files that are the agent's memory. The host keeps this beside the text,
 * where nothing that an agent writes can set it. A line that a person changes is the person's from then on.
 */
export interface Notes {
  /** Call it, like everything here that changes something, in a transaction. */
  wrote(file: WrittenFile): void;
  ofFile(agentId: string, file: string): Note[];
  ofRun(agentId: string, runId: string): Note[];
  ofConversation(agentId: string, conversationId: string): Note[];
  /** The run that wrote the file last, if nobody has changed it since. */
  writerOf(
    agentId: string,
    file: { name: string; size: number; updatedAt: number },
  ): { runId: string; conversationId: string } | null;
  forget(notes: readonly Note[]): void;
  /** The agent's files with lines that a stranger may have written. */
  untrustedFiles(agentId: string): Set<string>;
}

export function createNotes(db: Db, clock: Clock): Notes {
  const p = sql.placeholder;
  const { noteId, agentId, file, runId, conversationId } = memoryNotes;
  const ofAgent = eq(agentId, p("agentId"));
  const select = (column: typeof file | typeof runId | typeof conversationId) =>
    prepared(db, () =>
      db
        .select()
        .from(memoryNotes)
        .where(and(ofAgent, eq(column, p("value"))))
        .orderBy(asc(noteId))
        .limit(MAX_NOTES),
    );
  const [byFile, byRun, byConversation] = [select(file), select(runId), select(conversationId)];
  const insert = prepared(db, () =>
    db.insert(memoryNotes).values({
      agentId: p("agentId"),
      file: p("file"),
      lineHash: p("lineHash"),
      runId: p("runId"),
      conversationId: p("conversationId"),
      tainted: p("tainted"),
      createdAt: p("createdAt"),
    }),
  );
  const remove = prepared(db, () => db.delete(memoryNotes).where(eq(noteId, p("noteId"))));
  const prune = db.$client.prepare(
    `DELETE FROM memory_notes WHERE note_id IN (SELECT note_id FROM memory_notes WHERE agent_id = ?1
       ORDER BY note_id DESC LIMIT -1 OFFSET ?2)`,
  );
  const writer = prepared(db, () =>
    db
      .select()
      .from(memoryFiles)
      .where(and(eq(memoryFiles.agentId, p("agentId")), eq(memoryFiles.name, p("name")))),
  );

  return {
    wrote({ agentId, conversationId, runId, isTainted, name, size, updatedAt, before, after }) {
      const set = { size, updatedAt, runId, conversationId };
      db.insert(memoryFiles)
        .values({ agentId, name, ...set })
        .onConflictDoUpdate({ target: [memoryFiles.agentId, memoryFiles.name], set })
        .run();
      if (!isNotesFile(name) || after === null) return;
      const lines = newLines(before ?? "", after);
      const hashes = lines.slice(-MAX_NEW).map(hashOfLine);
      // A file counts as a stranger's until a person writes it; its lines do so for longer.
      if (isTainted && lines.length > MAX_NEW) hashes.push(OTHER_LINES);
      for (const lineHash of hashes) {
        insert.run({
          ...{ agentId, file: name, lineHash, runId, conversationId },
          tainted: isTainted,
          createdAt: clock.now(),
        });
      }
      prune.run(agentId, MAX_NOTES);
    },
    ofFile: (agentId, value) => byFile.all({ agentId, value }),
    ofRun: (agentId, value) => byRun.all({ agentId, value }),
    ofConversation: (agentId, value) => byConversation.all({ agentId, value }),
    writerOf(agentId, { name, size, updatedAt }) {
      const row = writer.get({ agentId, name });
      return row?.size === size && row.updatedAt === updatedAt ? row : null;
    },
    untrustedFiles: (agentId) =>
      new Set(
        db
          .selectDistinct({ file })
          .from(memoryNotes)
          .where(and(eq(memoryNotes.agentId, agentId), eq(memoryNotes.tainted, true)))
          .all()
          .map((row) => row.file),
      ),
    forget(notes) {
      for (const { noteId } of notes) remove.run({ noteId });
    },
  };
}
