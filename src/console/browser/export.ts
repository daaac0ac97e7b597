import { type Answer, type Operation, RoostError } from "../../../clients/typescript/src/index.ts";
import { roost } from "./api.ts";
import { attempt, make, nameOf, part, reportErrors } from "./dom.ts";
import { hashOf } from "./hash.ts";
import type { Agent } from "./records.ts";
import { saveAs } from "./save-as.ts";

/** A host packs and unpacks a bundle before it answers. */
const TIMEOUT_MS = 300_000;

type ImportRecord = Answer<Operation<"post", "/v1/instances/{instanceId}/import">>;

/** Arms the download of an agent and the import of another. Returns what shows it for one agent. */
export function openExport(imported: () => Promise<void>): (instanceId: string, agent: Agent) => void {
  const told = part("export-told", HTMLElement);
  const review = part("export-review", HTMLUListElement);
  const file = part("export-file", HTMLInputElement);
  const renamed = part("export-renamed", HTMLFormElement);
  const name = part("export-name", HTMLInputElement);
  const download = part("export-download", HTMLButtonElement);
  let of: { instanceId: string; agentId: string; slug: string } | undefined;

  download.addEventListener("click", () => {
    void attempt(download, async () => {
      if (!of) return;
      const { instanceId, agentId, slug } = of;
      const history = part("export-history", HTMLInputElement).checked ? "true" : "false";
      const answer = await roost.open("get", "/v1/instances/{instanceId}/agents/{agentId}/bundle", {
        path: { instanceId, agentId },
        query: { history },
        deadlineMs: TIMEOUT_MS,
      });
      saveAs(`${slug}.tar.gz`, await answer.blob());
    });
  });
  file.addEventListener("change", () => {
    renamed.hidden = true;
    name.value = "";
    void reportErrors(file, take);
  });
  renamed.addEventListener("submit", (event) => {
    event.preventDefault();
    void attempt(renamed, take);
  });

  async function take(): Promise<void> {
    const [chosen] = file.files ?? [];
    if (!chosen || !of) return;
    const request = { path: { instanceId: of.instanceId }, query: { name: name.value.trim() || undefined } };
    told.textContent = "It is being imported…";
    review.replaceChildren();
    try {
      const options = { ...request, body: chosen, deadlineMs: TIMEOUT_MS };
      show(await roost.post("/v1/instances/{instanceId}/import", options));
      renamed.hidden = true;
    } catch (error) {
      told.textContent = "";
      // The file stays chosen, to be imported with a name of its own.
      renamed.hidden = !(error instanceof RoostError && error.code === "conflict");
      name.focus();
      throw error;
    } finally {
      if (renamed.hidden) file.value = "";
    }
    await imported();
  }

  function show({ instanceId, agentId, displayName, review: found }: ImportRecord): void {
    const link = make("a", "", nameOf(displayName));
    link.href = hashOf(instanceId, agentId);
    const facts = factsOf(found);
    told.replaceChildren(
      link,
      facts.length === 0 ? " is here." : " is here. What came with it and is off, or is missing:",
    );
    review.replaceChildren(...facts.map((fact) => make("li", "", make("p", "", ...fact))));
    told.focus();
  }

  return (instanceId, { agentId, slug, displayName }) => {
    of = { instanceId, agentId, slug };
    part("export-of", HTMLElement).textContent = displayName;
    told.textContent = "";
    review.replaceChildren();
    renamed.hidden = true;
  };
}

function factsOf({
  skills,
  policies,
  rules,
  model,
  schedules,
  heartbeat,
  leftOut,
}: ImportRecord["review"]): (string | Node)[][] {
  const code = (text: string) => make("code", "", text);
  return [
    ...skills
      .filter(({ state }) => state !== "installed")
      .map(({ name, state, requires: { hosts } }) => {
        const source = state === "different" ? "; there is another one of this name" : "";
        const opens = hosts.length === 0 ? "" : `; it would open ${hosts.join(", ")}`;
        return ["The skill ", code(name), ` is not installed${source}${opens}.`];
      }),
    ...skills.flatMap(({ missingSecrets }) =>
      missingSecrets.map((secret) => ["The secret ", code(secret), " is not set."]),
    ),
    ...policies.map(({ tool, policy }) => [code(tool), ` has its default policy, not ${policy}.`]),
    ...rules.map(({ tool, host }) => [code(tool), host === null ? "" : ` to ${host}`, " is asked for again."]),
    ...(model === null ? [] : [["The model ", code(model), " is not offered here."]]),
    ...schedules.map(({ name }) => ["The schedule ", code(name), " is off."]),
    ...(heartbeat ? [["Its heartbeat is off."]] : []),
    ...leftOut.map((what) => [code(what), " was left out."]),
  ];
}
