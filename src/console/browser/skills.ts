import { RoostError } from "../../../clients/typescript/src/index.ts";
import { roost } from "./api.ts";
import { confirmPress, make, makeButton, part } from "./dom.ts";
import { fillWhenOpened } from "./folds.ts";
import { chooseOwnSkill } from "./own-skill.ts";
import { type CatalogSkill, INSTANCE, type InstalledSkill, type Instance, type Skill } from "./records.ts";
import { describeSkill } from "./skill-details.ts";
import { ToldError } from "./told-error.ts";

const section = part("skills", HTMLElement);
const list = part("skill-list", HTMLUListElement);
const told = part("skill-told", HTMLElement);
const catalogFold = part("catalog", HTMLDetailsElement);
const ownFold = part("own-skill", HTMLDetailsElement);

const SKILLS = `${INSTANCE}/skills` as const;

/** The skills of an instance: what is installed, the catalog, and one's own. Returns a function that shows them. */
export function openSkills(): (instance: Instance) => Promise<void> {
  /** The id of the instance that is shown. */
  let shown = "";
  let installed = new Map<string, InstalledSkill>();
  let catalog: Promise<Map<string, CatalogSkill>> | undefined;

  /** The same for everybody, so it is read once; after an error it is read again. */
  function readCatalog(): Promise<Map<string, CatalogSkill>> {
    catalog ??= Array.fromAsync(roost.all("/v1/skills")).then(
      (skills) => new Map(skills.map((skill) => [skill.name, skill])),
    );
    catalog.catch(() => {
      catalog = undefined;
    });
    return catalog;
  }

  /** Shows what is installed now, with this one opened. */
  async function read(of: string, opened?: string): Promise<void> {
    const installedSkills = roost.all(SKILLS, { path: { instanceId: of } });
    const [skills, known] = await Promise.all([Array.fromAsync(installedSkills), readCatalog()]);
    if (of !== shown) return;
    installed = new Map(skills.map((skill) => [skill.name, skill]));
    list.replaceChildren(...skills.map((skill) => installedRow(skill, known.get(skill.name), skill.name === opened)));
    section.classList.remove("loading");
    // They tell what can be installed, and that has changed.
    for (const fold of [catalogFold, ownFold]) fold.open = false;
  }

  async function install(to: string, choice: { name: string } | { files: Record<string, string> }): Promise<void> {
    const skill = await roost.post(SKILLS, { path: { instanceId: to }, body: choice }).catch((error) => {
      throw withNextStep(error);
    });
    if (to !== shown) return;
    await read(to, skill.name);
    told.textContent = `${skill.name} is installed.`;
    list.querySelector<HTMLElement>("details[open] summary")?.focus();
  }

  function installedRow(skill: InstalledSkill, known: CatalogSkill | undefined, isOpen: boolean): HTMLLIElement {
    const of = shown;
    const remove = make("button", "quiet", "Remove");
    remove.type = "button";
    remove.setAttribute("aria-label", `Remove ${skill.name}`);
    confirmPress(remove, "Really remove?", async () => {
      await roost.delete(`${SKILLS}/{name}`, { path: { instanceId: of, name: skill.name } });
      if (of !== shown) return;
      await read(of);
      told.textContent = `${skill.name} is removed.`;
      told.focus();
    });
    const store = async (key: string, value: string) => {
      await roost.post(`${INSTANCE}/secrets`, { path: { instanceId: of }, body: { key, value } });
      if (of !== shown) return;
      await read(of, skill.name);
      told.textContent = `${key} is stored.`;
      told.focus();
    };
    const marks = [
      skill.source === "catalog" ? "built in" : "own",
      ...(skill.missingSecrets.length > 0 ? ["a secret is missing"] : []),
      ...(skill.missingTools.length > 0 ? ["a tool is missing"] : []),
      ...(skill.source === "catalog" && known?.sha256 !== skill.sha256 ? ["not the built-in text of now"] : []),
    ];
    return skillRow(skill, marks, isOpen, () => [...describeSkill(skill, { skill, known, store }), remove]);
  }

  function catalogRow(skill: CatalogSkill): HTMLLIElement {
    const to = shown;
    return skillRow(skill, installed.has(skill.name) ? ["installed"] : [], false, () => {
      const isThere = installed.has(skill.name);
      const action = isThere
        ? make("p", "soft", "It is installed.")
        : makeButton(`Install ${skill.name}`, "", () => install(to, { name: skill.name }));
      return [...describeSkill(skill, null), action];
    });
  }

  fillWhenOpened(
    catalogFold,
    async function* () {
      yield* (await readCatalog()).values();
    },
    catalogRow,
  );
  chooseOwnSkill((files) => install(shown, { files }));

  return async ({ instanceId }) => {
    shown = instanceId;
    list.replaceChildren();
    told.textContent = "";
    section.classList.add("loading");
    await read(instanceId);
  };
}

/** A line with what it is for; all about it is made once somebody opens it. */
function skillRow(skill: Skill, marks: string[], isOpen: boolean, about: () => HTMLElement[]): HTMLLIElement {
  const { name, version, description } = skill;
  const details = make(
    "details",
    "",
    make(
      "summary",
      "",
      make("span", "what", make("b", "", name), ` ${version}`, ...marks.map((mark) => make("span", "tag", mark))),
      make("bdi", "soft brief", description),
    ),
  );
  details.addEventListener("toggle", () => details.append(...about()), { once: true });
  details.open = isOpen;
  return make("li", "", details);
}

function withNextStep(error: unknown): unknown {
  if (!(error instanceof RoostError)) return error;
  const { code, message } = error;
  if (code === "invalid_request") return new ToldError(message, "Correct the file, then choose the files again.");
  if (code === "conflict") return new ToldError(message, "Remove what is in the way, then install it again.");
  return error;
}
