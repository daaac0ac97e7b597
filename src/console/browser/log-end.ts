/** How near its end a log stands at it: positions are told in whole pixels, and are not always that. */
const AT_END_PX = 2;
const ABOVE_PX = 12;

/** Keeps a conversation's log scrolled to its end until a person scrolls up, and again once they are back there. */
export interface LogEnd {
  /** Makes a change that may grow the log. */
  keep(change: () => void): void;
  /** Goes to the end, wherever the log is scrolled. */
  go(): void;
}

export function watchEnd(log: HTMLElement): LogEnd {
  let follows = true;
  /** How far it was scrolled, and how far it could be, when that was last seen. */
  let top = 0;
  let most = 0;
  let isShown = false;

  function see(): void {
    // One that is not shown has no position.
    if (log.clientHeight === 0) return;
    const mostNow = log.scrollHeight - log.clientHeight;
    // Safari lets a log be pulled beyond its end, and takes it back.
    const topNow = Math.min(log.scrollTop, mostNow);
    const isShorter = mostNow < most;
    // What has become shorter may have moved up by that.
    if (topNow < top && !isShorter) follows = false;
    else if (topNow !== top || isShorter) follows = isAtEnd(log) || (follows && topNow >= top);
    top = topNow;
    most = mostNow;
  }
  function toEnd(): void {
    // Who reads on in an approval is not taken back to where it begins.
    if (follows) log.scrollTop = Math.max(log.scrollTop, endOf(log));
    see();
  }

  log.addEventListener("scroll", see);
  // Who unfolds something reads there.
  log.addEventListener("click", ({ target }) => {
    if (target instanceof Element && target.closest("summary")) follows = false;
  });
  const resized = new ResizeObserver(() => {
    const wasShown = isShown;
    isShown = log.clientHeight > 0;
    if (!isShown) return;
    // Not every browser brings it back where it was.
    if (!wasShown) log.scrollTop = top;
    toEnd();
  });
  resized.observe(log);
  return {
    keep(change) {
      see();
      change();
      toEnd();
    },
    go() {
      follows = true;
      toEnd();
    },
  };
}

/** How far a conversation is scrolled at its end: there, or where the first open approval begins, if that is higher. */
function endOf(log: HTMLElement): number {
  const end = log.scrollHeight - log.clientHeight;
  const open = log.querySelector(".approval:not(.decided)");
  if (!open) return end;
  const begins = log.scrollTop + open.getBoundingClientRect().top - log.getBoundingClientRect().top;
  return Math.min(end, begins - ABOVE_PX);
}

const isAtEnd = (log: HTMLElement): boolean => endOf(log) - log.scrollTop <= AT_END_PX;
