import { isObject } from "../../lib/is-object.ts";
import { visibleJson, visibleText } from "../../lib/visible-text.ts";
import { askBeforeLeaving, roost } from "./api.ts";
import { attempt, make, makeAlert, makeButton } from "./dom.ts";
import type { Approval } from "./records.ts";
import { visible } from "./visible-text.ts";

let made = 0;

/** What is written and chosen for an approval and not sent, by its id: the same wherever the approval is shown. */
const drafts = new Map<string, Written[]>();
type Written = Pick<HTMLInputElement, "value" | "checked">;
askBeforeLeaving(() => drafts.size > 0);

const OUTCOMES: Record<string, string> = {
  approved: "Approved",
  denied: "Denied",
  answered: "Answered",
  expired: "Nobody decided in time",
  cancelled: "Cancelled",
};

/** What an agent asks: to make a call, or for answers. */
export interface Asked {
  element: HTMLElement;
  /** Shows how it was decided, here or elsewhere. */
  decided(approval: Pick<Approval, "status" | "decidedBy" | "answers">): void;
}

export type Decided = Parameters<Asked["decided"]>[0];

/** Forgets what was written for approvals that are decided: not all of them are shown at that time. */
export function forgetDrafts(isDecided: (approvalId: string) => boolean): void {
  for (const approvalId of drafts.keys()) if (isDecided(approvalId)) drafts.delete(approvalId);
}

/** `Answered by Ada: Friday · bread`. */
export function outcomeOf({ status, decidedBy, answers }: Decided): string {
  const by = decidedBy === null ? "" : ` by ${decidedBy}`;
  const said = answers ? `: ${answers.join(" · ")}` : "";
  return `${OUTCOMES[status] ?? status}${by}${said}`;
}

/**
 * An approval, shown whole, with buttons to decide; calls `whenDecided` once it is, here or elsewhere. Everything in it is
 * an agent's text, and is shown as text.
 */
export function showApproval(approval: Approval, whenDecided: (decision: Decided) => void): Asked {
  const { approvalId, tool, input, inputHash, questions, tainted } = approval;
  const title = make("h2", "", questions ? "Your agent asks" : `May your agent use ${tool}?`);
  title.id = `approval-${++made}`;
  const alert = makeAlert();
  const element = make("section", "approval", title);
  element.setAttribute("aria-labelledby", title.id);
  element.tabIndex = -1;
  element.dataset.approvalId = approvalId;

  let isMine = false;
  let isOpen = true;
  function decided(decision: Decided): void {
    // An answer and an event tell of the same decision.
    if (!isOpen) return;
    isOpen = false;
    drafts.delete(approvalId);
    element.classList.add("decided");
    element.replaceChildren(title, make("p", "soft", outcomeOf(decision)));
    // The button that had the focus is gone.
    if (isMine) element.focus();
    whenDecided(decision);
  }
  const decide = (body: Decision) => async () => {
    isMine = true;
    decided(await roost.post("/v1/approvals/{approvalId}/decision", { path: { approvalId }, body }));
  };
  const button = (text: string, className: string, body: () => Decision) =>
    makeButton(text, className, () => decide(body())());
  const note = make("input");
  note.maxLength = 1_000;
  note.autocomplete = "off";
  const why = questions ? "If you do not answer, tell your agent why" : "If you deny it, tell your agent why";
  note.setAttribute("aria-label", why);
  // It belongs to no form: Enter in it would answer the questions, and it says why they are not answered.
  note.setAttribute("form", "");
  const said = make("details", "note", make("summary", "soft", why), note);
  const deny = (text: string) =>
    button(text, "quiet", () => ({ decision: "deny", ...(note.value.trim() !== "" && { note: note.value.trim() }) }));

  const warning = make(
    "p",
    "warning",
    "Your agent has read what a stranger may have written. Check that this is what you want.",
  );
  if (questions) {
    const form = make("form", "approval-questions");
    const fields = questions.map((one, at) => fieldOf(one, `${title.id}-${at}`));
    const answer = make("button", "", "Answer");
    form.append(...fields.map((field) => field.element), said, make("div", "row", answer, deny("Do not answer")));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const answers = fields.map((field) => field.value());
      void attempt(form, decide({ decision: "answer", answers }));
    });
    if (tainted) element.append(warning);
    element.append(form);
  } else {
    const remember = make("input");
    remember.type = "checkbox";
    const approve = button("Approve", "", () => ({ decision: "approve", inputHash, remember: remember.checked }));
    element.append(...callShown(input));
    // Nothing is remembered of a run that a stranger may have steered. The warning is where the decision is made.
    element.append(tainted ? warning : make("label", "choice", remember, "Do not ask again for such calls"));
    element.append(said, make("div", "row", approve, deny("Deny")));
  }
  element.append(alert);
  fill(element, drafts.get(approvalId) ?? []);
  element.addEventListener("input", () => keep(approvalId, element));

  return { element, decided };
}

