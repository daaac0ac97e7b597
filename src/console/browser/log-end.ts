/** How near its end a log stands at it: positions are told in whole pixels, and are not always that. */
const AT_END_PX = 2;
const ABOVE_PX = 12;

/** Keeps a conversation's log scrolled to its end until a person scrolls up, and again once they are back there. */
export interface LogEnd {
  /** Makes a change that may grow the log. */
  keep(change: () => void): void;
  /**
   * Goes to the end, wherever the log is scrolled. What was asked before a person said this is passed by.
   */
  go(said?: Element): void;
}

export function watchEnd(log: HTMLElement): LogEnd {
  let follows = true;
  /** How far it was scrolled, and how far it could be, when that was last seen. */
  let top = 0;
  let most = 0;
  let isShown = false;
  let said: Element | undefined;

  function see(): void {
    // One that is not shown has no position.
    if (log.clientHeight === 0) return;
    const mostNow = log.scrollHeight - log.clientHeight;
    // Safari lets a log be pulled beyond its end, and takes it back.
    const topNow = Math.min(log.scrollTop, mostNow);
    const isShorter = mostNow < most;
    // What has become shorter may have moved up by that.
    if (topNow < top && !isShorter) follows = false;
    else if (topNow !== top || isShorter) follows = isAtEnd() || (follows && topNow >= top);
    top = topNow;
    most = mostNow;
  }
  function toEnd(): void {
    // Who reads on in an approval is not taken back to where it begins.
    if (follows) log.scrollTop = Math.max(log.scrollTop, end());
    see();
  }
  /** How far it is scrolled at its end: there, or where the first open approval begins, if that is higher. */
  function end(): number {
    const most = log.scrollHeight - log.clientHeight;
    const open = [...log.querySelectorAll(".approval:not(.decided)")].find((one) => !isBefore(one, said));
    if (!open) return most;
    const begins = log.scrollTop + open.getBoundingClientRect().top - log.getBoundingClientRect().top;
    return Math.min(most, begins - ABOVE_PX);
  }
  const isAtEnd = () => end() - log.scrollTop <= AT_END_PX;

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
    go(own) {
      said = own;
      follows = true;
      toEnd();
    },
  };
}

const isBefore = (one: Element, other: Element | undefined): boolean =>
  other?.isConnected === true && (one.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING) !== 0;
