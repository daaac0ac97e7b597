import { visibleJson } from "../../lib/visible-json.ts";
import { call } from "./api.ts";
import { attempt, make } from "./dom.ts";
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

/** An approval, shown whole, with buttons to decide. Everything in it is an agent's text, and is shown as text. */
export function showApproval(approval: Approval): Asked {
  const { approvalId, tool, input, inputHash, questions, tainted } = approval;
  const title = make("h2", "", questions ? "Your agent asks" : `May your agent use ${tool}?`);
  title.id = `approval-${++made}`;
  const alert = make("p", "error");
  alert.role = "alert";
  alert.hidden = true;
  const element = make("section", "approval", title);
  element.setAttribute("aria-labelledby", title.id);
  element.tabIndex = -1;

  let isMine = false;
  const decide = (body: object) => async () => {
    isMine = true;
    await call("POST", `/approvals/${approvalId}/decision`, body);
  };
  const button = (text: string, className: string, body: () => object) => {
    const made = make("button", className, text);
    made.type = "button";
    made.addEventListener("click", () => void attempt(made, () => decide(body())()));
    return made;
  };
  const deny = (text: string) => button(text, "quiet", () => ({ decision: "deny" }));

  const warning = make(
    "p",
    "warning",
    "Your agent has read what a stranger may have written. Check that this is what you want.",
  );
  if (questions) {
    const form = make("form", "approval-questions");
    const fields = questions.map((one, at) => fieldOf(one, `${title.id}-${at}`));
    const answer = make("button", "", "Answer");
    form.append(...fields.map((field) => field.element), make("div", "row", answer, deny("Do not answer")));
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
    element.append(make("div", "row", approve, deny("Deny")));
  }
  element.append(alert);

  return {
    element,
    decided({ status, decidedBy, answers }) {
      const by = decidedBy === null ? "" : ` by ${decidedBy}`;
      const said = answers ? `: ${answers.join(" · ")}` : "";
      element.replaceChildren(title, make("p", "soft", `${OUTCOMES[status] ?? status}${by}${said}`));
      // The button that had the focus is gone.
      if (isMine) element.focus();
    },
  };
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
