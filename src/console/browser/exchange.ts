import type { RunEvent } from "../../../clients/typescript/src/index.ts";
import { makeSteps } from "./agent-steps.ts";
import { type Asked, showApproval } from "./approval.ts";
import { make } from "./dom.ts";
import { approvalsChanged } from "./open-approvals.ts";
import type { Approval, Message } from "./records.ts";

/** A question and its answer: one run's part of the conversation. */
export interface Exchange {
  element: HTMLElement;
  /** Shows the question, which may load after its answer when older messages are loaded. */
  ask(question: string): void;
  /** Shows that it is waiting for its turn, and offers `withdraw`. */
  wait(withdraw: () => void): void;
  /** Shows that its turn has come. */
  begin(): void;
  show(event: RunEvent): void;
  /** For an answer of before: offers what the agent did for it. */
  offerSteps(load: () => AsyncIterable<RunEvent>): void;
  finish(message: Pick<Message, "message" | "finishReason">): void;
  /** Shows under the answer why it is incomplete. */
  explain(why: string): void;
}

const NOTES: Record<string, string> = {
  cancelled: "cancelled",
  length: "cut off at the length limit",
  error: "interrupted by an error",
};

export function makeExchange(): Exchange {
  const said = make("p", "said");
  const note = make("small", "soft");
  const steps = makeSteps();
  const answer = make("div", "turn agent", said, note, steps.element);
  const element = make("div", "exchange", answer);
  const asked = new Map<string, Asked>();
  const thinking = (is: boolean) => answer.classList.toggle("thinking", is);
  const explain = (why: string) => {
    thinking(false);
    note.replaceChildren(why);
    // What is open at the end of a run can no longer be decided.
    for (const one of asked.values()) one.decided({ status: "cancelled", decidedBy: null, answers: null });
    asked.clear();
  };
  function showAsked(approval: Approval): void {
    const shown = showApproval(approval, approvalsChanged);
    asked.set(approval.approvalId, shown);
    approvalsChanged();
    answer.append(shown.element);
  }
  return {
    element,
    ask: (question) => element.prepend(make("div", "turn user", make("p", "said", question))),
    wait(withdraw) {
      const button = make("button", "quiet small", "Withdraw");
      button.type = "button";
      button.addEventListener("click", withdraw);
      note.replaceChildren("Waiting for the previous answer ", button);
    },
    begin() {
      note.textContent = "";
      thinking(said.textContent === "");
    },
    offerSteps: steps.offer,
    show(event) {
      steps.show(event);
      switch (event.type) {
        case "message.delta":
          thinking(false);
          note.textContent = "";
          said.append(event.delta);
          break;
        case "run.restarted":
          said.textContent = "";
          thinking(true);
          break;
        case "tool.started":
          note.textContent = `using ${event.name}`;
          break;
        case "run.waiting":
          thinking(false);
          note.textContent = "waiting for a decision";
          break;
        case "approval.requested":
          showAsked(event.approval);
          break;
        case "approval.decided":
          asked.get(event.approval.approvalId)?.decided(event.approval);
          asked.delete(event.approval.approvalId);
          break;
        case "run.resumed":
          this.begin();
          break;
        case "message.completed":
          this.finish(event.message);
          break;
        case "run.failed":
          explain(event.error.message);
          break;
        case "run.cancelled":
          explain("cancelled");
          break;
      }
    },
    finish({ message, finishReason }) {
      said.textContent = message;
      explain(NOTES[finishReason ?? ""] ?? "");
    },
    explain,
  };
}
