export interface WaitingLine<T> {
  /** Puts an item at the end of its owner's line. One that waits already keeps its turn. */
  add(owner: string, item: T): void;
  /**
   * Offers the first item of each owner in turn. `"taken"`: the owner's next item comes after everybody else's; `"not this
   * owner"`: its line waits on. What is added meanwhile is offered too; asked for meanwhile, it does nothing.
   */
  serve(accept: (item: T, owner: string) => "taken" | "not this owner"): void;
  /** How many wait, of one owner. */
  length(owner: string): number;
  isEmpty(): boolean;
}

/** Who waits for what the host has too little of: owners take turns, and within one owner the first come is first served. */
export function createWaitingLine<T>(): WaitingLine<T> {
  /** In the order of their turns. */
  const lines = new Map<string, Set<T>>();
  let serving = false;

  function remove(owner: string, item: T): void {
    const line = lines.get(owner);
    if (line?.delete(item) && line.size === 0) lines.delete(owner);
  }

  function offerAll(accept: (item: T, owner: string) => "taken" | "not this owner"): void {
    const refused = new Set<string>();
    while (refused.size < lines.size) {
      for (const [owner, line] of [...lines]) {
        const [item] = line;
        if (item === undefined || refused.has(owner) || !lines.has(owner)) continue;
        const answer = accept(item, owner);
        if (answer === "not this owner") {
          refused.add(owner);
          continue;
        }
        remove(owner, item);
        // To the end: the others come first.
        if (lines.delete(owner)) lines.set(owner, line);
      }
    }
  }

  return {
    add(owner, item) {
      const line = lines.get(owner);
      if (line) line.add(item);
      else lines.set(owner, new Set([item]));
    },
    serve(accept) {
      if (serving) return;
      serving = true;
      try {
        offerAll(accept);
      } finally {
        serving = false;
      }
    },
    length: (owner) => lines.get(owner)?.size ?? 0,
    isEmpty: () => lines.size === 0,
  };
}
