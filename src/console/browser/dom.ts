import { focusNear } from "./focus.ts";
import { toldError } from "./told-error.ts";

/** The page's element with this id. Throws if the page and its scripts do not match. */
export function part<T extends HTMLElement>(id: string, kind: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`the page has no #${id}`);
  return found;
}

/** Creates an element. Text is inserted as text, never as markup. */
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

/** The element that shows the errors of its section. */
export function makeAlert(): HTMLElement {
  const alert = make("p", "error");
  alert.role = "alert";
  alert.hidden = true;
  return alert;
}

/** A button that runs this action; an error is shown in the alert of its section. */
export function makeButton(text: string, className: string, work: () => Promise<void>): HTMLButtonElement {
  const button = make("button", className, text);
  button.type = "button";
  button.addEventListener("click", () => void attempt(button, work));
  return button;
}

/** A name that somebody else has chosen: whatever direction it is written in, the words around it stay where they are. */
export const nameOf = (name: string): HTMLElement => make("bdi", "", name);

/**
 * Runs the action of a button or form, with its buttons disabled meanwhile. An error is shown in the `role="alert"` of
 * its section, with the next step. The focus that a disabled button loses comes back, unless it is elsewhere by then.
 */
export async function attempt(control: HTMLElement, work: () => Promise<void>): Promise<void> {
  const buttons = control instanceof HTMLButtonElement ? [control] : [...control.querySelectorAll("button")];
  if (buttons.some((button) => button.disabled)) return;
  const focused = buttons.find((button) => button === document.activeElement);
  const returnFocus = focused ? focusNear(focused) : () => undefined;
  for (const button of buttons) button.disabled = true;
  try {
    await reportErrors(control, work);
  } finally {
    for (const button of buttons) button.disabled = false;
    returnFocus();
  }
}

/**
 * The same with the buttons left enabled: the action may be started again meanwhile. An error is not shown if `isWanted`
 * says that something else is shown by then.
 */
export async function reportErrors(
  control: HTMLElement,
  work: () => Promise<void>,
  isWanted = () => true,
): Promise<void> {
  const alert = alertFor(control);
  if (alert) alert.hidden = true;
  try {
    await work();
  } catch (error) {
    if (alert && isWanted()) showError(alert, error);
  }
}

/** The element that shows errors in this control's section; a section inside of it has its own. */
export function alertFor(control: HTMLElement): HTMLElement | null {
  const section = control.closest("section");
  const alerts = section?.querySelectorAll<HTMLElement>("[role=alert]") ?? [];
  return [...alerts].find((alert) => alert.closest("section") === section) ?? null;
}

/** The error that each alert has shown last. */
const shownErrors = new WeakMap<HTMLElement, unknown>();

export function showError(alert: HTMLElement, error: unknown): void {
  const { message, nextStep } = toldError(error);
  alert.replaceChildren(make("strong", "", message), nextStep);
  alert.hidden = false;
  shownErrors.set(alert, error);
}

/** Hides the errors that are over where they are still shown; others that were shown there since stay. */
export function hideErrors(isOver: (error: unknown) => boolean): void {
  for (const alert of document.querySelectorAll<HTMLElement>("[role=alert]")) {
    if (isOver(shownErrors.get(alert))) alert.hidden = true;
  }
}

/** Shows what is wrong next to a field, and focuses it. `clearFieldErrors` removes it. */
export function showFieldError(field: HTMLInputElement, fault: string): void {
  const place = part(`${field.id}-error`, HTMLElement);
  place.textContent = fault;
  place.hidden = false;
  field.setAttribute("aria-invalid", "true");
  field.setAttribute("aria-describedby", place.id);
  for (let fold = field.closest("details"); fold; fold = fold.parentElement?.closest("details") ?? null)
    fold.open = true;
  field.focus();
}

export function clearFieldErrors(form: HTMLFormElement): void {
  for (const field of form.querySelectorAll("input[aria-invalid]")) {
    field.removeAttribute("aria-invalid");
    field.removeAttribute("aria-describedby");
    part(`${field.id}-error`, HTMLElement).hidden = true;
  }
}

/** As the page's own language writes it, whatever the browser's is; so are days. */
export const figure = (count: number): string => count.toLocaleString("en");

