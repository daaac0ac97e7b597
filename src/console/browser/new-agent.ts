import { askBeforeLeaving, roost } from "./api.ts";
import { attempt, part, watchWriting } from "./dom.ts";
import type { Choice } from "./instances.ts";
import { type Agent, INSTANCE, type Instance } from "./records.ts";

const fold = part("new-agent", HTMLDetailsElement);
const form = part("new-agent-form", HTMLFormElement);
const name = part("new-agent-name", HTMLInputElement);
const persona = part("new-agent-persona", HTMLTextAreaElement);

/** The form that adds an agent to the chosen instance. `made` shows it. Returns what tells it of the choice. */
export function openNewAgent(made: (instance: Instance, agent: Agent) => void): (choice: Choice | null) => void {
  let instance: Instance | null = null;
  askBeforeLeaving(watchWriting(form));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const into = instance;
    if (into === null) return;
    void attempt(form, async () => {
      const { instanceId } = into;
      const soul = persona.value.trim();
      const body = { name: name.value, ...(soul !== "" && { files: { "SOUL.md": soul } }) };
      const agent = await roost.post(`${INSTANCE}/agents`, { path: { instanceId }, body });
      form.reset();
      fold.open = false;
      made(await roost.get(INSTANCE, { path: { instanceId } }), agent);
    });
  });
  return (choice) => {
    instance = choice?.instance ?? null;
    fold.hidden = instance === null;
    part("new-agent-in", HTMLElement).textContent = instance?.name ?? "";
  };
}
