import { roost } from "./api.ts";
import { openConversations } from "./conversations.ts";
import { alertFor, attempt, confirmPress, hideErrors, make, nameOf, part, reportErrors, showError } from "./dom.ts";
import { openDrafts } from "./drafts.ts";
import { hashOf } from "./hash.ts";
import { type Choice, costOf, stateOf } from "./instances.ts";
import { watchEnd } from "./log-end.ts";
import { describeAnswers, type Facts } from "./model.ts";
import { exact, isLess } from "./money.ts";
import { approvalsChanged } from "./open-approvals.ts";
import { type Account, AGENT, type Agent, INSTANCE, type Instance } from "./records.ts";
import { openTalk, type Talk } from "./talk.ts";
import { AGENT_PARTS } from "./views.ts";

const intro = part("intro", HTMLElement);
const start = part("wake-agent", HTMLButtonElement);
const conversation = part("conversation", HTMLElement);
const log = part("chat-log", HTMLElement);
const form = part("chat-form", HTMLFormElement);
const input = part("chat-input", HTMLTextAreaElement);
const cancel = part("chat-cancel", HTMLButtonElement);
const clear = part("chat-clear", HTMLButtonElement);
const earlier = part("chat-earlier", HTMLButtonElement);
const ideas = part("chat-ideas", HTMLElement);
const state = part("instance-state", HTMLElement);
const instanceTold = part("instance-told", HTMLElement);
/** The code of a key that an input method takes. Safari says of Enter, which ends a word, only this. */
const COMPOSING = 229;
// It scrolls, so it must be reachable by keyboard.
log.tabIndex = 0;
const logEnd = watchEnd(log);
const power = part("instance-power", HTMLButtonElement);

export interface ChatParts extends Facts {
  /** Called with an instance as an operation has just returned it. */
  instanceChanged(instance: Instance): void;
  /** Shows the conversation at this fragment of the URL, ready to write in. */
  write(hash: string): void;
  /** Called when something was spent. */
  spent(): void;
}

export interface Chat {
  /** Opens the conversation with the chosen agent; offers to create an agent if there is none. */
  open(choice: Choice | null): Promise<void>;
  /** Shows the instance's current state. */
  showInstance(instance: Instance): void;
  /** While another conversation is chosen and not read yet, nothing can be said in this one. */
  hold(is: boolean): void;
  catchUp(): Promise<void>;
  showAccount(account: Account): void;
}

/** Makes the message box as high as what is written in it, where the style sheet does not: not in Safari. */
function fit(): void {
  if (CSS.supports("field-sizing", "content")) return;
  input.style.height = "";
  if (input.value !== "") input.style.height = `${input.scrollHeight + input.offsetHeight - input.clientHeight}px`;
}

