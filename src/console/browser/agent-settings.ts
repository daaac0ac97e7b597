import { askBeforeLeaving, roost } from "./api.ts";
import { attempt, confirmPress, part, watchWriting } from "./dom.ts";
import { hashOf } from "./hash.ts";
import type { Choice } from "./instances.ts";
import { AGENT, type Agent, INSTANCE } from "./records.ts";

/** What an agent and its instance are called, which model answers, and the end of either. */
export type ShowSettings = (choice: Choice, agent: Agent) => void;

/**
 * Arms the settings. `changed` reads an instance and its agents anew, and shows the one given, or what is likeliest. Returns
 * what shows them for an agent.
 */
export function openSettings(
  hostModel: string,
  changed: (instanceId: string, agentId: string | null) => Promise<void>,
): ShowSettings {
  const form = part("agent-settings", HTMLFormElement);
  const instanceForm = part("instance-settings", HTMLFormElement);
  const name = part("agent-rename", HTMLInputElement);
  const model = part("agent-model", HTMLInputElement);
  const instanceName = part("instance-rename", HTMLInputElement);
  const told = part("settings-told", HTMLElement);
  const instanceTold = part("instance-settings-told", HTMLElement);
  let shown: { instanceId: string; agentId: string } | null = null;
  askBeforeLeaving(watchWriting(form));
  askBeforeLeaving(watchWriting(instanceForm));
  model.placeholder = hostModel;

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void attempt(form, async () => {
      told.textContent = "";
      if (shown === null) return;
      const path = shown;
      const body = { displayName: name.value, model: modelsIn(model.value) };
      const agent = await roost.patch(AGENT, { path, body });
      setField(name, agent.displayName);
      setField(model, namesOf(agent.model));
      await changed(path.instanceId, path.agentId);
      told.textContent = "Saved. It counts from the next message on.";
      told.focus();
    });
  });
  instanceForm.addEventListener("submit", (event) => {
    event.preventDefault();
    void attempt(instanceForm, async () => {
      instanceTold.textContent = "";
      if (shown === null) return;
      const { instanceId, agentId } = shown;
      const instance = await roost.patch(INSTANCE, { path: { instanceId }, body: { name: instanceName.value } });
      setField(instanceName, instance.name);
      await changed(instanceId, agentId);
      instanceTold.textContent = "Saved.";
      instanceTold.focus();
    });
  });
  const remove = part("agent-delete", HTMLButtonElement);
  confirmPress(remove, "Delete it, with its files and conversations?", async () => {
    if (shown === null) return;
    const { instanceId } = shown;
    await roost.delete(AGENT, { path: shown });
    await changed(instanceId, null);
    location.hash = hashOf(instanceId);
  });
  const removeInstance = part("instance-delete", HTMLButtonElement);
  confirmPress(removeInstance, "Delete it, with all of its agents?", async () => {
    if (shown === null) return;
    const { instanceId } = shown;
    await roost.delete(INSTANCE, { path: { instanceId } });
    await changed(instanceId, null);
    location.hash = "#chat";
  });

  return ({ instance }, agent) => {
    const { instanceId } = instance;
    const isOther = shown?.agentId !== agent.agentId;
    shown = { instanceId, agentId: agent.agentId };
    if (isOther) for (const words of [told, instanceTold]) words.textContent = "";
    setField(name, agent.displayName);
    setField(model, namesOf(agent.model));
    setField(instanceName, instance.name);
    part("agent-slug", HTMLElement).textContent = agent.slug;
    remove.setAttribute("aria-label", `Delete the agent ${agent.displayName}`);
    removeInstance.setAttribute("aria-label", `Delete the instance ${instance.name}`);
  };
}

/** Shows what is saved: a field that says something else is not saved yet. */
const setField = (field: HTMLInputElement, value: string) => Object.assign(field, { defaultValue: value, value });

const namesOf = (model: Agent["model"]): string => [model ?? []].flat().join(", ");

/** One model, or several, of which the first that can be reached answers; null for the host's default. */
function modelsIn(text: string): Agent["model"] {
  const names = text.split(",").map((one) => one.trim());
  const given = names.filter((one) => one !== "");
  return given.length > 1 ? given : (given[0] ?? null);
}
