import { Database } from "bun:sqlite";
import { type Entry, type Found, type Gone, MAX_ENTRIES, type SearchReply, type Source } from "./entry.ts";
import { fuse, goodOf, type Ranked } from "./rank.ts";
import { createVectors, packVector, type Vectors } from "./vectors.ts";
import { isEnglish, trigramsQuery, trigramsText, wordsQuery, wordsText } from "./words.ts";

/** Another version is built anew, while the old file answers. */
const INDEX_VERSION = 1;

/** The index of one agent's memory: a file of its own, so that nobody's texts are searched, ranked or lost with others'. */
export interface AgentIndex {
  /** The last message of a conversation that is in it; 0 for none. */
  position(conversationId: string): number;
  /** Replaces what is known of a file, in slices. Vectors of passages that stay the same are kept. */
  putFile(name: string, entries: readonly Entry[]): Generator<void, void>;
  addMessages(conversationId: string, entries: readonly Entry[], upTo: number): void;
  /** Forgets a source, or only some of its messages. */
  drop(source: Source, gone?: Gone): void;
  /** Passages that have no vector, newest first. */
  pending(limit: number): { id: number; text: string }[];
  setVectors(vectors: readonly { id: number; vector: Float32Array }[]): void;
  /** `isLeftOut` names sources whose passages are not to be found here. */
  search(
    query: string,
    vector: Float32Array | null,
    limit: number,
    isLeftOut?: (source: Source) => boolean,
  ): SearchReply;
  has(source: Source): boolean;
  /** What it holds in memory at most. */
  heldBytes(): number;
  close(): void;
}

const SCHEMA = `
  CREATE TABLE sources (
    source_id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    up_to INTEGER NOT NULL,
    UNIQUE (kind, name)
  ) STRICT;
  -- A number is never used again: a vector may arrive after its passage is gone.
  CREATE TABLE entries (
    entry_id INTEGER PRIMARY KEY AUTOINCREMENT,
    source_id INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    from_line INTEGER,
    to_line INTEGER,
    message_id TEXT,
    text TEXT NOT NULL,
    origin TEXT NOT NULL,
    run_id TEXT,
    conversation_id TEXT,
    created_at INTEGER NOT NULL,
    vector BLOB
  ) STRICT;
  CREATE INDEX entries_by_source ON entries (source_id, seq);
  CREATE INDEX entries_by_time ON entries (seq) WHERE seq > 0;
  CREATE INDEX entries_without_vector ON entries (entry_id) WHERE vector IS NULL;
  CREATE VIRTUAL TABLE words USING fts5(text, content='', contentless_delete=1, tokenize='unicode61 remove_diacritics 2');
  CREATE VIRTUAL TABLE trigrams USING fts5(text, content='', contentless_delete=1, tokenize='trigram');
`;

/** SQLite keeps as much of the file in memory. */
const CACHE_BYTES = 2 * 1024 * 1024;
/** Of each of the three lists. */
const CANDIDATES = 60;
/** The cosine from which a passage has to do with a query. */
const NEAR = 0.2;
/** Passages written in one transaction: searches come in between. */
const SLICE = 64;

interface Row extends Entry {
  id: number;
  kind: Source["kind"];
  name: string;
}

const COLUMNS = `entry_id AS id, kind, name, seq, from_line AS fromLine, to_line AS toLine, message_id AS messageId, text,
  origin, run_id AS runId, conversation_id AS conversationId, created_at AS createdAt`;

/** Null if it was written by another version. Throws if it is no index. */
export function openAgentIndex(path: string, anyVersion = false): AgentIndex | null {
  const sqlite = new Database(path, { create: true, strict: true });
  try {
    sqlite.run("PRAGMA journal_mode = WAL");
    // Texts are on the disk with their vectors, a moment later: one wait for many of them.
    sqlite.run("PRAGMA synchronous = NORMAL");
    sqlite.run(`PRAGMA cache_size = -${CACHE_BYTES / 1024}`);
    sqlite.run("PRAGMA temp_store = MEMORY");
    const version = sqlite.query<{ user_version: number }, []>("PRAGMA user_version").get()?.user_version ?? 0;
    if (version === 0) {
      sqlite.transaction(() => {
        sqlite.run(SCHEMA);
        sqlite.run(`PRAGMA user_version = ${INDEX_VERSION}`);
      })();
    } else if (version !== INDEX_VERSION && !anyVersion) {
      sqlite.close();
      return null;
    }
    return createAgentIndex(sqlite);
  } catch (error) {
    sqlite.close();
    throw error;
  }
}

