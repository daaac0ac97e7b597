import { make, part } from "./dom.ts";
import type { Agent, Billing, Host } from "./records.ts";

/** Facts about the whole host. */
export interface Facts {
  billing: Billing;
  /** False on a host that does not charge. */
  charges: boolean;
  host: Host;
}

const INSIDE = "local:smollm2-135m-instruct";

const line = part("answers-from", HTMLElement);
const choice = part("ollama-model", HTMLSelectElement);
const command = part("ollama-command", HTMLElement);

/** Shows below the conversation which model answers, and how to get a stronger one. */
export function describeAnswers({ host }: Facts, agent: Agent): void {
  const model = firstOf(agent, host);
  if (model !== INSIDE) {
    line.textContent = `Answers come from ${nameOf(model)}.`;
    return;
  }
  const link = make("a", "", host.ollama ? "Use Ollama instead" : "Use a stronger one");
  link.href = "#model";
  const plainly =
    "Answers come from the small embedded model: fluent in English, but its facts and advice are often wrong. ";
  line.replaceChildren(plainly, link);
}

/** Whether its model calls more than a few simple tools, as far as the console knows. */
export const hasTools = ({ host }: Facts, agent: Agent): boolean => firstOf(agent, host) !== INSIDE;

/** The model that answers, as long as it can be reached. */
const firstOf = ({ model }: Agent, host: Host): string => [model].flat()[0] ?? host.model;

const nameOf = (model: string): string =>
  model.startsWith("local:") ? `${model.slice("local:".length)}, on this host` : model.replace(/^openai:/, "");

/** The page about the model: which one it is, and how to use another. */
export function showModel({ model, ollama }: Host): void {
  const isInside = model === INSIDE;
  part("model-inside", HTMLElement).hidden = !isInside;
  part("model-other", HTMLElement).hidden = isInside;
  part("model-name", HTMLElement).textContent = nameOf(model);
  part("model-offer", HTMLElement).hidden = ollama === null;
  part("model-how", HTMLElement).hidden = ollama !== null;
  if (ollama === null) return;
  const { baseUrl, models, settingsFile } = ollama;
  choice.replaceChildren(...models.map((name) => new Option(name, name)));
  const show = () => {
    command.textContent = commandFor(settingsFile, choice.value, baseUrl);
  };
  choice.addEventListener("change", show);
  show();
}

/** A command that adds two lines to the settings file. Running it again changes nothing. */
function commandFor(settingsFile: string, model: string, baseUrl: string): string {
  const file = quoted(settingsFile);
  const lines = quoted(`\\nmodel = "openai:${model}"\\nopenai_base_url = "${baseUrl}"\\n`);
  return `grep -qs '^ *model *=' ${file} ||\n  (umask 077; printf ${lines} >> ${file})`;
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
