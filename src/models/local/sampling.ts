/** Choosing the next token from the logits. */
export interface Sampling {
  /** 0 always takes the most likely token. */
  temperature: number;
  topK: number;
  topP: number;
  /** Divides the logits of tokens that were already written; 1 is off. */
  repetition: number;
}

/** What suits SmolLM2: its authors' temperature and top-p, with a light penalty, since it loops without one. */
export const SAMPLING: Sampling = { temperature: 0.2, topK: 40, topP: 0.9, repetition: 1.1 };

/** mulberry32: numbers in [0, 1), the same ones for the same seed. */
export function seededRandom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** The next token. Changes `logits` (the repetition penalty is written into them). */
export function chooseToken(
  logits: Float32Array,
  written: Iterable<number>,
  sampling: Sampling,
  random: () => number,
): number {
  if (sampling.repetition !== 1) {
    for (const token of written) {
      const value = logits[token] ?? 0;
      logits[token] = value > 0 ? value / sampling.repetition : value * sampling.repetition;
    }
  }
  const k = sampling.temperature > 0 ? sampling.topK : 1;
  const best = likeliest(logits, k);
  const top = best[0];
  if (top === undefined || k === 1) return top?.token ?? 0;

  const weights = best.map(({ value }) => Math.exp((value - top.value) / sampling.temperature));
  const enough = sampling.topP * weights.reduce((sum, weight) => sum + weight, 0);
  let mass = 0;
  const nucleus = best.filter((_, i) => {
    if (mass >= enough) return false;
    mass += weights[i] ?? 0;
    return true;
  });
  let rest = random() * mass;
  for (const [i, { token }] of nucleus.entries()) {
    rest -= weights[i] ?? 0;
    if (rest <= 0) return token;
  }
  return top.token;
}

/** The `k` largest logits, largest first. One pass; nearly every value fails the first comparison. */
export function likeliest(logits: Float32Array, k: number): { token: number; value: number }[] {
  const values = new Float32Array(k).fill(Number.NEGATIVE_INFINITY);
  const tokens = new Int32Array(k);
  let least = Number.NEGATIVE_INFINITY;
  for (let token = 0; token < logits.length; token++) {
    const value = logits[token] as number;
    if (value <= least) continue;
    let at = k - 1;
    for (; at > 0 && (values[at - 1] as number) < value; at--) {
      values[at] = values[at - 1] as number;
      tokens[at] = tokens[at - 1] as number;
    }
    values[at] = value;
    tokens[at] = token;
    least = values[k - 1] as number;
  }
  return Array.from(values, (value, i) => ({ token: tokens[i] as number, value }));
}
