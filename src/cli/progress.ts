import { backTo, colours, mayDraw, stream, terminalColumns } from "./output.ts";

/** How far long work has come: a bar on a terminal, nothing elsewhere, where the result says it all. */
export interface Progress {
  /** Of `total` bytes, or whatever the work counts. */
  show(done: number, total: number): void;
  /** Removes the bar. */
  end(): void;
}

const EVERY_MS = 100;
const WIDTH = 30;

/** `what` is said before the bar. */
export function createProgress(what: string, { quiet = false } = {}): Progress {
  const room = (terminalColumns() ?? 0) - what.length - "  100 %".length;
  if (quiet || !mayDraw() || room < WIDTH) return { show() {}, end() {} };
  let shownAtMs = Number.NEGATIVE_INFINITY;
  return {
    show(done, total) {
      if (performance.now() - shownAtMs < EVERY_MS) return;
      shownAtMs = performance.now();
      const share = total === 0 ? 1 : Math.min(1, done / total);
      const full = Math.round(share * WIDTH);
      const bar = [colours.cyan("█".repeat(full)), colours.dim("░".repeat(WIDTH - full))];
      stream(backTo(0), `${what} `, ...bar, ` ${Math.floor(share * 100)} %`);
    },
    end: () => stream(backTo(0)),
  };
}