function createAgentIndex(sqlite: Database): AgentIndex {
  const findSource = sqlite.prepare<{ id: number; upTo: number }, [string, string]>(
    "SELECT source_id AS id, up_to AS upTo FROM sources WHERE kind = ? AND name = ?",
  );
  const addSource = sqlite.prepare<{ id: number }, [string, string]>(
    "INSERT INTO sources (kind, name, up_to) VALUES (?, ?, 0) RETURNING source_id AS id",
  );
  const insert = sqlite.prepare<{ id: number }, (string | number | Uint8Array | null)[]>(
    `INSERT INTO entries (source_id, seq, from_line, to_line, message_id, text, origin, run_id, conversation_id, created_at,
       vector) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING entry_id AS id`,
  );
  const addWords = sqlite.prepare("INSERT INTO words (rowid, text) VALUES (?, ?)");
  const addTrigrams = sqlite.prepare("INSERT INTO trigrams (rowid, text) VALUES (?, ?)");
  const byId = sqlite.prepare<Row, [number]>(
    `SELECT ${COLUMNS} FROM entries JOIN sources USING (source_id) WHERE entry_id = ?`,
  );
  const searchWords = sqlite.prepare<Ranked, [string, number]>(
    "SELECT rowid AS id, rank FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?",
  );
  const searchTrigrams = sqlite.prepare<Ranked, [string, number]>(
    "SELECT rowid AS id, rank FROM trigrams WHERE trigrams MATCH ? ORDER BY rank LIMIT ?",
  );
  const withoutVector = sqlite.prepare<{ id: number; text: string }, [number]>(
    "SELECT entry_id AS id, text FROM entries WHERE vector IS NULL ORDER BY entry_id DESC LIMIT ?",
  );
  const counts = sqlite.prepare<{ total: number; pending: number }, []>(
    "SELECT (SELECT count(*) FROM entries) AS total, (SELECT count(*) FROM entries WHERE vector IS NULL) AS pending",
  );
  const setVector = sqlite.prepare("UPDATE entries SET vector = ? WHERE entry_id = ?");
  /** Loaded at the first search. */
  let vectors: Vectors | null = null;
  let total = counts.get()?.total ?? 0;

  function loadVectors(): Vectors {
    if (vectors !== null) return vectors;
    vectors = createVectors();
    const rows = sqlite.query<{ id: number; vector: Uint8Array }, []>(
      "SELECT entry_id AS id, vector FROM entries WHERE vector IS NOT NULL",
    );
    for (const { id, vector } of rows.iterate()) vectors.set(id, vector);
    return vectors;
  }

  const write = (work: () => void) => sqlite.transaction(work).immediate();
  const sourceId = (kind: Source["kind"], name: string) =>
    findSource.get(kind, name)?.id ?? addSource.get(kind, name)?.id ?? 0;

  function remove(which: string, ...values: (string | number)[]): void {
    const rows = sqlite
      .query<{ id: number }, (string | number)[]>(`SELECT entry_id AS id FROM entries WHERE ${which}`)
      .all(...values);
    for (const { id } of rows) {
      for (const [table, key] of [
        ["words", "rowid"],
        ["trigrams", "rowid"],
        ["entries", "entry_id"],
      ]) {
        sqlite.query(`DELETE FROM ${table} WHERE ${key} = ?`).run(id);
      }
      vectors?.drop(id);
    }
    total -= rows.length;
  }

  function add(source: number, entry: Entry, vector: Uint8Array | null): void {
    const { seq, fromLine, toLine, messageId, text, origin, runId, conversationId, createdAt } = entry;
    const row = insert.get(
      source,
      seq,
      fromLine,
      toLine,
      messageId,
      text,
      origin,
      runId,
      conversationId,
      createdAt,
      vector,
    );
    if (row === null) throw new TypeError("an entry was written");
    addWords.run(row.id, wordsText(text));
    addTrigrams.run(row.id, trigramsText(text));
    if (vector !== null) vectors?.set(row.id, vector);
    total++;
  }

  /** The oldest messages make room. Returns for how many entries there is some. */
  function makeRoom(wanted: number): number {
    const over = total + wanted - MAX_ENTRIES;
    if (over > 0) remove("entry_id IN (SELECT entry_id FROM entries WHERE seq > 0 ORDER BY seq LIMIT ?)", over);
    return Math.max(0, MAX_ENTRIES - total);
  }

  return {
    position: (conversationId) => findSource.get("conversation", conversationId)?.upTo ?? 0,
    *putFile(name, entries) {
      const source = sourceId("file", name);
      const known = new Map(
        sqlite
          .query<{ text: string; vector: Uint8Array }, [number]>(
            "SELECT text, vector FROM entries WHERE source_id = ? AND vector IS NOT NULL",
          )
          .all(source)
          .map(({ text, vector }) => [text, vector]),
      );
      let room = 0;
      write(() => {
        remove("source_id = ?", source);
        room = makeRoom(entries.length);
      });
      for (let at = 0; at < Math.min(entries.length, room); at += SLICE) {
        yield;
        write(() => {
          for (const entry of entries.slice(at, Math.min(at + SLICE, room))) {
            add(source, entry, known.get(entry.text) ?? null);
          }
        });
      }
    },
    addMessages(conversationId, entries, upTo) {
      write(() => {
        const source = sourceId("conversation", conversationId);
        const room = makeRoom(entries.length);
        for (const entry of entries.slice(Math.max(0, entries.length - room))) add(source, entry, null);
        sqlite.query("UPDATE sources SET up_to = ? WHERE source_id = ?").run(upTo, source);
      });
    },
    drop({ kind, name }, gone) {
      const source = findSource.get(kind, name);
      if (source === null) return;
      write(() => {
        if (gone === undefined) {
          remove("source_id = ?", source.id);
          sqlite.query("DELETE FROM sources WHERE source_id = ?").run(source.id);
        } else {
          remove("source_id = ? AND seq <= ?", source.id, gone.upTo);
          const runIds = JSON.stringify(gone.runIds);
          if (gone.runIds.length > 0)
            remove("source_id = ? AND run_id IN (SELECT value FROM json_each(?))", source.id, runIds);
          // Numbers of messages that are gone may be given to new ones.
          sqlite
            .query(
              `UPDATE sources SET up_to = 0 WHERE source_id = ?1
               AND NOT EXISTS (SELECT 1 FROM entries WHERE source_id = ?1)`,
            )
            .run(source.id);
        }
      });
    },
    pending: (limit) => withoutVector.all(limit),
    setVectors(given) {
      sqlite.run("PRAGMA synchronous = FULL");
      write(() => {
        for (const { id, vector } of given) {
          const packed = packVector(vector);
          if (setVector.run(packed, id).changes > 0) vectors?.set(id, packed);
        }
      });
      sqlite.run("PRAGMA synchronous = NORMAL");
    },
    search(query, vector, limit, isLeftOut = () => false) {
      const [words, trigrams] = [wordsQuery(query, total), trigramsQuery(query, total)];
      const known = vector && loadVectors();
      const lists = {
        words: words === null ? [] : goodOf(searchWords.all(words, CANDIDATES)),
        trigrams: trigrams === null ? [] : goodOf(searchTrigrams.all(trigrams, CANDIDATES)),
        vectors: vector && known ? known.nearest(vector, CANDIDATES, NEAR) : [],
      };
      const found: Found[] = [];
      const nearOf = vector && known && ((id: number) => known.near(id, vector));
      for (const { id, score } of fuse(lists, nearOf, isEnglish(query))) {
        const row = byId.get(id);
        if (row === null || isLeftOut(row)) continue;
        const { id: _, kind, name, ...entry } = row;
        found.push({ ...entry, file: kind === "file" ? name : null, score });
        if (found.length === limit) break;
      }
      const { pending = 0 } = counts.get() ?? {};
      return { found, pending, total };
    },
    has: ({ kind, name }) => findSource.get(kind, name) !== null,
    heldBytes: () => CACHE_BYTES + (vectors?.heldBytes() ?? 0),
    close() {
      // What a statement still holds open does not keep the file from being whole, and moved.
      sqlite.run("PRAGMA wal_checkpoint(TRUNCATE)");
      sqlite.close();
    },
  };
}