/** A call's input, whole. A text of several lines is shown as text, in a box of its own: escaped, nobody could judge it. */
function callShown(input: Approval["input"]): HTMLElement[] {
  const fields = Object.entries(isObject(input) ? input : {});
  const isText = (value: unknown): value is string => typeof value === "string" && /\n/.test(value.trim());
  const texts = fields.flatMap(([name, value]) =>
    isText(value) ? [make("p", "soft", visibleText(name)), make("pre", "", ...visible(value))] : [],
  );
  if (texts.length === 0) return [make("pre", "", visibleJson(input, 2))];
  const others = fields.filter(([, value]) => !isText(value));
  return [...(others.length === 0 ? [] : [make("pre", "", visibleJson(Object.fromEntries(others), 2))]), ...texts];
}

/** The fields of the answers and of the note; not whether to ask again, which is chosen where it is decided. */
const fieldsIn = (element: HTMLElement) => [
  ...element.querySelectorAll<HTMLInputElement>("input:not([type=checkbox])"),
];

/** Keeps what is written and chosen in this element, and shows it where else the approval stands. */
function keep(approvalId: string, element: HTMLElement): void {
  const fields = fieldsIn(element);
  const written = fields.map(({ value, checked }) => ({ value, checked }));
  if (fields.some((field) => field.checked || field.value !== field.defaultValue)) drafts.set(approvalId, written);
  else drafts.delete(approvalId);
  for (const other of document.querySelectorAll<HTMLElement>(`[data-approval-id="${approvalId}"]`))
    if (other !== element) fill(other, written);
}

function fill(element: HTMLElement, written: Written[]): void {
  for (const [at, field] of fieldsIn(element).entries()) {
    Object.assign(field, written[at]);
    const note = field.closest<HTMLDetailsElement>("details.note");
    if (note && field.value !== "") note.open = true;
  }
}

interface Decision {
  decision: "approve" | "deny" | "answer";
  inputHash?: string;
  remember?: boolean;
  answers?: string[];
  note?: string;
}

type Question = NonNullable<Approval["questions"]>[number];

/** Options to choose from, or a line to write. */
function fieldOf({ question, options }: Question, name: string): { element: HTMLElement; value(): string } {
  const element = make("fieldset", "", make("legend", "", ...visible(question)));
  if (options.length === 0) {
    const line = make("input");
    line.required = true;
    line.maxLength = 4_000;
    line.autocomplete = "off";
    line.setAttribute("aria-label", question);
    element.append(line);
    return { element, value: () => line.value };
  }
  const choices = options.map((option) => {
    const choice = make("input");
    choice.type = "radio";
    choice.name = name;
    choice.value = option;
    choice.required = true;
    element.append(make("label", "choice", choice, ...visible(option)));
    return choice;
  });
  return { element, value: () => choices.find((choice) => choice.checked)?.value ?? "" };
}
