import { readFileSync } from "node:fs";
import { isObject } from "../lib/is-object.ts";
import { describeSystemError } from "../lib/system-error.ts";

/** The prices of one model, in millionths of a US dollar for a million tokens. */
export interface ModelPrice {
  prompt: number;
  /** For tokens of the prompt that came from a cache. */
  cached: number;
  completion: number;
}

/** By model, `openai:…` or `local:…`. */
export type ModelPrices = ReadonlyMap<string, ModelPrice>;

/** USD a million tokens. */
const MAX_PRICE = 1_000_000;
const MILLION = 1_000_000;
/** What a file of prices looks like. */
export const PRICES_EXAMPLE = '{ "openai:gpt-x": { "prompt": 2.5, "cached": 0.25, "completion": 10 } }';
const EXPECTED = `expected JSON such as ${PRICES_EXAMPLE}`;

/** Reads a file of prices in USD a million tokens. A text says what is wrong with it. */
export function readModelPrices(path: string): ModelPrices | string {
  let document: unknown;
  try {
    document = JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    if (error instanceof SyntaxError) return `it is not JSON: ${EXPECTED}`;
    return (describeSystemError("it cannot be read", error) as Error).message;
  }
  if (!isObject(document)) return `it holds no prices: ${EXPECTED}`;
  const prices = new Map<string, ModelPrice>();
  for (const [model, written] of Object.entries(document)) {
    if (!/^(local|openai):\S+$/.test(model)) return `its "${model}" names no model: ${EXPECTED}`;
    const price = readPrice(written);
    if (price === null) return `its "${model}" needs prompt and completion prices from 0 to ${MAX_PRICE}: ${EXPECTED}`;
    prices.set(model, price);
  }
  return prices;
}

function readPrice(written: unknown): ModelPrice | null {
  if (!isObject(written)) return null;
  const { prompt, cached = prompt, completion, ...others } = written;
  if (!isPrice(prompt) || !isPrice(cached) || !isPrice(completion) || Object.keys(others).length > 0) return null;
  const inMillionths = (dollars: number) => Math.round(dollars * MILLION);
  return { prompt: inMillionths(prompt), cached: inMillionths(cached), completion: inMillionths(completion) };
}

const isPrice = (value: unknown): value is number => typeof value === "number" && value >= 0 && value <= MAX_PRICE;

export interface TokenCounts {
  promptTokens: number;
  /** Part of `promptTokens`. */
  cachedTokens: number;
  completionTokens: number;
}

/** What so many tokens cost, in millionths of a US dollar, rounded up, at most the largest exact number; null without a price. */
export function costOfTokens(price: ModelPrice | undefined, counts: TokenCounts): number | null {
  if (price === undefined) return null;
  const { promptTokens, cachedTokens, completionTokens } = counts;
  const parts =
    (promptTokens - cachedTokens) * price.prompt + cachedTokens * price.cached + completionTokens * price.completion;
  return Math.min(Math.ceil(parts / MILLION), Number.MAX_SAFE_INTEGER);
}
