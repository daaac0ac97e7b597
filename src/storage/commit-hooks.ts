/** What follows a commit, or a rollback. */
export interface CommitHook {
  then: () => void;
  otherwise: () => void;
}

/** In reverse order, so that each finds the state it left. */
export const undoAll = (made: CommitHook[]): void => runAll(made.reverse().map(({ otherwise }) => otherwise));

/** Runs all of them, then rethrows the first failure. */
export function runAll(steps: (() => void)[]): void {
  const failures: unknown[] = [];
  for (const step of steps) {
    try {
      step();
    } catch (failure) {
      failures.push(failure);
    }
  }
  if (failures.length > 0) throw failures[0];
}
