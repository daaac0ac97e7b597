import { visibleJson } from "../../lib/visible-json.ts";
import { roost } from "./api.ts";
import { attempt, make, makeAlert, makeButton } from "./dom.ts";
import type { Approval } from "./records.ts";

let made = 0;

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

  let isMine = false;
  let isOpen = true;
  function decided(decision: Decided): void {
    // An answer and an event tell of the same decision.
    if (!isOpen) return;
    isOpen = false;
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
    element.append(make("pre", "", visibleJson(input, 2)));
    // Nothing is remembered of a run that a stranger may have steered. The warning is where the decision is made.
    element.append(tainted ? warning : make("label", "choice", remember, "Do not ask again for such calls"));
    element.append(said, make("div", "row", approve, deny("Deny")));
  }
  element.append(alert);

  return { element, decided };
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
  const element = make("fieldset", "", make("legend", "", question));
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
    element.append(make("label", "choice", choice, option));
    return choice;
  });
  return { element, value: () => choices.find((choice) => choice.checked)?.value ?? "" };
}
