/** Lets a few requests of each instance in at once. The others wait here, in order, at no cost to the model process. */
export interface Queue {
  /** Resolves when it is the request's turn, with a function to call when it is done. Throws the signal's reason. */
  enter(instanceId: string, signal: AbortSignal): Promise<() => void>;
  waiting(): number;
}

interface Line {
  inside: number;
  waiting: Set<() => void>;
}

export function createQueue(mostOfOne: number): Queue {
  const lines = new Map<string, Line>();

  function leave(instanceId: string, line: Line): void {
    line.inside--;
    const [next] = line.waiting;
    if (next !== undefined) {
      line.waiting.delete(next);
      next();
    } else if (line.inside === 0) lines.delete(instanceId);
  }

  return {
    async enter(instanceId, signal) {
      signal.throwIfAborted();
      const line = lines.get(instanceId) ?? { inside: 0, waiting: new Set() };
      lines.set(instanceId, line);
      if (line.inside >= mostOfOne) await turnIn(line, signal);
      else line.inside++;
      let left = false;
      return () => {
        if (!left) leave(instanceId, line);
        left = true;
      };
    },
    waiting: () => [...lines.values()].reduce((sum, { waiting }) => sum + waiting.size, 0),
  };
}

/** Resolves with the place already taken: a request that leaves passes its place on, so none can take it in between. */
function turnIn(line: Line, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      line.waiting.delete(enter);
      reject(signal.reason);
    };
    const enter = () => {
      signal.removeEventListener("abort", onAbort);
      line.inside++;
      resolve();
    };
    line.waiting.add(enter);
    signal.addEventListener("abort", onAbort, { once: true });
  });
}
