/** What follows a commit, or a rollback. */
export interface CommitHook {
  then: () => void;
  otherwise: () => void;
}

/** Runs what follows a commit. The change is made, so what fails of it goes to `onFailure`, and the others run too. */
export function follow(made: CommitHook[], onFailure: (error: unknown) => void): void {
  for (const { then } of made) {
    try {
      then();
    } catch (error) {
      onFailure(error);
    }
  }
}

/** In reverse order, so that each finds the state it left. */
export const undoAll = (made: CommitHook[]): void => runAll(made.reverse().map(({ otherwise }) => otherwise));

/** Runs all of them, then rethrows the first failure. */
function runAll(steps: (() => void)[]): void {
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
