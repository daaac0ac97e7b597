const FOCUSABLE = "a[href], button, input, select, textarea, summary, [tabindex]";

/**
 * To call before this control is disabled, hidden or removed. Returns what gives it the focus again if that is nowhere by
 * then; where the control is gone, what stood before it in the same part of the page, or else behind it.
 */
export function focusNear(control: HTMLElement): () => void {
  const around: Element[] = [];
  for (let part = control.parentElement; part && part !== document.body; part = part.parentElement) around.push(part);
  const inOrder = [...document.querySelectorAll<HTMLElement>(FOCUSABLE)];
  const at = inOrder.indexOf(control);
  const byNearness = [...inOrder.slice(0, at).reverse(), ...inOrder.slice(at + 1)];
  return () => {
    // What is disabled or hidden may still have it until the page is drawn again.
    const focused = document.activeElement;
    if (focused && focused !== document.body && focused !== control) return;
    if (take(control)) return;
    for (const part of around) if (byNearness.some((other) => part.contains(other) && take(other))) return;
  };
}

/** Focuses it, if it is shown and takes the focus. */
function take(element: HTMLElement): boolean {
  if (!element.checkVisibility()) return false;
  element.focus({ preventScroll: true });
  return document.activeElement === element;
}
