import { Failure } from "../failure.ts";
import { printJson, printTable, say, shortTime } from "../output.ts";
import { shellWord } from "../shell-word.ts";
import { openClient, type ServerOptions } from "./credentials.ts";
import { findInstance, INSTANCE } from "./find.ts";
import { readInput } from "./input.ts";
import { askHidden, confirm } from "./prompt.ts";

interface Options extends ServerOptions {
  json?: true;
}

const SECRETS = `${INSTANCE}/secrets` as const;

/** `roost secret set INSTANCE NAME`: the value comes from standard input or a hidden prompt: arguments are public. */
export async function setSecret(instance: string, name: string, options: Options): Promise<void> {
  const client = openClient(options);
  const instanceId = await findInstance(client, instance);
  const value = process.stdin.isTTY ? await askHidden(`Value of ${name}: `) : await readInput("the value", MAX_BYTES);
  if (value === "") throw new Failure("the value is empty", "type it when asked for, or pipe it to standard input");
  const set = await client.post(SECRETS, { path: { instanceId }, body: { key: name, value } });
  if (options.json) printJson(set);
  else say(`Set ${name}.`);
}

const MAX_BYTES = 64 * 1024;

/** `roost secret list INSTANCE`: names; no endpoint returns a value. */
export async function listSecrets(instance: string, options: Options): Promise<void> {
  const client = openClient(options);
  const instanceId = await findInstance(client, instance);
  const secrets = await Array.fromAsync(client.all(SECRETS, { path: { instanceId } }));
  if (options.json) printJson(secrets);
  else
    printTable(
      ["NAME", "SET", "CHANGED"],
      secrets.map(({ key, createdAt, updatedAt }) => [key, shortTime(createdAt), shortTime(updatedAt)]),
      `There are no secrets. To add one: roost secret set ${shellWord(instance)} NAME`,
      { leaveOut: ["SET"], shorten: ["NAME"] },
    );
}

/** `roost secret delete INSTANCE NAME` */
export async function deleteSecret(instance: string, name: string, options: Options & { yes?: true }): Promise<void> {
  const client = openClient(options);
  const instanceId = await findInstance(client, instance);
  await confirm(`Delete the secret ${name}?`, options.yes);
  const deleted = await client.delete(`${SECRETS}/{key}`, { path: { instanceId, key: name } });
  if (options.json) printJson(deleted);
  else say(`Deleted ${name}.`);
}
