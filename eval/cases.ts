/** The committed cases: `personas/*.json`, one file for each persona. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export interface Length {
  /** At most. */
  sentences?: number;
  /** At most. */
  words?: number;
}

/** One message, and the criteria for its answer. */
export interface Case extends Length {
  id: string;
  kind: string;
  say: string;
  /** Reference answers: a good answer is close in meaning to one of them. */
  like: string[];
  /** The minimum of words, if a long answer was asked for. */
  least?: number;
  /** Words that the answer must contain, such as a name. */
  says?: string[];
  /**
   * What a useful answer may name, as words or their beginnings (four letters or more), separated by spaces: it must
   * name at least one. Written from the question, not from answers.
   */
  gives?: string;
  /** Whether the answer must contain one of the persona's words. */
  voice?: true;
  /** Set if the answer need not be in the persona's language: a translation. */
  language?: "any";
}

export interface Persona {
  name: string;
  /** Its SOUL.md; null for the default one. */
  soul: string | null;
  language: "en" | "de" | "es";
  /** Words that are typical of this persona. */
  voice: string[];
  /** The length of answers that its SOUL.md asks for. */
  length?: Length;
  /** Each starts without history; most have one message. */
  conversations: Case[][];
}

export const HALVES = ["tuning", "held"] as const;
export type Half = (typeof HALVES)[number];

export function readPersonas(): Persona[] {
  const folder = join(import.meta.dir, "personas");
  const files = readdirSync(folder).sort();
  return files.map((file) => JSON.parse(readFileSync(join(folder, file), "utf8")));
}

/** Depends only on the first case's id, so that a case stays in its half whatever is added. */
export function halfOf(conversation: readonly Case[]): Half {
  const digest = new Bun.CryptoHasher("sha256").update(conversation[0]?.id ?? "").digest();
  return HALVES[(digest[0] ?? 0) % 2] ?? "tuning";
}
