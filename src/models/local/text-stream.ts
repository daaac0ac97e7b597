/**
 * Turns tokens into text as they arrive: a byte-level token is a piece of UTF-8, so a streaming decoder returns each
 * token's text in constant time, and holds back a character until its last byte has arrived.
 */
export interface TextStream {
  /** The text that may be shown after this token; `stopped` once a stop string has appeared, which is not shown. */
  push(bytes: Uint8Array): { text: string; stopped: boolean };
  /** The text that was held back, for an answer that ends without a stop string. */
  end(): string;
}

export function createTextStream(stops: readonly string[]): TextStream {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let held = "";

  return {
    push(bytes) {
      held += decoder.decode(bytes, { stream: true });
      const found = stops.map((stop) => held.indexOf(stop)).filter((at) => at >= 0);
      const stopped = found.length > 0;
      const show = stopped ? Math.min(...found) : held.length - possibleStart(held, stops);
      const text = held.slice(0, show);
      held = held.slice(show);
      return { text, stopped };
    },
    end: () => held + decoder.decode(),
  };
}

/** Length of the longest end of `text` that is the beginning of a stop string. */
export function possibleStart(text: string, stops: readonly string[]): number {
  const longest = Math.max(0, ...stops.map((stop) => stop.length - 1));
  for (let length = Math.min(longest, text.length); length > 0; length--) {
    const end = text.slice(-length);
    if (stops.some((stop) => stop.startsWith(end))) return length;
  }
  return 0;
}
