import { roost } from "./api.ts";
import { attempt, make, part, reportErrors } from "./dom.ts";
import { showFound } from "./find-agent.ts";
import { hashOf } from "./hash.ts";
import { cents, isNothing } from "./money.ts";
import { AGENT, type Agent, INSTANCE, type Instance, type Page } from "./records.ts";

const AGENTS = `${INSTANCE}/agents` as const;

const list = part("instance-list", HTMLUListElement);
const more = part("more-instances", HTMLButtonElement);
const section = part("instances", HTMLElement);
/** On narrow screens, these buttons open the list over the chat. */
const openers = [...document.querySelectorAll<HTMLButtonElement>(".show-instances")];

/** The chosen instance, and the chosen agent and conversation if there are any. */
export interface Choice {
  instance: Instance;
  agent: Agent | null;
  /** One of its conversations; null for its default one. */
  conversationId: string | null;
}

export interface Instances {
  /** Shows the instance and agent given; null picks the most likely. */
  choose(instanceId: string | null, agentId: string | null, conversationId?: string | null): Promise<void>;
  /** What is shown stays: a choice that is still being read no longer counts. */
  keep(): void;
  /** Reloads the list: others create, start and stop instances too. */
  refresh(): Promise<void>;
  /** Its agents are called something else, or are others: they are read again with the next refresh. */
  readAnew(instanceId: string): void;
  /** Shows an instance as an operation has just returned it. */
  show(instance: Instance): void;
}

interface Row {
  instance: Instance;
  item: HTMLLIElement;
  details: HTMLDetailsElement;
  state: HTMLElement;
  name: HTMLElement;
  agents: HTMLUListElement;
  /** The number of agents when they were last loaded; null before, -1 if they are no longer those. */
  agentsRead: number | null;
}

const REASONS: Record<string, string> = {
  insufficient_balance: "the balance is used up",
  monthly_limit: "the monthly limit is reached",
};

interface Place {
  instanceId: string;
  agentId: string | null;
  conversationId: string | null;
}

/** `running`, `stopped: the balance is used up`. */
export function stateOf({ status, statusReason }: Instance): string {
  return status + (statusReason === null ? "" : `: ${REASONS[statusReason] ?? statusReason.replaceAll("_", " ")}`);
}

/** What an instance has cost so far; "" if nothing. */
export const costOf = ({ billing }: Instance): string =>
  isNothing(billing.accrued) ? "" : ` · ${cents(billing.accrued)} ${billing.currency}`;

/**
 * Lists all instances of the account with their agents. Calls `waiting` when another is chosen and not read yet, and when
 * that is over; `chosen` with the choice, null if there is none; and `changed` with each instance that is loaded again.
 */
