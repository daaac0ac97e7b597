/** Begins work now, or in a later turn of the event loop. */
export type Pace = <T>(begin: () => T | Promise<T>) => T | Promise<T>;

/**
 * Begins so many requests in one turn; the others wait for later turns, in their order. A connection may send thousands
 * ahead, all of which are read in one turn: without a pause nobody else would be answered meanwhile. Bun closes a
 * connection that sends on while one of its requests waits.
 */
export function createPace(atOnce: number, nextTurn: (then: () => void) => void = setImmediate): Pace {
  const waiting: (() => void)[] = [];
  let begun = 0;

  function turn(): void {
    const next = waiting.splice(0, atOnce);
    begun = next.length;
    if (begun > 0) nextTurn(turn);
    for (const begin of next) begin();
  }

  return (begin) => {
    if (waiting.length === 0 && begun < atOnce) {
      if (begun++ === 0) nextTurn(turn);
      return begin();
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    waiting.push(resolve);
    return promise.then(begin);
  };
}
