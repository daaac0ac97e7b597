import type { AgentIds } from "../../../clients/typescript/src/index.ts";
import { askBeforeLeaving, roost } from "./api.ts";
import { attempt, make, part } from "./dom.ts";
import { AGENT, type Agent, type Policy, type Tool } from "./records.ts";

const form = part("tool-form", HTMLFormElement);
const list = part("tool-list", HTMLUListElement);
const bar = part("save-tools", HTMLElement);
const told = part("tools-told", HTMLElement);

const WORDS: Record<Policy, string> = { deny: "Never", ask: "Ask", allow: "Allow", always: "Always" };
const CHANGES: Record<Tool["changes"], string> = {
  nothing: "Changes nothing",
  workspace: "Changes its own files",
  outside: "Can change something outside, and asks before that by default",
};

/** What a tool is for, told to its owner: the host's descriptions speak to the model. */
const OWN: Record<string, string> = {
  ask_user: "Asks you up to three questions, and waits for your answers.",
  call_tool: "Calls a tool that it has found with search_tools. That tool's own policy counts.",
  delegate: "Lets copies of the agent do parts of a task at once. They share its files.",
  delete_file: "Deletes a file of its workspace.",
  edit_file: "Replaces one part of a text file of its workspace.",
  list_files: "Lists the files of its workspace.",
  message_agent: "Asks another agent of the instance, and waits for its answer.",
  read_file: "Reads a text file of its workspace.",
  remember: "Notes something that it should still know in later conversations.",
  search_memory: "Searches its notes and files, and what was said in all of its conversations.",
  update_plan: "Shows you its plan for longer work, and which steps are done.",
  write_file: "Writes a text file of its workspace.",
};
/** What is done by others follows their own policies. */
const BY_OTHERS: Record<string, string> = {
  delegate: "The copies have its tools and policies, and ask nobody",
  message_agent: "The other agent acts by its own policies",
};

/** What can do the most is first. */
const REACH: readonly Tool["changes"][] = ["outside", "workspace", "nothing"];

/** The choices of a tool's owner; null leaves it to the host. */
interface Choice {
  name: string;
  select: HTMLSelectElement;
  saved: Policy | null;
}

/**
 * Shows what an agent may do, and lets its owner change it: all changes are saved together. Returns a function that shows
 * an agent's tools.
 */
export function openTools(): (agent: AgentIds, isStillWanted: () => boolean) => Promise<void> {
  let path: AgentIds | null = null;
  let choices: Choice[] = [];
  const wanted = ({ select }: Choice) => (select.value || null) as Policy | null;
  const changed = () => choices.filter((choice) => wanted(choice) !== choice.saved);
  /** What is chosen and not saved, by agent and tool: it stays while something else is looked at. */
  const unsaved = new Map<string, Map<string, string>>();
  askBeforeLeaving(() => unsaved.size > 0);

  /** Keeps what is not saved of this agent, and offers to save it. */
  function keep(agentId: string): void {
    const all = changed();
    bar.hidden = all.length === 0;
    if (bar.hidden) unsaved.delete(agentId);
    else unsaved.set(agentId, new Map(all.map(({ name, select }) => [name, select.value])));
  }

  function show(tools: readonly Tool[], agent: Agent): void {
    const known = new Set(tools.map(({ name }) => name));
    const byReach = tools.toSorted((one, other) => REACH.indexOf(one.changes) - REACH.indexOf(other.changes));
    const rows = byReach.map((tool) => toolRow(tool, agent.tools[tool.name] ?? null));
    for (const [name, policy] of Object.entries(agent.tools)) if (!known.has(name)) rows.push(unknownRow(name, policy));
    choices = rows.map(({ choice }) => choice);
    const before = unsaved.get(agent.agentId);
    for (const { name, select } of choices) {
      select.value = before?.get(name) ?? select.value;
      select.dispatchEvent(new Event("change"));
    }
    list.replaceChildren(...rows.map(({ item }) => item));
    // A tool that is gone has no choice any more.
    keep(agent.agentId);
  }

  form.addEventListener("change", () => {
    told.textContent = "";
    if (path) keep(path.agentId);
  });
  part("undo-tools", HTMLButtonElement).addEventListener("click", () => {
    for (const { select, saved } of choices) {
      select.value = saved ?? "";
      select.dispatchEvent(new Event("change", { bubbles: true }));
    }
    list.querySelector("select")?.focus();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void attempt(form, async () => {
      const saved = path;
      if (saved === null) return;
      const tools = Object.fromEntries(changed().map((choice) => [choice.name, wanted(choice)]));
      const agent = await roost.patch(AGENT, { path: saved, body: { tools } });
      unsaved.delete(saved.agentId);
      if (saved !== path) return;
      for (const choice of choices) choice.saved = agent.tools[choice.name] ?? null;
      keep(saved.agentId);
      told.textContent = "Saved. It counts at once, also for what is being done now.";
      told.focus();
    });
  });

  return async (ids, isStillWanted) => {
    told.textContent = "";
    choices = [];
    list.replaceChildren();
    bar.hidden = true;
    const [tools, agent] = await Promise.all([
      Array.fromAsync(roost.all(`${AGENT}/tools`, { path: ids })),
      roost.get(AGENT, { path: ids }),
    ]);
    if (!isStillWanted()) return;
    path = ids;
    show(tools, agent);
  };
}

interface Row {
  item: HTMLLIElement;
  choice: Choice;
}

function toolRow({ name, description, changes, untrustedOutput, defaultPolicy }: Tool, saved: Policy | null): Row {
  const facts =
    (BY_OTHERS[name] ?? CHANGES[changes]) + (untrustedOutput ? ", and brings what a stranger may have written" : "");
  return row(name, saved, [make("p", "", OWN[name] ?? description), make("p", "soft", `${facts}.`)], {
    byDefault: `Default: ${WORDS[defaultPolicy].toLowerCase()}`,
    warns: changes === "outside",
  });
}

const unknownRow = (name: string, saved: Policy): Row =>
  row(name, saved, [make("p", "soft", "This host has no such tool.")], { byDefault: "Say nothing", warns: false });

function row(
  name: string,
  saved: Policy | null,
  facts: HTMLElement[],
  { byDefault, warns }: { byDefault: string; warns: boolean },
): Row {
  const select = make("select");
  select.setAttribute("aria-label", `Policy of ${name}`);
  select.append(new Option(byDefault, ""));
  for (const [policy, words] of Object.entries(WORDS)) select.append(new Option(words, policy));
  select.value = saved ?? "";
  const warning = make(
    "p",
    "warning",
    "It is then not asked for, even if a stranger's text has talked your agent into it.",
  );
  const showWarning = () => {
    warning.hidden = !warns || select.value !== "always";
  };
  showWarning();
  select.addEventListener("change", showWarning);
  const item = make("li", "tool", make("h3", "", make("code", "", name)), select, ...facts, warning);
  return { item, choice: { name, select, saved } };
}
