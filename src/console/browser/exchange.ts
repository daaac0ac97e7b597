import type { RunEvent } from "../../../clients/typescript/src/index.ts";
import { linksTo, makeSteps } from "./agent-steps.ts";
import { type Asked, showApproval } from "./approval.ts";
import { attempt, make, makeCopyButton, nameOf } from "./dom.ts";
import { approvalsChanged } from "./open-approvals.ts";
import type { Approval, Message } from "./records.ts";
import { makeRichText } from "./rich-text.ts";

/** A question and its answer: one run's part of the conversation. */
export interface Exchange {
  element: HTMLElement;
  /** Shows the question, which may load after its answer when older messages are loaded. */
  ask(question: Pick<Message, "message"> & Partial<Pick<Message, "origin" | "sender">>): void;
  /** Shows that it is waiting for its turn, and offers `withdraw`. */
  wait(withdraw: () => Promise<void>): void;
  /** Shows that its turn has come, or that it is followed again. */
  begin(): void;
  /** Shows whether the server is away, from which more is to come. */
  reconnect(is: boolean): void;
  show(event: RunEvent): void;
  /** For a run that ended before: offers what the agent did in it. */
  offerSteps(load: () => AsyncIterable<RunEvent>): void;
  finish(message: Pick<Message, "message" | "finishReason" | "origin">): void;
  /** Shows under the answer why it is incomplete. */
  explain(why: string): void;
  /** Shows why there is no answer, or no whole one, and offers to send a person's message again. */
  fail(why: string): void;
  /** Shows that it could not be followed further; it may still go on. */
  lose(): void;
}

const NOTES: Record<string, string> = {
  cancelled: "cancelled",
  length: "cut off",
};

const INTERRUPTED = "interrupted by an error";
const WAITING = "waiting for a decision";

/** Who has caused what stands there, if it was not said to or by a person. */
const CAUSES: Record<string, string> = { schedule: "on a schedule", heartbeat: "at a heartbeat" };
const causeOf = (origin: Message["origin"] | undefined): string => CAUSES[origin?.type ?? ""] ?? "";

/**
 * An exchange with the agent of this name. What changes it later, by itself, is passed to `change`; `again` sends a message
 * whose run has failed once more.
 */
export function makeExchange(
  instanceId: string,
  agentName: string,
  change: (grow: () => void) => void,
  again: (text: string) => void,
): Exchange {
  const said = makeRichText(change);
  const note = make("small", "soft");
  const away = make("small", "soft away");
  const steps = makeSteps(instanceId);
  /** What was answered, as it was written. */
  let written = "";
  const copy = makeCopyButton("the answer", () => written, said.element);
  copy.hidden = true;
  const cause = make("small", "soft cause");
  const answer = make(
    "div",
    "turn agent",
    make("span", "unseen", `${agentName}: `),
    cause,
    steps.element,
    said.element,
    note,
    away,
    copy,
  );
  const element = make("div", "exchange", answer);
  const asked = new Map<string, Asked>();
  /** What a person has written. */
  let question: string | null = null;
  const thinking = (is: boolean) => answer.classList.toggle("thinking", is);
  const tell = (what: string) => {
    thinking(false);
    note.replaceChildren(what);
  };
  const explain = (why: string) => {
    tell(why);
    // What is open at the end of a run can no longer be decided.
    for (const one of asked.values()) one.decided({ status: "cancelled", decidedBy: null, answers: null });
    asked.clear();
  };
  function fail(why: string): void {
    explain(why);
    const button = make("button", "quiet small", "Try again");
    button.type = "button";
    button.addEventListener("click", () => {
      button.remove();
      if (question !== null) again(question);
    });
    note.append(" ", button);
    button.hidden = question === null;
  }
  function showAsked(approval: Approval): void {
    const shown = showApproval(approval, () => {
      // What is open stands at the end, and what was decided above the answer.
      const isFocused = shown.element === document.activeElement;
      said.element.before(shown.element);
      if (isFocused) shown.element.focus();
      approvalsChanged();
    });
    asked.set(approval.approvalId, shown);
    approvalsChanged();
    answer.append(shown.element);
  }
  return {
    element,
    ask({ message, origin, sender }) {
      if (!origin) question = message;
      note.querySelector("button")?.toggleAttribute("hidden", question === null);
      const turn = make("div", "turn user", make("small", "soft cause", causeOf(origin)), make("p", "said", message));
      // Where both are heard, and not seen on their own sides, this tells them apart.
      if (!origin) turn.prepend(make("span", "unseen", "You: "));
      if (origin?.type === "agent" && sender) {
        turn.prepend(make("small", "soft", "From the agent ", nameOf(sender.name)));
      }
      element.prepend(turn);
    },
    wait(withdraw) {
      const button = make("button", "quiet small", "Withdraw");
      button.type = "button";
      button.addEventListener("click", () => void attempt(button, withdraw));
      note.replaceChildren("Waiting for the previous answer ", button);
    },
    begin() {
      note.textContent = asked.size > 0 ? WAITING : "";
      thinking(said.isEmpty() && asked.size === 0);
    },
    reconnect(is) {
      away.textContent = is ? "Reconnecting…" : "";
    },
    offerSteps: steps.offer,
    show(event) {
      steps.show(event);
      switch (event.type) {
        case "message.delta":
          thinking(false);
          note.textContent = "";
          said.add(event.delta);
          break;
        case "run.restarted":
          said.set("");
          thinking(true);
          break;
        case "tool.started":
          note.textContent = `using ${event.name}`;
          break;
        case "run.waiting":
          thinking(false);
          note.textContent = WAITING;
          break;
        case "delegation.started":
          note.replaceChildren("waiting for ", ...linksTo(instanceId, event.tasks));
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
          fail(event.error.message);
          break;
        case "run.cancelled":
          explain("cancelled");
          break;
      }
    },
    finish({ message, finishReason, origin }) {
      cause.textContent = causeOf(origin);
      said.set(message);
      written = message;
      copy.hidden = message.trim() === "";
      if (finishReason === "error") fail(INTERRUPTED);
      else explain(NOTES[finishReason ?? ""] ?? (message.trim() === "" ? "It answered nothing." : ""));
    },
    explain,
    fail,
    lose: () => tell("lost track of this answer"),
  };
}
