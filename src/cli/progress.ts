import { backTo, colours, mayDraw, note, shortSize, stream, terminalColumns } from "./output.ts";

/** How far long work has come: a bar on a terminal; elsewhere nothing, since the result says it all, or a few lines. */
export interface Progress {
  /** Of `total` bytes, or whatever the work counts. */
  show(done: number, total: number): void;
  /** Removes the bar. */
  end(): void;
}

const EVERY_MS = 100;
const WIDTH = 30;

/** `what` is said before the bar. With `lines`, for work that may take hours, a log gets a line for each tenth of it. */
export function createProgress(what: string, { quiet = false, lines = false } = {}): Progress {
  const room = (terminalColumns() ?? 0) - what.length - "  100 %".length;
  if (quiet || !mayDraw() || room < WIDTH) return lines && !quiet ? inLines(what) : { show() {}, end() {} };
  let shownAtMs = Number.NEGATIVE_INFINITY;
  return {
    show(done, total) {
      if (done < total && performance.now() - shownAtMs < EVERY_MS) return;
      shownAtMs = performance.now();
      const share = total === 0 ? 1 : Math.min(1, done / total);
      const full = Math.round(share * WIDTH);
      const bar = [colours.cyan("█".repeat(full)), colours.dim("░".repeat(WIDTH - full))];
      stream(backTo(0), `${what} `, ...bar, ` ${Math.floor(share * 100)} %`);
    },
    end: () => stream(backTo(0)),
  };
}

/** On standard error; amounts are bytes. */
function inLines(what: string): Progress {
  let saidTenths = -1;
  return {
    show(done, total) {
      const tenths = total === 0 ? 10 : Math.floor((done / total) * 10);
      if (tenths <= saidTenths) return;
      saidTenths = tenths;
      note(`${what}: ${tenths * 10} %, ${shortSize(done)} of ${shortSize(total)}`);
    },
    end() {},
  };
}
