import { note, printFields, printJson, printTable, say, sayText, shortTime } from "../output.ts";
import { shellWord } from "../shell-word.ts";
import { createClient } from "./client.ts";
import { openClient, type ServerOptions, serverOf } from "./credentials.ts";
import { findInstance, INSTANCE } from "./find.ts";

interface Options extends ServerOptions {
  json?: true;
}

const words = (names: readonly string[]): string => names.join(" ") || "-";

/** `roost skill list`: the server's catalog; needs no account. */
export async function listCatalog(options: Options): Promise<void> {
  const skills = await Array.fromAsync(createClient(serverOf(options), null).all("/v1/skills"));
  if (options.json) printJson(skills);
  else
    printTable(
      ["NAME", "VERSION", "SECRETS", "HOSTS", "DESCRIPTION"],
      skills.map(({ name, version, requires: { secrets, hosts }, description }) => [
        name,
        version,
        words(secrets),
        words(hosts),
        description,
      ]),
      "The catalog is empty.",
      { leaveOut: ["SECRETS", "HOSTS"], shorten: ["NAME", "DESCRIPTION"] },
    );
}

/** `roost skill show NAME`: of the server's catalog; needs no account. */
export async function showSkill(name: string, options: Options): Promise<void> {
  const skill = await createClient(serverOf(options), null).get("/v1/skills/{name}", { path: { name } });
  if (options.json) {
    printJson(skill);
    return;
  }
  const { requires, license, files } = skill;
  printFields([
    ["Name", skill.name],
    ["Version", skill.version],
    ["About", skill.description],
    ["License", license ?? "-"],
    ["Secrets", words(requires.secrets)],
    ["Hosts", words(requires.hosts)],
    ["Tools", words(requires.tools)],
    ["Files", words(files)],
  ]);
  say("");
  sayText(skill.instructions);
}

const SKILLS = `${INSTANCE}/skills` as const;

/** `roost skill list INSTANCE`: what is installed. */
export async function listInstalled(instance: string, options: Options): Promise<void> {
  const client = openClient(options);
  const instanceId = await findInstance(client, instance);
  const skills = await Array.fromAsync(client.all(SKILLS, { path: { instanceId } }));
  if (options.json) printJson(skills);
  else
    printTable(
      ["NAME", "VERSION", "FROM", "INSTALLED", "HOSTS", "MISSING"],
      skills.map(({ name, version, source, installedAt, requires, missingSecrets, missingTools }) => [
        name,
        version,
        source,
        shortTime(installedAt),
        words(requires.hosts),
        words([...missingSecrets, ...missingTools]),
      ]),
      "No skills are installed. To see the catalog: roost skill list",
      { leaveOut: ["INSTALLED"], shorten: ["NAME", "HOSTS", "MISSING"] },
    );
}

/** `roost skill install INSTANCE NAME`: from the catalog, or with its files from a bundle. */
export async function installSkill(
  instance: string,
  name: string,
  options: Options & { from?: string },
): Promise<void> {
  const { from } = options;
  const body = from === undefined ? { name } : { files: await (await import("./bundle.ts")).skillIn(from, name) };
  const client = openClient(options);
  const instanceId = await findInstance(client, instance);
  const skill = await client.post(SKILLS, { path: { instanceId }, body });
  if (options.json) printJson(skill);
  else {
    say(`Installed ${skill.name} ${skill.version}.`);
    if (skill.requires.hosts.length > 0) note(`Agents may now send requests to ${skill.requires.hosts.join(", ")}.`);
    if (skill.missingSecrets.length > 0) {
      note(`It needs ${skill.missingSecrets.join(", ")}: roost secret set ${shellWord(instance)} NAME`);
    }
    if (skill.missingTools.length > 0) note(`This host does not have its tools: ${skill.missingTools.join(", ")}.`);
  }
}

/** `roost skill remove INSTANCE NAME` */
export async function removeSkill(instance: string, name: string, options: Options): Promise<void> {
  const client = openClient(options);
  const instanceId = await findInstance(client, instance);
  const removed = await client.delete(`${SKILLS}/{name}`, { path: { instanceId, name } });
  if (options.json) printJson(removed);
  else say(`Removed ${name}.`);
}
