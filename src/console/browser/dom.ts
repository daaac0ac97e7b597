import { ApiError } from "./api.ts";

/** The page's element with this id. Throws where the page and its scripts do not fit together. */
export function part<T extends HTMLElement>(id: string, kind: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`the page has no #${id}`);
  return found;
}

/** A new element. Text goes in as text, never as markup. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className = "",
  ...content: (string | Node)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  if (className !== "") element.className = className;
  element.append(...content);
  return element;
}

/**
 * Does what a button or form asks for. Its buttons rest meanwhile; what goes wrong is said in the `role="alert"` of its
 * section, with the next step.
 */
export async function attempt(control: HTMLElement, work: () => Promise<void>): Promise<void> {
  const alert = control.closest("section")?.querySelector<HTMLElement>("[role=alert]");
  const buttons = control instanceof HTMLButtonElement ? [control] : [...control.querySelectorAll("button")];
  if (buttons.some((button) => button.disabled)) return;
  for (const button of buttons) button.disabled = true;
  if (alert) alert.hidden = true;
  try {
    await work();
  } catch (error) {
    if (alert) sayError(alert, error);
  } finally {
    for (const button of buttons) button.disabled = false;
  }
}

export function sayError(alert: HTMLElement, error: unknown): void {
  const { message, nextStep } =
    error instanceof ApiError ? error : { message: "this page failed", nextStep: `Load it again. (${String(error)})` };
  alert.replaceChildren(make("strong", "", message), nextStep);
  alert.hidden = false;
}

/** `9.993200` → `9.9932`, `10.000000` → `10.00`. */
export const money = (amount: string): string => amount.replace(/(\.\d\d\d*?)0+$/, "$1");

export const day = (time: string): string =>
  new Date(time).toLocaleDateString(undefined, { day: "numeric", month: "short", year: "numeric" });

/** Makes every `<button data-copy="id">` copy the text of that element. */
export function armCopyButtons(): void {
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest<HTMLElement>("[data-copy]") : null;
    const source = button && document.getElementById(button.dataset.copy ?? "");
    if (button && source) void copy(source, button);
  });
}

async function copy(source: HTMLElement, button: HTMLElement): Promise<void> {
  try {
    await navigator.clipboard.writeText(source.textContent);
    button.textContent = "Copied";
  } catch {
    // Browsers keep the clipboard from pages without TLS, except on the machine itself.
    getSelection()?.selectAllChildren(source);
    button.textContent = "Press Ctrl+C";
  }
  for (const leave of ["blur", "pointerleave"]) {
    button.addEventListener(leave, () => (button.textContent = "Copy"), { once: true });
  }
}