export const day = (time: string): string =>
  new Date(time).toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric" });

/** `just now`, `5 min ago`, `3 h ago`; beyond a day the day. */
export function ago(time: string): string {
  const minutes = Math.floor((Date.now() - Date.parse(time)) / 60_000);
  if (minutes < 1) return "just now";
  if (minutes < 60) return `${minutes} min ago`;
  return minutes < 24 * 60 ? `${Math.floor(minutes / 60)} h ago` : day(time);
}

/** The first press asks for confirmation where that is needed, the second runs the action; leaving the button cancels. */
export function confirmPress(
  button: HTMLButtonElement,
  question: string,
  work: () => Promise<void>,
  isNeeded = () => true,
): void {
  const isAsking = () => button.classList.contains("asking");
  let text = "";
  let label = "";
  const ask = () => {
    [text, label] = [button.textContent, button.getAttribute("aria-label") ?? ""];
    button.classList.add("asking");
    button.textContent = question;
    button.setAttribute("aria-label", `Really ${label.charAt(0).toLowerCase()}${label.slice(1)}?`);
    button.focus();
  };
  const stopAsking = () => {
    if (!isAsking()) return;
    button.classList.remove("asking");
    button.textContent = text;
    button.setAttribute("aria-label", label);
  };
  button.addEventListener("blur", stopAsking);
  // Safari gives no focus to a button that is pressed, and takes it even from this one: it is given and kept here.
  button.addEventListener("mousedown", (event) => {
    if (isAsking()) event.preventDefault();
  });
  button.addEventListener("click", () => {
    if (!isAsking() && isNeeded()) return ask();
    stopAsking();
    void attempt(button, work);
  });
}

/** Returns what tells whether something is written in this form and not saved; resetting or erasing it ends that. */
export function watchWriting(form: HTMLFormElement): () => boolean {
  let isTouched = false;
  form.addEventListener("input", () => {
    isTouched = true;
  });
  form.addEventListener("reset", () => {
    isTouched = false;
  });
  const isWritten = (field: Element) =>
    (field instanceof HTMLInputElement || field instanceof HTMLTextAreaElement) && field.value !== field.defaultValue;
  return () => isTouched && [...form.elements].some(isWritten);
}

/**
 * Makes every `<button data-copy="id">` copy the text of the element with that id. The button says `Copy`, and what it copies
 * in an element of its own, which stays while the button says what came of it.
 */
export function armCopyButtons(): void {
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest<HTMLElement>("[data-copy]") : null;
    const source = button && document.getElementById(button.dataset.copy ?? "");
    if (button && source) void copy(source.textContent, source, button);
  });
}

/** Such a button for what comes and goes: it copies this text, which `shown` shows. */
export function makeCopyButton(what: string, text: () => string, shown: HTMLElement): HTMLButtonElement {
  const button = make("button", "quiet small copy", "Copy", make("span", "unseen", ` ${what}`));
  button.type = "button";
  button.addEventListener("click", () => void copy(text(), shown, button));
  return button;
}

async function copy(text: string, shown: HTMLElement, button: HTMLElement): Promise<void> {
  const say = (word: string) => button.firstChild?.replaceWith(word);
  try {
    await navigator.clipboard.writeText(text);
    say("Copied");
  } catch {
    // Browsers block the clipboard on pages without TLS, except from their own machine: there they copy what is selected.
    getSelection()?.selectAllChildren(shown);
    say(document.execCommand("copy") ? "Copied" : "Selected");
  }
  for (const leave of ["blur", "pointerleave"]) button.addEventListener(leave, () => say("Copy"), { once: true });
}

/**
 * A bar that is filled by `value` of `most`, both at least 0. Browsers draw `<meter>` each in its own way and colours,
 * and WebKit draws an empty one as if it were full.
 */
export function makeBar(label: string, value: number, most: number): HTMLElement {
  const filled = make("span");
  filled.style.inlineSize = `${most > 0 ? Math.min(100, (100 * value) / most) : 0}%`;
  const bar = make("span", "bar", filled);
  bar.role = "meter";
  bar.ariaLabel = label;
  bar.ariaValueMin = "0";
  bar.ariaValueMax = String(most);
  bar.ariaValueNow = String(value);
  return bar;
}
