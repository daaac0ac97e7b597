import { RoostError, type RunEvent } from "../../../clients/typescript/src/index.ts";
import { visibleJson } from "../../lib/visible-text.ts";
import { make, makeAlert, nameOf, reportErrors } from "./dom.ts";
import { hashOf } from "./hash.ts";

/** What an agent did for an answer: its plan, what was summarised before it, and the calls of tools with what they brought. */
export interface Steps {
  element: HTMLElement;
  show(event: RunEvent): void;
  /** For an answer of before: offers its steps, which `load` gets once somebody looks. */
  offer(load: () => AsyncIterable<RunEvent>): void;
}

interface Call {
  element: HTMLElement;
  state: HTMLElement;
  isOver: boolean;
}

/** The longest part of a call's input that is shown without opening it. */
const BRIEF = 70;

/** Everything in it is an agent's or a stranger's text, and is shown as text. */
export function makeSteps(instanceId: string): Steps {
  const plan = make("ul", "plan");
  plan.hidden = true;
  plan.setAttribute("aria-label", "The agent's plan");
  const title = make("summary");
  const list = make("ol");
  const fold = make("details", "calls", title, list);
  fold.hidden = true;
  const compacted = make("p", "soft");
  compacted.hidden = true;
  const element = make("div", "agent-steps", plan, compacted, fold);
  /** By id, the latest: in runs of older versions, each answer may have numbered its calls anew. */
  const calls = new Map<string, Call>();
  const names = new Set<string>();

  function begin(id: string, name: string, input: unknown): void {
    // After a wait, a call starts again.
    if (calls.get(id)?.isOver === false) return;
    const state = make("small", "soft", "…");
    const inside = make("details", "", make("summary", "", make("code", "", name), ` ${briefOf(input)} `, state));
    inside.append(make("pre", "", visibleJson(input, 2)));
    calls.set(id, { element: inside, state, isOver: false });
    list.append(make("li", "", inside));
    names.add(name);
    title.textContent = `Steps: ${[...names].join(", ")}`;
    fold.hidden = false;
  }

  function end(id: string, output: string, isError: boolean): void {
    const call = calls.get(id);
    if (!call) return;
    call.isOver = true;
    call.state.textContent = isError ? "failed" : "";
    call.element.append(make("pre", isError ? "failed" : "", output));
  }

  function tell(what: string): void {
    compacted.textContent = what;
    compacted.hidden = false;
  }

  function show(event: RunEvent): void {
    if (event.type === "tool.started") begin(event.toolCallId, event.name, event.input);
    else if (event.type === "tool.completed") end(event.toolCallId, event.output, event.isError);
    else if (event.type === "context.compacted") tell("Older messages are now summarised for the agent.");
    else if (event.type === "context.compaction_failed") tell(`Older messages are left out: ${event.reason}.`);
    else if (event.type === "delegation.started") {
      calls.get(event.toolCallId)?.element.append(make("p", "", "Asked: ", ...linksTo(instanceId, event.tasks)));
    } else if (event.type === "plan.updated") {
      plan.hidden = event.items.length === 0;
      plan.replaceChildren(...event.items.map(planItem));
    }
  }

  return {
    element,
    show,
    offer(load) {
      if (!fold.hidden) return;
      title.textContent = "Steps";
      fold.hidden = false;
      const alert = makeAlert();
      const section = make("section", "", alert);
      fold.append(section);
      const read = async () => {
        calls.clear();
        list.replaceChildren();
        for await (const event of load()) show(event);
        if (calls.size === 0) section.append(make("p", "soft", "It used no tools."));
      };
      let isRead = false;
      fold.addEventListener("toggle", () => {
        if (!fold.open || isRead) return;
        isRead = true;
        void reportErrors(alert, () =>
          read().catch((error: unknown) => {
            const isGone = error instanceof RoostError && error.code === "not_found";
            if (isGone) return section.append(make("p", "soft", "What it did is no longer kept."));
            isRead = false; // opened again, it is tried again
            throw error;
          }),
        );
      });
    },
  };
}

type Tasks = Extract<RunEvent, { type: "delegation.started" }>["tasks"];

/** Links to the conversations in which others work for this one, with commas between them. */
export function linksTo(instanceId: string, tasks: Tasks): (string | Node)[] {
  return tasks.flatMap(({ title, agentName, agentId, conversationId }, at) => {
    const link = make("a", "", nameOf(title ?? agentName));
    link.href = hashOf(instanceId, agentId, conversationId);
    return at === 0 ? [link] : [", ", link];
  });
}

function planItem({ text, done }: { text: string; done: boolean }): HTMLElement {
  const item = make("li", done ? "done" : "", text);
  item.prepend(make("span", "mark", done ? "✓ " : "○ "));
  if (done) item.append(make("span", "unseen", " (done)"));
  return item;
}

/** The first text of an input: of most calls, what they are about. */
export function briefOf(input: unknown): string {
  const values = typeof input === "object" && input !== null ? Object.values(input) : [];
  const texts = values.filter((value): value is string => typeof value === "string");
  const text = visibleJson((texts.find((one) => /^https?:/.test(one)) ?? texts[0] ?? "").replace(/\s+/g, " ").trim());
  const shown = text.slice(1, -1);
  return shown.length > BRIEF ? `${shown.slice(0, BRIEF).toWellFormed()}…` : shown;
}
