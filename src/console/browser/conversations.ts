import { type AgentIds, RoostError } from "../../../clients/typescript/src/index.ts";
import { type Records, roost } from "./api.ts";
import { ago, attempt, confirmPress, make, makeButton, nameOf, part } from "./dom.ts";
import { fillWhenOpened } from "./folds.ts";
import { hashOf } from "./hash.ts";
import type { Choice } from "./instances.ts";
import { AGENT } from "./records.ts";
import { ToldError } from "./told-error.ts";

type Conversation = Records["Conversation"];

/** The list of an agent's conversations, which is read when somebody opens it, and the name of the one that is shown. */
export interface Conversations {
  /** Names the chosen conversation. Throws if there is none of this id. */
  open(choice: Choice | null): Promise<void>;
  /** This was said in it: the first words name a conversation that has no title yet. */
  said(choice: Choice, text: string): Promise<void>;
}

const LIST = `${AGENT}/conversations` as const;
const ONE = `${LIST}/{conversationId}` as const;
/** Read at once. */
const PAGE = 20;
/** Of a title that is made of a message, in characters; the API takes 200. */
const TITLE = 60;
const DEFAULT = "Default conversation";
/** Who has begun it, if not a person. */
const CAUSES: Partial<Record<Conversation["origin"]["type"], string>> = {
  schedule: "on a schedule",
  heartbeat: "at a heartbeat",
  agent: "between agents",
  openai: "by a program",
};

const fold = part("conversations", HTMLDetailsElement);
const name = part("conversation-name", HTMLElement);
const begin = part("new-conversation", HTMLButtonElement);

/** `write` shows the conversation at this fragment of the URL, ready to write in. */
export function openConversations(write: (hash: string) => void): Conversations {
  let chosen: Choice | null = null;
  /** What is known of the chosen one. */
  let shown: Conversation | null = null;

  function row(one: Conversation): HTMLElement {
    const of = chosen;
    if (of === null) return make("li");
    const ids = idsOf(of);
    const { conversationId, isDefault, messageCount, updatedAt, origin } = one;
    const isOpen = of.conversationId === null ? isDefault : of.conversationId === conversationId;
    const title = titleOf(one);
    const link = make("a", "", nameOf(title));
    link.href = hashIn(ids, one);
    if (isOpen) link.setAttribute("aria-current", "true");
    const facts = [messageCount === 0 ? "no messages yet" : ago(updatedAt), CAUSES[origin.type] ?? ""];
    const about = make("span", "soft", facts.filter((fact) => fact !== "").join(" · "));
    const actions = make("span");
    const item = make("li", "", make("div", "", link, about));
    if (!isDefault) actions.append(renaming(item, ids, one));
    if (messageCount > 0) {
      const fork = makeButton("Fork", "quiet", async () => {
        write(hashIn(ids, await forkOf(ids, one)));
      });
      fork.title = "Copies it, to go on differently from here";
      fork.setAttribute("aria-label", `Fork ${title}`);
      actions.append(fork);
    }
    if (!isDefault) {
      const remove = make("button", "quiet", "Delete");
      remove.type = "button";
      remove.setAttribute("aria-label", `Delete ${title}`);
      confirmPress(remove, "Sure?", async () => {
        await roost.delete(ONE, { path: { ...ids, conversationId } });
        item.remove();
        if (isOpen && of === chosen) location.hash = hashOf(ids.instanceId, ids.agentId);
        fold.querySelector("summary")?.focus();
      });
      actions.append(remove);
    }
    if (actions.hasChildNodes()) item.append(actions);
    return item;
  }

  /** A button that asks for another title in the row. */
  function renaming(item: HTMLElement, ids: AgentIds, one: Conversation): HTMLButtonElement {
    const button = make("button", "quiet", "Rename");
    button.type = "button";
    button.setAttribute("aria-label", `Rename ${titleOf(one)}`);
    button.addEventListener("click", () => {
      const before = [...item.children];
      const form = askForTitle(one, async (title) => {
        const path = { ...ids, conversationId: one.conversationId };
        const named = await roost.patch(ONE, { path, body: { title } });
        if (shown?.conversationId === named.conversationId) show(named);
        const renamed = row(named);
        item.replaceWith(renamed);
        renamed.querySelector("a")?.focus();
      });
      form.addEventListener("keydown", (event) => {
        if (event.key !== "Escape") return;
        // The list stays open.
        event.stopPropagation();
        item.replaceChildren(...before);
        button.focus();
      });
      item.replaceChildren(form);
      form.querySelector("input")?.select();
    });
    return button;
  }

  function show(one: Conversation): void {
    shown = one;
    name.replaceChildren(nameOf(titleOf(one)));
  }

  fillWhenOpened(
    fold,
    async function* () {
      if (chosen) yield* roost.all(LIST, { path: idsOf(chosen), query: { limit: PAGE } });
    },
    row,
  );
  fold.addEventListener("click", ({ target }) => {
    if (target instanceof Element && target.closest("a")) close();
  });
  fold.addEventListener("keydown", ({ key }) => {
    if (key === "Escape" && fold.open) close();
  });
  function close(): void {
    fold.open = false;
    fold.querySelector("summary")?.focus();
  }
  begin.addEventListener("click", () => {
    void attempt(begin, async () => {
      if (!chosen?.agent) return;
      const ids = idsOf(chosen);
      // One in which nothing was said yet, here or elsewhere, is as good as another.
      if (shown?.messageCount === 0 && (await isStillEmpty(ids, shown))) {
        return part("chat-input", HTMLTextAreaElement).focus();
      }
      write(hashIn(ids, await roost.post(LIST, { path: ids, body: {} })));
    });
  });

  return {
    async open(next) {
      chosen = next;
      shown = null;
      fold.open = false;
      name.textContent = DEFAULT;
      if (next?.agent == null || next.conversationId === null) return;
      name.textContent = "…";
      const found = await roost.get(ONE, { path: { ...idsOf(next), conversationId: next.conversationId } });
      if (next !== chosen) return;
      show(found);
    },
    async said(choice, text) {
      if (choice !== chosen || shown === null) return;
      shown = { ...shown, messageCount: shown.messageCount + 1 };
      if (shown.isDefault || shown.title !== null || shown.origin.type !== "user") return;
      const path = { ...idsOf(choice), conversationId: shown.conversationId };
      // It may have got a name elsewhere meanwhile.
      const current = await roost.get(ONE, { path });
      const body = { title: firstWords(text) };
      const named = current.title === null ? await roost.patch(ONE, { path, body }) : current;
      if (choice === chosen) show(named);
    },
  };
}

