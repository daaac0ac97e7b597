/** Passages of one agent. Of more, the oldest messages are left out, and what files have too much. */
export const MAX_ENTRIES = 20_000;

export const MEMORY_ORIGINS = ["owner", "agent", "untrusted", "system"] as const;
export type MemoryOrigin = (typeof MEMORY_ORIGINS)[number];

/** One passage as it is found. */
export interface Entry {
  text: string;
  /** In a file: its lines, counted from 1. In a conversation: null. */
  fromLine: number | null;
  toLine: number | null;
  messageId: string | null;
  /** Orders messages; 0 in files. */
  seq: number;
  origin: MemoryOrigin;
  runId: string | null;
  conversationId: string | null;
  /** Milliseconds since 1970. */
  createdAt: number;
}

export interface Found extends Entry {
  /** A file's name; null for a message. */
  file: string | null;
  score: number;
}

/** Where passages come from. */
export interface Source {
  kind: "file" | "conversation";
  name: string;
}

/** What is forgotten of a conversation: its messages up to one, and all of these runs. */
export interface Gone {
  upTo: number;
  runIds: string[];
}

export interface SearchReply {
  found: Found[];
  /** Passages without a vector, of all. */
  pending: number;
  total: number;
}
