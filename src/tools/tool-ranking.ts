import { stemsOf } from "../lib/words.ts";
import type { ToolDescription } from "../models/engine.ts";

/** How much a word of the name counts more than one of the description. */
const NAME_WEIGHT = 3;
/** The usual constants of BM25: how soon a repeated word stops to count, and how much long descriptions lose. */
const K1 = 1.2;
const B = 0.75;
/** A query that has a tool's whole name means that tool. */
const WHOLE_NAME = 100;

/** The tools that have words of the query in their name, description or inputs, best first (BM25). */
export function rankTools(tools: readonly ToolDescription[], query: string): ToolDescription[] {
  const asked = new Set(stemsOf(query));
  const texts = tools.map(countWords);
  const averageLength = texts.reduce((sum, { length }) => sum + length, 0) / tools.length;
  const rarity = new Map(
    [...asked].map((word) => {
      const having = texts.filter(({ counts }) => counts.has(word)).length;
      return [word, Math.log(1 + (tools.length - having + 0.5) / (having + 0.5))];
    }),
  );
  const names = new Set(query.split(/[^\w.-]+/));
  const scores = texts.map(({ counts, length }, at) => {
    let score = names.has(tools[at]?.name ?? "") ? WHOLE_NAME : 0;
    for (const [word, weight] of rarity) {
      const count = counts.get(word) ?? 0;
      score += (weight * count * (K1 + 1)) / (count + K1 * (1 - B + (B * length) / averageLength));
    }
    return score;
  });
  return tools
    .map((tool, at) => ({ tool, score: scores[at] ?? 0 }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .map(({ tool }) => tool);
}

interface CountedWords {
  counts: ReadonlyMap<string, number>;
  length: number;
}

/** Descriptions do not change, and are searched again and again. */
const counted = new WeakMap<ToolDescription, CountedWords>();

function countWords(tool: ToolDescription): CountedWords {
  const known = counted.get(tool);
  if (known) return known;
  const counts = new Map<string, number>();
  let length = 0;
  const add = (text: string, weight: number) => {
    for (const word of stemsOf(text)) {
      counts.set(word, (counts.get(word) ?? 0) + weight);
      length += weight;
    }
  };
  add(tool.name, NAME_WEIGHT);
  add(tool.description, 1);
  add(Object.keys(tool.inputSchema.properties ?? {}).join(" "), 1);
  const words = { counts, length };
  counted.set(tool, words);
  return words;
}
