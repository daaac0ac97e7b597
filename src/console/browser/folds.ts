import { attempt, reportErrors } from "./dom.ts";

const AT_ONCE = 20;

/**
 * Fills this `<details>` anew each time that somebody opens it: with the first of what `read` yields, and more on demand.
 * It has a list, and a button for more; the text for when there is nothing is hidden by its class.
 */
export function fillWhenOpened<T>(
  fold: HTMLDetailsElement,
  read: () => AsyncIterator<T>,
  row: (one: T) => HTMLElement,
): void {
  const [list] = fold.getElementsByTagName("ul");
  const more = fold.querySelector<HTMLButtonElement>(":scope > button");
  if (!list || !more) throw new Error(`#${fold.id} has no list`);
  let items: AsyncIterator<T> | undefined;
  let next: IteratorResult<T> | undefined;

  async function showMore(from: AsyncIterator<T>): Promise<void> {
    more?.toggleAttribute("hidden", true);
    for (let shown = 0; shown < AT_ONCE; shown++) {
      next ??= await from.next();
      // It was closed and opened meanwhile.
      if (from !== items) return;
      if (next.done) break;
      list?.append(row(next.value));
      next = undefined;
    }
    next ??= await from.next();
    if (from !== items) return;
    fold.classList.remove("loading");
    more?.toggleAttribute("hidden", next.done === true);
  }

  fold.addEventListener("toggle", () => {
    if (!fold.open) return;
    list.replaceChildren();
    fold.classList.add("loading");
    next = undefined;
    const from = read();
    items = from;
    void reportErrors(fold, () => showMore(from));
  });
  more.addEventListener("click", () => {
    void attempt(more, async () => {
      const last = list.lastElementChild;
      if (items) await showMore(items);
      last?.nextElementSibling?.querySelector<HTMLElement>("summary, button")?.focus();
    });
  });
}