export function listInstances(
  charges: boolean,
  waiting: (is: boolean) => void,
  chosen: (choice: Choice | null) => Promise<void>,
  changed: (instance: Instance) => void,
): Instances {
  const rows = new Map<string, Row>();
  let cursor: string | null = null;
  let current: Place | undefined;
  /** What is being read, to be shown instead. */
  let next: Place | undefined;
  /** The link that was scrolled to: once for each choice, so that the list stays where somebody scrolls it. */
  let revealed: string | undefined;
  /** Choices so far: only the last one counts, whichever is read first. */
  let choices = 0;

  async function readPage(after: string | null): Promise<Page<Instance>> {
    const page = await roost.get("/v1/instances", { query: { limit: 100, after: after ?? undefined } });
    for (const instance of page.data) {
      show(instance);
      changed(instance);
    }
    return page;
  }

  /** Rows are sorted by id, as the API's list is: newest first. */
  function show(instance: Instance): Row {
    let row = rows.get(instance.instanceId);
    if (!row) {
      row = makeRow(instance);
      rows.set(instance.instanceId, row);
      const older = [...list.children].find(({ id }) => id < instance.instanceId);
      list.insertBefore(row.item, older ?? null);
      showOrHide();
    }
    row.instance = instance;
    row.name.textContent = instance.name;
    row.state.textContent = stateOf(instance) + (charges ? costOf(instance) : "");
    row.item.dataset.status = instance.status;
    if (row.details.open && row.agentsRead !== instance.agentCount) void readAgents(row).catch(() => undefined);
    return row;
  }

  function showOrHide(): void {
    section.hidden = rows.size === 0;
    for (const opener of openers) opener.hidden = rows.size === 0;
  }

  function makeRow(instance: Instance): Row {
    const name = make("span");
    const state = make("span", "soft");
    const agents = make("ul");
    const details = make("details", "", make("summary", "", make("b", "", name), state), agents);
    const item = make("li", "", details);
    item.id = instance.instanceId;
    const row = { instance, item, details, name, state, agents, agentsRead: null };
    details.addEventListener("toggle", () => {
      if (details.open && row.agentsRead === null) void reportErrors(section, () => readAgents(row));
    });
    return row;
  }

  async function readAgents(row: Row): Promise<void> {
    const { instanceId, agentCount } = row.instance;
    const links: HTMLElement[] = [];
    for await (const { agentId, displayName } of roost.all(AGENTS, { path: { instanceId } })) {
      links.push(linkTo(instanceId, agentId, displayName));
    }
    if (links.length === 0) links.push(linkTo(instanceId, null, "No agent yet"));
    row.agents.replaceChildren(...links.map((link) => make("li", "", link)));
    row.agentsRead = agentCount;
    showFound();
    mark();
  }

  function linkTo(instanceId: string, agentId: string | null, text: string): HTMLAnchorElement {
    const link = make("a", "", text);
    link.href = hashOf(instanceId, agentId);
    return link;
  }

  function mark(): void {
    const place = next ?? current;
    const hash = place && hashOf(place.instanceId, place.agentId);
    for (const link of list.querySelectorAll("a")) {
      if (link.hash === hash) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
      if (link.hash !== hash || hash === revealed) continue;
      link.scrollIntoView({ block: "nearest" });
      revealed = hash;
    }
  }

  const agentIn = async (instanceId: string, agentId: string | null): Promise<Agent | null> => {
    if (agentId !== null) return roost.get(AGENT, { path: { instanceId, agentId } });
    return (await roost.get(AGENTS, { path: { instanceId }, query: { limit: 1 } })).data[0] ?? null;
  };

  /** The newest running instance with an agent, else the newest with an agent, else the newest. */
  function likeliest(): Instance | undefined {
    const all = [...rows.values()].map((row) => row.instance).sort((a, b) => (a.instanceId < b.instanceId ? 1 : -1));
    const withAgents = all.filter(({ agentCount }) => agentCount > 0);
    return withAgents.find(({ status }) => status === "running") ?? withAgents[0] ?? all[0];
  }

  async function choose(
    instanceId: string | null,
    agentId: string | null,
    conversationId: string | null = null,
  ): Promise<void> {
    const mine = ++choices;
    expect(instanceId === null ? undefined : { instanceId, agentId, conversationId });
    let choice: Choice | null;
    try {
      choice = await read(instanceId, agentId, conversationId);
    } finally {
      if (mine === choices) expect(undefined);
    }
    if (mine !== choices) return;
    current = undefined;
    if (choice) {
      const { instance, agent } = choice;
      current = { instanceId: instance.instanceId, agentId: agent?.agentId ?? null, conversationId };
      const { details } = show(instance);
      if (details.open) mark();
      else details.open = true;
    }
    await chosen(choice);
  }

  /** Marks at once what is being read, however slow it is to come. */
  function expect(place: Place | undefined): void {
    next = place;
    mark();
    const isShown = place?.agentId === current?.agentId && place?.conversationId === current?.conversationId;
    waiting(place !== undefined && !isShown);
  }

  async function read(
    instanceId: string | null,
    agentId: string | null,
    conversationId: string | null,
  ): Promise<Choice | null> {
    const instance =
      instanceId === null
        ? likeliest()
        : (rows.get(instanceId)?.instance ?? (await roost.get(INSTANCE, { path: { instanceId } })));
    return instance ? { instance, agent: await agentIn(instance.instanceId, agentId), conversationId } : null;
  }

  armSheet();
  more.addEventListener("click", () => {
    void attempt(more, async () => {
      cursor = (await readPage(cursor)).nextCursor;
      more.hidden = cursor === null;
    });
  });

  return {
    choose,
    keep() {
      choices++;
      expect(undefined);
    },
    async refresh() {
      // What is added while the page is read may not be on it.
      const known = [...rows];
      const page = await readPage(null);
      const isFirst = cursor === null && more.hidden;
      if (isFirst) {
        cursor = page.nextCursor;
        more.hidden = cursor === null;
      }
      // Rows in the range of this page that are not on it are gone.
      const last = page.nextCursor === null ? "" : (page.data.at(-1)?.instanceId ?? "");
      const there = new Set(page.data.map((instance) => instance.instanceId));
      for (const [instanceId, row] of known) {
        if (instanceId < last || there.has(instanceId)) continue;
        row.item.remove();
        rows.delete(instanceId);
      }
      showOrHide();
      if (current && !rows.has(current.instanceId)) await choose(null, null);
    },
    readAnew(instanceId) {
      const row = rows.get(instanceId);
      if (row) row.agentsRead = -1;
    },
    show: (instance) => void show(instance),
  };
}

/** On narrow screens, the list opens over the chat and closes when something is chosen. */
function armSheet(): void {
  const isShown = () => section.classList.contains("shown");
  const show = (is: boolean) => {
    section.classList.toggle("shown", is);
    for (const opener of openers) opener.setAttribute("aria-expanded", String(is));
  };
  for (const opener of openers) {
    opener.addEventListener("click", () => {
      show(!isShown());
      if (isShown()) section.querySelector<HTMLElement>("a[aria-current], summary")?.focus();
    });
  }
  section.addEventListener("click", ({ target }) => target instanceof HTMLAnchorElement && show(false));
  addEventListener("hashchange", () => show(false));
  const close = () => {
    show(false);
    openers.find((opener) => opener.offsetParent !== null)?.focus();
  };
  part("hide-instances", HTMLButtonElement).addEventListener("click", close);
  document.addEventListener("keydown", ({ key }) => {
    if (key === "Escape" && isShown()) close();
  });
  document.addEventListener("pointerdown", ({ target }) => {
    // A press on what opens it closes it by itself.
    const isOutside = target instanceof Element && !section.contains(target) && !target.closest(".show-instances");
    if (isOutside && isShown()) show(false);
  });
}
