/** The committed cases: `personas/*.json`, one persona a file. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export interface Length {
  /** At most. */
  sentences?: number;
  /** At most. */
  words?: number;
}

/** One message and what its answer is judged by. */
export interface Case extends Length {
  id: string;
  kind: string;
  say: string;
  /** Good answers: another one lies near one of them in meaning. */
  like: string[];
  /** At least so many words, where a long answer was asked for. */
  least?: number;
  /** Words that the answer must say, a name for one. */
  says?: string[];
  /** Whether the persona must be heard, by one of its words at least. */
  voice?: true;
  /** Set where the answer need not be in the persona's language: a translation. */
  language?: "any";
}

export interface Persona {
  name: string;
  /** Its SOUL.md; null for the default one. */
  soul: string | null;
  language: "en" | "de" | "es";
  /** Words that only this persona would say so often. */
  voice: string[];
  /** What it was told of the length of its answers. */
  length?: Length;
  /** Each begins with no history; most have one message. */
  conversations: Case[][];
}

export const HALVES = ["tuning", "held"] as const;
export type Half = (typeof HALVES)[number];

export function readPersonas(): Persona[] {
  const folder = join(import.meta.dir, "personas");
  const files = readdirSync(folder).sort();
  return files.map((file) => JSON.parse(readFileSync(join(folder, file), "utf8")));
}

/** Decided by the first case's id alone, so that a case stays in its half whatever is added. */
export function halfOf(conversation: readonly Case[]): Half {
  const digest = new Bun.CryptoHasher("sha256").update(conversation[0]?.id ?? "").digest();
  return HALVES[(digest[0] ?? 0) % 2] ?? "tuning";
}
