import { roost } from "./api.ts";
import { ago, attempt, make, part } from "./dom.ts";
import type { Found } from "./records.ts";

const WHO: Record<Found["items"][number]["origin"], string> = {
  owner: "you",
  agent: "the agent",
  untrusted: "perhaps a stranger",
  system: "the host",
};

/** Arms the search of an agent's memory. Returns what shows it for one agent. */
export function openMemory(): (of: { instanceId: string; agentId: string }) => void {
  const form = part("memory-form", HTMLFormElement);
  const query = part("memory-query", HTMLInputElement);
  const list = part("memory-list", HTMLUListElement);
  const told = part("memory-told", HTMLElement);
  let path: { instanceId: string; agentId: string } | undefined;
  let asked = 0;

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = query.value.trim();
    if (!path || text === "") return;
    const of = path;
    const mine = ++asked;
    void attempt(part("memory-search", HTMLButtonElement), async () => {
      const found = await roost.get("/v1/instances/{instanceId}/agents/{agentId}/memory", {
        path: of,
        query: { query: text },
      });
      if (mine === asked) show(found);
    });
  });

  function show({ items, degraded }: Found): void {
    list.replaceChildren(...items.map(rowOf));
    const count = items.length === 0 ? "Nothing was found." : "";
    told.textContent = degraded === null ? count : `${count} The search was limited: ${degraded}.`.trim();
  }

  return (of) => {
    if (path?.agentId === of.agentId) return;
    path = of;
    asked++;
    query.value = "";
    told.textContent = "";
    list.replaceChildren();
  };
}

function rowOf({ file, fromLine, text, origin, createdAt }: Found["items"][number]): HTMLElement {
  const row = make("li");
  const where = file === null ? "in a conversation" : `${file}, line ${fromLine ?? 1}`;
  const said = make("p", "", text);
  said.dir = "auto";
  row.append(said, make("p", "soft", `${where}, by ${WHO[origin]}, ${ago(createdAt)}`));
  return row;
}
