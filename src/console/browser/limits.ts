import { askBeforeLeaving, roost } from "./api.ts";
import { attempt, figure, part, reportErrors } from "./dom.ts";
import { exact } from "./money.ts";
import { type Account, AGENT, type Agent, INSTANCE, type Instance } from "./records.ts";

const LIMITS = ["tokensPerDay", "tokensPerMonth", "costPerDay", "costPerMonth"] as const;
type Limits = Account["modelLimits"];

/** What the account has: its newest instances, as many as one page of their list holds, with all their agents. */
export interface Owners {
  instances: { instance: Instance; agents: Agent[] }[];
}

export async function readOwners(): Promise<Owners> {
  const { data } = await roost.get("/v1/instances", { query: { limit: 100 } });
  const read = async (instance: Instance) => {
    const { instanceId } = instance;
    return { instance, agents: await Array.fromAsync(roost.all(`${INSTANCE}/agents`, { path: { instanceId } })) };
  };
  return { instances: await Promise.all(data.map(read)) };
}

const form = part("model-limits", HTMLFormElement);
const of = part("limits-of", HTMLSelectElement);
const fields = part("limits-fields", HTMLFieldSetElement);
const saved = part("limits-saved", HTMLElement);
const told = part("operator-limits", HTMLElement);

/** The form of what models may take: of the account, an instance or an agent. Returns a function that shows it anew. */
export function openLimits(): (owners: Owners) => Promise<void> {
  /** What is typed and not saved, by what is chosen: it stays while something else is looked at. */
  const drafts = new Map<string, string[]>();
  askBeforeLeaving(() => drafts.size > 0);

  /** Empty for the account, an instance, or both. */
  const chosen = () => {
    const [instanceId = "", agentId] = of.value.split("/");
    return { instanceId, agentId };
  };

  async function read(): Promise<void> {
    saved.textContent = "";
    // Until they are read, they show another's.
    fields.disabled = true;
    const { instanceId, agentId } = chosen();
    const asked = of.value;
    if (instanceId === "") {
      const account = await roost.get("/v1/auth/me");
      if (of.value !== asked) return;
      showAccount(account);
      return resume();
    }
    const { modelLimits } =
      agentId === undefined
        ? await roost.get(INSTANCE, { path: { instanceId } })
        : await roost.get(AGENT, { path: { instanceId, agentId } });
    if (of.value !== asked) return;
    show(modelLimits);
    const whose = agentId === undefined ? "They hold for all agents of this instance together." : "";
    told.textContent = `${whose} The limits of this account hold too. Empty is no limit.`.trim();
    resume();
  }

  /** Goes on where these limits were last looked at. */
  function resume(): void {
    const draft = drafts.get(of.value);
    if (draft) for (const [at, input] of inputs().entries()) input.value = draft[at] ?? "";
    fields.disabled = false;
  }

  async function save(modelLimits: Limits): Promise<void> {
    const { instanceId, agentId } = chosen();
    const body = { modelLimits };
    if (instanceId === "") showAccount(await roost.patch("/v1/auth/me", { body }));
    else if (agentId === undefined) show((await roost.patch(INSTANCE, { path: { instanceId }, body })).modelLimits);
    else show((await roost.patch(AGENT, { path: { instanceId, agentId }, body })).modelLimits);
  }

  of.addEventListener("change", () => void reportErrors(form, read));
  fields.addEventListener("input", () => {
    saved.textContent = "";
    if (inputs().some((input) => input.value !== input.defaultValue))
      drafts.set(
        of.value,
        inputs().map(({ value }) => value),
      );
    else drafts.delete(of.value);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    saved.textContent = "";
    void attempt(form, async () => {
      // What is shown once it is saved belongs to what is chosen now.
      of.disabled = true;
      try {
        await save(limitsInForm());
        drafts.delete(of.value);
      } finally {
        of.disabled = false;
      }
      saved.textContent = "Saved. It holds from the next call on.";
    });
  });

  return async ({ instances }) => {
    const before = of.value;
    const groups = instances.map(({ instance: { instanceId, name }, agents }) => {
      const group = document.createElement("optgroup");
      group.label = name;
      group.append(new Option(`all of ${name}`, instanceId));
      group.append(...agents.map(({ agentId, displayName }) => new Option(displayName, `${instanceId}/${agentId}`)));
      return group;
    });
    of.replaceChildren(new Option("this account", ""), ...groups);
    of.value = before;
    if (of.selectedIndex === -1) of.value = "";
    // What is gone has no limits any more.
    const known = new Set([...of.options].map(({ value }) => value));
    for (const one of drafts.keys()) if (!known.has(one)) drafts.delete(one);
    await read();
  };
}

const inputOf = (name: string): HTMLInputElement => {
  const input = form.elements.namedItem(name);
  if (!(input instanceof HTMLInputElement)) throw new Error(`the page has no field ${name}`);
  return input;
};
const inputs = () => LIMITS.map(inputOf);

function show(modelLimits: Limits): void {
  for (const name of LIMITS) {
    const limit = modelLimits[name];
    const text = limit === null ? "" : typeof limit === "string" ? exact(limit) : String(limit);
    Object.assign(inputOf(name), { defaultValue: text, value: text });
  }
}

function showAccount({ modelLimits, limits: { tokensPerDay, tokensPerMonth } }: Account): void {
  show(modelLimits);
  const allowed = [
    ...(tokensPerDay === null ? [] : [`${figure(tokensPerDay)} tokens in a day`]),
    ...(tokensPerMonth === null ? [] : [`${figure(tokensPerMonth)} tokens in a month`]),
  ];
  told.textContent =
    allowed.length === 0
      ? "They hold for all instances and agents together. Empty is no limit."
      : `They hold for all instances and agents together. This host allows ${allowed.join(" and ")}.`;
}

/** As the API takes them; the fields' patterns let only numbers through. */
function limitsInForm(): Limits {
  const numberOf = (text: string) => (text === "" ? null : Number(text));
  return {
    tokensPerDay: numberOf(inputOf("tokensPerDay").value.trim()),
    tokensPerMonth: numberOf(inputOf("tokensPerMonth").value.trim()),
    costPerDay: inputOf("costPerDay").value.trim() || null,
    costPerMonth: inputOf("costPerMonth").value.trim() || null,
  };
}
