/**
 * Decides with sentence vectors whether a message wants a tool, and which: a few milliseconds, and none for most talk.
 */
import type { Embed } from "../embedder.ts";
import { withoutDetails, withoutGreeting } from "./details.ts";
import { type AskedTool, EXAMPLES, type Examples } from "./examples.ts";

/** A longer message is a story or a task, which one call does not serve. */
const MAX_CHARACTERS = 240;
/** The cosine to an example that is close enough, and by how much it must be closer than the closest that is only talk. */
const NEAR = 0.45;
const NEARER = 0.05;

/** What somebody should do is no question for a tool, though it may name one's files. */
const ASKS_FOR_ADVICE = /\b(?:should|could|can|may) (?:i|we)\b|\bany (?:ideas?|tips|advice)\b/i;
/** How many worked examples the model is shown: the closest. */
const WORKED = 3;

export interface WantedTool {
  name: AskedTool;
  /** The closest last. */
  worked: Examples["wants"];
}

/** Null if the message wants none of the tools. */
export type FindWanted = (message: string, offered: readonly AskedTool[]) => Promise<WantedTool | null>;

export function createFindWanted(embed: Embed): FindWanted {
  const known = new Map<AskedTool, Promise<{ wants: Float32Array[]; talk: Float32Array[] }>>();

  function examplesOf(name: AskedTool) {
    const vectors = known.get(name) ?? embedExamples(name);
    known.set(name, vectors);
    vectors.catch(() => known.delete(name));
    return vectors;
  }

  async function embedExamples(name: AskedTool) {
    const { wants, talk } = EXAMPLES[name];
    const all = await embed([...wants.map(([say]) => say), ...talk].map(withoutDetails));
    return { wants: all.slice(0, wants.length), talk: all.slice(wants.length) };
  }

  return async (message, offered) => {
    const text = withoutGreeting(message);
    if (text.length > MAX_CHARACTERS || ASKS_FOR_ADVICE.test(text)) return null;
    const possible = offered.filter((name) => EXAMPLES[name].mentions.every((pattern) => pattern.test(text)));
    if (possible.length === 0) return null;
    const [vector] = await embed([withoutDetails(text)]);
    let found: (WantedTool & { nearness: number }) | null = null;
    for (const name of possible) {
      const vectors = await examplesOf(name);
      const byNearness = vectors.wants
        .map((other, at) => ({ example: EXAMPLES[name].wants[at] ?? [""], nearness: cosine(vector, other) }))
        .sort((a, b) => a.nearness - b.nearness);
      const nearness = byNearness.at(-1)?.nearness ?? -1;
      const talk = Math.max(...vectors.talk.map((other) => cosine(vector, other)));
      if (nearness < NEAR || nearness < talk + NEARER || nearness <= (found?.nearness ?? -1)) continue;
      found = { name, nearness, worked: byNearness.slice(-WORKED).map(({ example }) => example) };
    }
    return found;
  };
}

/** Of vectors of length 1. */
export const cosine = (a: Float32Array | undefined, b: Float32Array | undefined): number =>
  a?.reduce((sum, value, at) => sum + value * (b?.[at] ?? 0), 0) ?? 0;