/** The conversation with one agent of one instance. */
export function createChat(accountId: string, parts: ChatParts): Chat {
  const { charges, billing, instanceChanged, write, spent } = parts;
  const conversations = openConversations(write);
  let choice: Choice | null = null;
  let talk: Talk | undefined;
  /** What keeps the conversation from being loaded or followed; it is told until it is over. */
  let trouble: unknown;
  const drafts = openDrafts(accountId);

  function showInstance(instance: Instance): void {
    if (choice?.instance.instanceId !== instance.instanceId) return;
    choice.instance = instance;
    const running = instance.status === "running";
    const { pricePerHour, currency } = instance.billing;
    const price = running ? ` · ${exact(pricePerHour)} ${currency} an hour` : " · costs nothing while it is stopped";
    const cost = costOf(instance);
    const told = ` · ${stateOf(instance)}${charges ? price : ""}`;
    // What is told aloud is written only when it is news.
    if (instanceTold.textContent !== instance.name + told) instanceTold.replaceChildren(nameOf(instance.name), told);
    part("instance-cost", HTMLElement).textContent = charges && cost ? `${cost} so far` : "";
    state.dataset.status = instance.status;
    // Beside an answer, "Stop" alone would be taken for that answer's.
    const does = running ? "Stop all" : "Start";
    const label = `${running ? "Stop all agents of" : does} ${instance.name}`;
    const shows = instance.instanceId + label;
    // The same again leaves the question whether to stop as it stands.
    if (power.dataset.shows === shows) return;
    power.dataset.shows = shows;
    power.className = running ? "quiet" : "";
    power.textContent = does;
    power.setAttribute("aria-label", label);
  }

  const isEmpty = () => log.childElementCount === 0;
  function showWhatThereIs(): void {
    ideas.hidden = !isEmpty();
    clear.hidden = isEmpty();
  }

  /** Shows this one. If it is open already, it stays where it is scrolled. */
  async function open(next: Choice | null): Promise<void> {
    if (!talk || !choice || !next?.agent || trouble !== undefined || draftOf(next) !== draftOf(choice))
      return load(next);
    // The same object stays: by it is known what is shown.
    showChoice(Object.assign(choice, next), next.agent);
    await Promise.all([talk.catchUp(), conversations.open(choice)]);
  }

  function showChoice(shown: Choice, agent: Agent): void {
    part("agent-name", HTMLElement).textContent = agent.displayName;
    input.placeholder = `Message ${agent.displayName}`;
    input.value = drafts.get(draftOf(shown));
    fit();
    describeAnswers(parts, agent);
    showInstance(shown.instance);
  }

  async function load(next: Choice | null): Promise<void> {
    talk?.close();
    talk = undefined;
    choice = next;
    trouble = undefined;
    const agent = next?.agent ?? null;
    conversation.hidden = agent === null;
    intro.hidden = agent !== null;
    part("intro-title", HTMLElement).textContent =
      next === null ? "Say hello to your first agent" : `There is no agent in ${next.instance.name} yet`;
    part("intro-instance", HTMLElement).hidden = next !== null;
    if (next === null || agent === null) return;

    showChoice(next, agent);
    log.replaceChildren();
    clear.hidden = true;
    ideas.hidden = true;
    earlier.hidden = true;
    cancel.hidden = true;
    part("to-agent", HTMLAnchorElement).href = hashOf(next.instance.instanceId, agent.agentId, AGENT_PARTS[0]);
    let isLoaded = false;
    const isShown = () => next === choice;
    const tell = (error: unknown) => {
      const alert = alertFor(form);
      if (alert && isShown()) showError(alert, error);
    };
    talk = openTalk({
      agent: { instanceId: next.instance.instanceId, agentId: agent.agentId },
      agentName: agent.displayName,
      conversationId: next.conversationId,
      log,
      logEnd,
      busy: (is) => {
        if (!isShown()) return;
        if (!is && document.activeElement === cancel) input.focus();
        cancel.hidden = !is;
      },
      settled() {
        if (!isShown()) return;
        showWhatThereIs();
        // Loading a conversation has cost nothing.
        if (isLoaded) spent();
        isLoaded = true;
      },
      hasEarlier: (has) => {
        earlier.hidden = !has;
      },
      again: say,
      failed: tell,
      lost(error) {
        trouble = error;
        tell(error);
      },
      answered() {
        if (!isShown()) return;
        if (trouble !== undefined) hideErrors((error) => error === trouble);
        trouble = undefined;
      },
    });
    talk.loaded.catch((error) => {
      if (isShown()) trouble = error;
    });
    await Promise.all([talk.loaded, conversations.open(next)]);
  }

  /** Sends this, and says if it cannot be: then it comes back, before what is written there by then. */
  function say(text: string): void {
    const [to, asked] = [talk, choice];
    if (!to || !asked || input.readOnly) return;
    input.focus();
    ideas.hidden = true;
    const draft = draftOf(asked);
    // Whoever comes back meanwhile has chosen it anew.
    const isShown = () => choice !== null && draftOf(choice) === draft;
    const kept = drafts.send(draft, text);
    const send = async () => {
      try {
        await to.send(text);
        kept.sent();
        if (isShown()) clear.hidden = false;
      } catch (error) {
        kept.returned();
        if (isShown()) input.value = drafts.get(draft);
        fit();
        showWhatThereIs();
        throw error;
      }
      // Without a title it can still be found by its time.
      await conversations.said(asked, text).catch(() => undefined);
    };
    void reportErrors(form, send);
  }

  function keep(): void {
    fit();
    if (choice?.agent) drafts.set(draftOf(choice), input.value);
  }
  input.addEventListener("input", keep);

  /** One whose agent could not be created: it costs what others cost, so the next try takes it. */
  let withoutAgent: Instance | null = null;
  start.addEventListener("click", () => {
    void attempt(start, async () => {
      const body = { name: "My first instance" };
      withoutAgent = choice?.instance ?? withoutAgent ?? (await roost.post("/v1/instances", { body }));
      const { instanceId } = withoutAgent;
      const agent = await roost.post(`${INSTANCE}/agents`, { path: { instanceId }, body: { name: "Ada" } });
      withoutAgent = null;
      write(hashOf(instanceId, agent.agentId));
      spent();
    });
  });
  const isRunning = () => choice?.instance.status === "running";
  const startOrStop = async () => {
    if (!choice) return;
    const verb = isRunning() ? "stop" : "start";
    const instance = await roost.post(`${INSTANCE}/${verb}`, { path: { instanceId: choice.instance.instanceId } });
    showInstance(instance);
    instanceChanged(instance);
    // Stopping has ended what waited for a decision.
    approvalsChanged();
    spent();
  };
  confirmPress(power, "Stop all agents here?", startOrStop, isRunning);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = input.value.trim();
    if (text === "" || !talk || input.readOnly) return;
    input.value = "";
    keep();
    say(text);
  });
  cancel.addEventListener("click", () => void attempt(cancel, async () => talk?.cancel()));
  earlier.addEventListener("click", () => void attempt(earlier, async () => talk?.loadEarlier()));
  confirmPress(clear, "Sure?", async () => {
    const cleared = choice;
    if (!cleared?.agent) return;
    const path = { instanceId: cleared.instance.instanceId, agentId: cleared.agent.agentId };
    const conversationId = cleared.conversationId ?? undefined;
    await roost.delete(`${AGENT}/messages`, { path, query: { conversationId } });
    if (cleared === choice) await load(cleared);
    input.focus();
  });
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === COMPOSING) return;
    event.preventDefault();
    form.requestSubmit();
  });
  for (const idea of ideas.querySelectorAll("button")) {
    idea.addEventListener("click", () => say(idea.textContent.trim()));
  }

  return {
    open,
    showInstance,
    hold(is) {
      input.readOnly = is;
      part("chat", HTMLElement).ariaBusy = String(is);
    },
    async catchUp() {
      await talk?.catchUp();
    },
    showAccount({ balance, currency }) {
      const needed = billing.minimumLaunchBalance;
      const lacks = charges && isLess(balance, needed);
      const hint = part("intro-balance", HTMLElement);
      hint.hidden = !charges;
      if (!lacks) {
        const price = `${exact(billing.pricePerHour)} ${currency} an hour`;
        hint.textContent = `An instance costs ${price} while it runs, and nothing while you have it stopped.`;
        return;
      }
      const topUp = make("a", "", "top up");
      topUp.href = "#account";
      const has = `Starting one needs a balance of ${exact(needed)} ${currency}, and yours is ${exact(balance)}: `;
      hint.replaceChildren(has, "ask the operator of this host for credit, or ", topUp, ".");
    },
  };
}

/** Where what is written in this conversation belongs. */
const draftOf = ({ agent, conversationId }: Choice) => `${agent?.agentId} ${conversationId}`;
