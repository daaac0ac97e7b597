import { askBeforeLeaving, roost } from "./api.ts";
import { attempt, part, watchWriting } from "./dom.ts";
import type { Choice } from "./instances.ts";
import { type Agent, INSTANCE, type Instance } from "./records.ts";

const newInstance = part("new-instance", HTMLDetailsElement);
const instanceForm = part("new-instance-form", HTMLFormElement);
const fold = part("new-agent", HTMLDetailsElement);
const form = part("new-agent-form", HTMLFormElement);
const name = part("new-agent-name", HTMLInputElement);
const persona = part("new-agent-persona", HTMLTextAreaElement);

/**
 * The forms that add an agent to the chosen instance, and another instance at this `price`. `made` shows what is added.
 * Returns what tells them of the choice.
 */
export function openNewAgent(
  price: string,
  made: (instance: Instance, agent: Agent | null) => void,
): (choice: Choice | null) => void {
  let instance: Instance | null = null;
  askBeforeLeaving(watchWriting(form));
  part("new-instance-price", HTMLElement).textContent =
    `Agents of one instance share skills and secrets. ${price}`.trim();
  instanceForm.addEventListener("submit", (event) => {
    event.preventDefault();
    void attempt(instanceForm, async () => {
      const instance = await roost.post("/v1/instances", {
        body: { name: part("new-instance-name", HTMLInputElement).value },
      });
      instanceForm.reset();
      newInstance.open = false;
      made(instance, null);
    });
  });
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
