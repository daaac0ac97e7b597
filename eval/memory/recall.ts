/** The committed questions, and how each way to search finds the notes that answer them. */
import { Database } from "bun:sqlite";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { openAgentIndex } from "../../src/memory/search/entries.ts";
import type { Entry } from "../../src/memory/search/entry.ts";

const NOTES = join(import.meta.dir, "notes");

export interface Question {
  language: string;
  note: string;
  asked: string;
}

/** A line is a note and a question that it answers, with a tab in between. */
export const readQuestions = (): Question[] =>
  readdirSync(NOTES)
    .toSorted()
    .flatMap((file) =>
      readFileSync(join(NOTES, file), "utf8")
        .trim()
        .split("\n")
        .map((line) => {
          const [note = "", asked = ""] = line.split("\t");
          return { language: file.replace(/\.\w+$/, ""), note, asked };
        }),
    );

export const WAYS = ["plain FTS5", "plain vectors", "memory"] as const;
export type Way = (typeof WAYS)[number];

/** For each way, at which place (from 0) each question's note was found; -1 if not at all. */
export type Places = Record<Way, number[]>;

type Embed = (texts: string[]) => Promise<Float32Array[]>;

const LIMIT = 50;

/** Every note is one passage of one agent's memory; each way searches all of them, in all languages. */
export async function searchAll(questions: readonly Question[], embed: Embed): Promise<Places> {
  const notes = questions.map(({ note }) => note);
  const [noteVectors, askedVectors] = [await embed(notes), await embed(questions.map(({ asked }) => asked))];
  const index = openAgentIndex(":memory:");
  if (index === null) throw new TypeError("a new index has this version");
  for (const _ of index.putFile("notes.md", notes.map(entryOf)));
  index.setVectors(
    index.pending(notes.length).map(({ id, text }) => ({ id, vector: vectorOf(noteVectors, notes.indexOf(text)) })),
  );

  const fts = new Database(":memory:");
  fts.run("CREATE VIRTUAL TABLE notes USING fts5(text)");
  for (const [at, note] of notes.entries()) fts.run("INSERT INTO notes (rowid, text) VALUES (?, ?)", [at + 1, note]);

  const places: Places = { "plain FTS5": [], "plain vectors": [], memory: [] };
  for (const [at, { asked, note }] of questions.entries()) {
    const vector = vectorOf(askedVectors, at);
    const words = (asked.match(/[\p{L}\p{N}]+/gu) ?? []).map((word) => `"${word}"`).join(" OR ");
    const rows = fts
      .query<{ at: number }, [string, number]>(
        "SELECT rowid - 1 AS at FROM notes WHERE notes MATCH ? ORDER BY rank LIMIT ?",
      )
      .all(words, LIMIT);
    places["plain FTS5"].push(rows.findIndex((row) => row.at === at));
    const near = noteVectors
      .map((other, place) => ({ place, near: other.reduce((sum, value, i) => sum + value * (vector[i] ?? 0), 0) }))
      .sort((a, b) => b.near - a.near)
      .slice(0, LIMIT);
    places["plain vectors"].push(near.findIndex(({ place }) => place === at));
    places.memory.push(index.search(asked, vector, LIMIT).found.findIndex(({ text }) => text === note));
  }
  index.close();
  fts.close();
  return places;
}

const entryOf = (text: string, at: number): Entry => ({
  text,
  fromLine: at + 1,
  toLine: at + 1,
  messageId: null,
  seq: 0,
  origin: "owner",
  runId: null,
  conversationId: null,
  createdAt: 0,
});

function vectorOf(vectors: readonly Float32Array[], at: number): Float32Array {
  const vector = vectors[at];
  if (vector === undefined) throw new TypeError("every text has a vector");
  return vector;
}
