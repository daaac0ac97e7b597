import { roost } from "./api.ts";
import { attempt, day, make, makeAlert, reportErrors } from "./dom.ts";
import type { CatalogSkill, InstalledSkill, Skill } from "./records.ts";
import { visibleFile } from "./visible-text.ts";

/** What is known of an installed skill besides itself. */
export interface Installation {
  skill: InstalledSkill;
  /** The skill of this name in the catalog. */
  known: CatalogSkill | undefined;
  /** Stores a secret that it lacks. Throws if it cannot be. */
  store(name: string, value: string): Promise<void>;
}

/** What a skill requires and gets, where it is from, and its text as far as the API gives it. */
export function describeSkill(skill: Skill, installation: Installation | null): HTMLElement[] {
  const { requires, secretHosts } = skill;
  const { missingSecrets = [], missingTools = [] } = installation?.skill ?? {};
  const facts = make("dl", "facts");
  const fact = (name: string, ...said: (string | Node)[]) =>
    facts.append(make("dt", "", name), make("dd", "", ...said));

  fact("Allows requests to", ...(requires.hosts.length > 0 ? codes(requires.hosts) : ["no host"]));
  const secrets = requires.secrets.map((name) => {
    const hosts = secretHosts[name] ?? [];
    const state = !installation ? "" : missingSecrets.includes(name) ? ", and is missing" : ", and is stored";
    return make(
      "p",
      "",
      make("code", "", name),
      " goes ",
      hosts.length > 0 ? "only to " : "nowhere",
      ...codes(hosts),
      state,
    );
  });
  fact("Needs secrets", ...(secrets.length > 0 ? secrets : ["none"]));
  const lacking = missingTools.length > 0 ? [". This host does not have ", ...codes(missingTools)] : [];
  fact("Uses the tools", ...(requires.tools.length > 0 ? [...codes(requires.tools), ...lacking] : ["none"]));
  fact("From", originOf(skill, installation));
  fact("SHA-256 of its files", make("code", "", skill.sha256));

  const forms = installation ? missingSecrets.map((name) => secretForm(name, installation.store)) : [];
  const isOfCatalog = !installation || installation.known?.sha256 === skill.sha256;
  const text = isOfCatalog
    ? textOf(skill.name)
    : make("p", "soft", "The host does not show its text. You have it where it was installed from.");
  return [facts, ...pinOf(skill, installation), ...forms, text];
}

/** `a, b`, each as code. */
const codes = (names: readonly string[]): (string | Node)[] =>
  names.flatMap((name, at) => (at === 0 ? [make("code", "", name)] : [", ", make("code", "", name)]));

function originOf({ version }: Skill, installation: Installation | null): string {
  if (!installation) return `this host, version ${version}`;
  const { source, installedAt } = installation.skill;
  const from = source === "catalog" ? "built in" : "own files";
  return `${from}, version ${version}, installed ${day(installedAt)}`;
}

/** Whether what is installed is what the catalog has. */
function pinOf({ sha256 }: Skill, installation: Installation | null): HTMLElement[] {
  if (!installation) return [];
  const { skill, known } = installation;
  const pinned = "Pinned: what is read must be what was installed.";
  if (skill.source === "upload") return [make("p", "soft", pinned)];
  if (known?.sha256 === sha256) return [make("p", "soft", `${pinned} It is the one that is built in now.`)];
  const now = known
    ? `This host now has version ${known.version} with another text: remove this one and install it again to get it.`
    : "This host has no built-in skill of this name any longer.";
  return [make("p", "warning", `${pinned} ${now}`)];
}

/** The value is sent once, and kept nowhere in this page. */
function secretForm(name: string, store: Installation["store"]): HTMLElement {
  const field = make("input");
  field.type = "password";
  field.autocomplete = "off";
  field.required = true;
  const label = make("label", "", "Value of ", make("code", "", name), field);
  const form = make("form", "secret", label, make("button", "", "Store"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const { value } = field;
    field.value = "";
    void attempt(form, () => store(name, value));
  });
  return form;
}

/** A skill of the catalog is public: its instructions and the names of its files. */
function textOf(name: string): HTMLElement {
  const alert = makeAlert();
  const section = make("section", "", alert);
  void reportErrors(alert, async () => {
    const { instructions, files } = await roost.get("/v1/skills/{name}", { path: { name } });
    const scripts = files.filter((file) => file.endsWith(".js"));
    const others = files.filter((file) => !scripts.includes(file) && file !== "SKILL.md");
    if (scripts.length > 0) section.append(make("p", "", "Its scripts, run in the sandbox: ", ...codes(scripts)));
    if (others.length > 0) section.append(make("p", "", "Its other files: ", ...codes(others)));
    section.append(make("details", "", make("summary", "", "Its instructions"), visibleFile(instructions)));
  });
  return section;
}
