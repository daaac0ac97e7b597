import { make } from "./dom.ts";
import type { Message } from "./records.ts";
import type { RunEvent } from "./run.ts";

/** What was asked and what was answered: one run's part of the conversation. */
export interface Exchange {
  element: HTMLElement;
  /** Shows the question, which may come later than its answer where older messages are loaded. */
  ask(question: string): void;
  /** It is not its turn yet; `withdraw` is offered. */
  wait(withdraw: () => void): void;
  /** Its turn has come, or will at once. */
  begin(): void;
  show(event: RunEvent): void;
  finish(message: Pick<Message, "message" | "finishReason">): void;
  /** Says under the answer why there is no more of it. */
  explain(why: string): void;
}

const NOTES: Record<string, string> = {
  cancelled: "cancelled",
  length: "cut at the length limit",
  error: "broken off by an error",
};

export function makeExchange(): Exchange {
  const said = make("p", "said");
  const note = make("small", "soft");
  const answer = make("div", "turn agent", said, note);
  const element = make("div", "exchange", answer);
  const thinking = (is: boolean) => answer.classList.toggle("thinking", is);
  const explain = (why: string) => {
    thinking(false);
    note.replaceChildren(why);
  };
  return {
    element,
    ask: (question) => element.prepend(make("div", "turn user", make("p", "said", question))),
    wait(withdraw) {
      const button = make("button", "quiet small", "Withdraw");
      button.type = "button";
      button.addEventListener("click", withdraw);
      note.replaceChildren("Waits for the answer before it ", button);
    },
    begin() {
      note.textContent = "";
      thinking(said.textContent === "");
    },
    show({ type, delta, message, name, error }) {
      switch (type) {
        case "message.delta":
          thinking(false);
          note.textContent = "";
          said.append(delta ?? "");
          break;
        case "run.restarted":
          said.textContent = "";
          thinking(true);
          break;
        case "tool.started":
          note.textContent = `uses ${name}`;
          break;
        case "message.completed":
          if (message) this.finish(message);
          break;
        case "run.failed":
          explain(error?.message ?? "the run failed");
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
