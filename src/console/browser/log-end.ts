const NEAR_END_PX = 80;
const ABOVE_PX = 12;

/** How far a conversation is scrolled at its end: there, or where the first open approval begins, if that is higher. */
function endOf(log: HTMLElement): number {
  const end = log.scrollHeight - log.clientHeight;
  const open = log.querySelector(".approval:not(.decided)");
  if (!open) return end;
  const begins = log.scrollTop + open.getBoundingClientRect().top - log.getBoundingClientRect().top;
  return Math.min(end, begins - ABOVE_PX);
}

export const isAtEnd = (log: HTMLElement): boolean => endOf(log) - log.scrollTop < NEAR_END_PX;

export function toEnd(log: HTMLElement): void {
  log.scrollTop = endOf(log);
}
