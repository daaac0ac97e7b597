import { call } from "./api.ts";
import { attempt, make, part } from "./dom.ts";
import { cents, isNothing } from "./money.ts";
import type { Agent, Instance, Page } from "./records.ts";

const list = part("instance-list", HTMLUListElement);
const more = part("more-instances", HTMLButtonElement);
const section = part("instances", HTMLElement);
/** Where there is no room beside the chat, they bring the list over it. */
const openers = [...document.querySelectorAll<HTMLButtonElement>(".show-instances")];

/** What is talked to: an instance, and an agent in it if it has one. */
export interface Choice {
  instance: Instance;
  agent: Agent | null;
}

export interface Instances {
  /** Shows what the address names, or what was running last. */
  choose(instanceId: string | null, agentId: string | null): Promise<void>;
  /** Reads the list anew: others make, start and stop instances too. */
  refresh(): Promise<void>;
  /** Shows what an operation has just answered. */
  show(instance: Instance): void;
  isChosen(): boolean;
}

interface Row {
  instance: Instance;
  item: HTMLLIElement;
  details: HTMLDetailsElement;
  state: HTMLElement;
  name: HTMLElement;
  agents: HTMLUListElement;
  /** How many there were when the agents were last read. */
  agentsRead: number | null;
}

export const hashOf = (instanceId: string, agentId: string | null): string =>
  agentId === null ? `#${instanceId}` : `#${instanceId}/${agentId}`;

const REASONS: Record<string, string> = {
  insufficient_balance: "the balance is used up",
  monthly_limit: "the monthly limit is reached",
};

/** `running`, `stopped: the balance is used up`. */
export function stateOf({ status, statusReason }: Instance): string {
  return status + (statusReason === null ? "" : `: ${REASONS[statusReason] ?? statusReason.replaceAll("_", " ")}`);
}

/** What an instance has cost so far; "" where it is nothing. */
export const costOf = ({ billing }: Instance): string =>
  isNothing(billing.accrued) ? "" : ` · ${cents(billing.accrued)} ${billing.currency}`;

/**
 * Lists all instances of the account with their agents. `chosen` is told which is talked to, null while there is none;
 * `changed` how one stands now.
 */
export function listInstances(
  charges: boolean,
  chosen: (choice: Choice | null) => Promise<void>,
  changed: (instance: Instance) => void,
): Instances {
  const rows = new Map<string, Row>();
  let cursor: string | null = null;
  let current: { instanceId: string; agentId: string | null } | undefined;

  async function readPage(after: string | null): Promise<Page<Instance>> {
    const behind = after === null ? "" : `&after=${encodeURIComponent(after)}`;
    const page = await call<Page<Instance>>("GET", `/instances?limit=100${behind}`);
    for (const instance of page.data) {
      show(instance);
      changed(instance);
    }
    return page;
  }

  /** Rows stand in the order of their ids, which is that of their creation, newest first. */
  function show(instance: Instance): Row {
    let row = rows.get(instance.instanceId);
    if (!row) {
      row = makeRow(instance);
      rows.set(instance.instanceId, row);
      const next = [...rows.values()].find(
        (other) => other.instance.instanceId < instance.instanceId && other.item.isConnected,
      );
      list.insertBefore(row.item, next?.item ?? null);
      showOrHide();
    }
    row.instance = instance;
    row.name.textContent = instance.name;
    row.state.textContent = stateOf(instance) + (charges ? costOf(instance) : "");
    row.item.dataset.status = instance.status;
    if (row.details.open && row.agentsRead !== null && row.agentsRead !== instance.agentCount) void readAgents(row);
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
    const row = { instance, item: make("li", "", details), details, name, state, agents, agentsRead: null };
    details.addEventListener("toggle", () => {
      if (details.open && row.agentsRead === null) void attempt(section, () => readAgents(row));
    });
    return row;
  }

  async function readAgents(row: Row): Promise<void> {
    const { instanceId, agentCount } = row.instance;
    row.agentsRead = agentCount;
    const links: HTMLElement[] = [];
    for (let after = ""; ; ) {
      const page = await call<Page<Agent>>("GET", `/instances/${instanceId}/agents?limit=100${after}`);
      for (const { agentId, displayName } of page.data) links.push(linkTo(instanceId, agentId, displayName));
      if (page.nextCursor === null) break;
      after = `&after=${encodeURIComponent(page.nextCursor)}`;
    }
    if (links.length === 0) links.push(linkTo(instanceId, null, "No agent yet"));
    row.agents.replaceChildren(...links.map((link) => make("li", "", link)));
    mark();
  }

  function linkTo(instanceId: string, agentId: string | null, text: string): HTMLAnchorElement {
    const link = make("a", "", text);
    link.href = hashOf(instanceId, agentId);
    return link;
  }

  function mark(): void {
    const hash = current && hashOf(current.instanceId, current.agentId);
    for (const link of list.querySelectorAll("a")) {
      if (link.hash === hash) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }

  const agentIn = async (instanceId: string, agentId: string | null): Promise<Agent | null> => {
    const agents = `/instances/${instanceId}/agents`;
    if (agentId !== null) return call<Agent>("GET", `${agents}/${agentId}`);
    return (await call<Page<Agent>>("GET", `${agents}?limit=1`)).data[0] ?? null;
  };

  /** The newest that runs and has an agent, else the newest with one, else the newest. */
  function likeliest(): Instance | undefined {
    const all = [...rows.values()].map((row) => row.instance).sort((a, b) => (a.instanceId < b.instanceId ? 1 : -1));
    const inhabited = all.filter(({ agentCount }) => agentCount > 0);
    return inhabited.find(({ status }) => status === "running") ?? inhabited[0] ?? all[0];
  }

  async function choose(instanceId: string | null, agentId: string | null): Promise<void> {
    const instance =
      instanceId === null
        ? likeliest()
        : (rows.get(instanceId)?.instance ?? (await call<Instance>("GET", `/instances/${instanceId}`)));
    if (!instance) {
      current = undefined;
      return chosen(null);
    }
    const row = show(instance);
    const agent = await agentIn(instance.instanceId, agentId);
    current = { instanceId: instance.instanceId, agentId: agent?.agentId ?? null };
    if (row.details.open) mark();
    else row.details.open = true;
    await chosen({ instance, agent });
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
    async refresh() {
      const page = await readPage(null);
      const isFirst = cursor === null && more.hidden;
      if (isFirst) {
        cursor = page.nextCursor;
        more.hidden = cursor === null;
      }
      // Of those that the page covers, what it does not hold is gone.
      const last = page.nextCursor === null ? "" : (page.data.at(-1)?.instanceId ?? "");
      const there = new Set(page.data.map((instance) => instance.instanceId));
      for (const [instanceId, row] of rows) {
        if (instanceId < last || there.has(instanceId)) continue;
        row.item.remove();
        rows.delete(instanceId);
      }
      showOrHide();
      if (current && !rows.has(current.instanceId)) await choose(null, null);
    },
    show: (instance) => void show(instance),
    isChosen: () => current !== undefined,
  };
}

/** Where there is no room beside the chat, the list comes over it, and goes once something is chosen. */
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
  document.addEventListener("keydown", ({ key }) => {
    if (key !== "Escape" || !isShown()) return;
    show(false);
    openers.find((opener) => opener.offsetParent !== null)?.focus();
  });
}