const idsOf = ({ instance, agent }: Choice): AgentIds => ({
  instanceId: instance.instanceId,
  agentId: agent?.agentId ?? "",
});

/** Whether nothing was said in it elsewhere either. False if it was deleted there. */
async function isStillEmpty(ids: AgentIds, { conversationId }: Conversation): Promise<boolean> {
  try {
    return (await roost.get(ONE, { path: { ...ids, conversationId } })).messageCount === 0;
  } catch (error) {
    if (error instanceof RoostError && error.code === "not_found") return false;
    throw error;
  }
}

/** The default conversation's is that of its agent. */
const hashIn = ({ instanceId, agentId }: AgentIds, { conversationId, isDefault }: Conversation): string =>
  hashOf(instanceId, agentId, isDefault ? null : conversationId);

const titleOf = ({ title, isDefault }: Conversation): string =>
  isDefault ? DEFAULT : (title ?? "Untitled conversation");

/** A form for its title in the place of its name. Without one, it is named by the next words said in it. */
function askForTitle(one: Conversation, save: (title: string | null) => Promise<void>): HTMLFormElement {
  const field = make("input");
  field.value = one.title ?? "";
  field.maxLength = 200;
  field.setAttribute("aria-label", `New name of ${titleOf(one)}`);
  const form = make("form", "", field, make("button", "", "Save"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void attempt(form, () => save(field.value.trim() || null));
  });
  return form;
}

/** A copy of all that was said in it so far, under a name of its own. */
async function forkOf(ids: AgentIds, one: Conversation): Promise<Conversation> {
  const { conversationId } = one;
  const query = { conversationId, order: "desc", limit: 1 } as const;
  const [newest] = (await roost.get(`${AGENT}/messages`, { path: ids, query })).data;
  if (!newest) throw new ToldError("there is nothing to fork", "Its messages were deleted meanwhile.");
  const body = { messageId: newest.messageId };
  const copy = await roost.post(`${ONE}/fork`, { path: { ...ids, conversationId }, body });
  const title = firstWords(`Fork of ${titleOf(one)}`);
  return roost.patch(ONE, { path: { ...ids, conversationId: copy.conversationId }, body: { title } });
}

function firstWords(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  if (line.length <= TITLE) return line;
  const cut = line.slice(0, TITLE);
  return `${cut.slice(0, Math.max(cut.lastIndexOf(" "), TITLE / 2)).toWellFormed()}…`;
}
