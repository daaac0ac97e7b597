import type { InstanceStatus } from "../../instances/schema.ts";
import { cents, colours, printJson, printTable, say, shortTime } from "../output.ts";
import type { Records } from "./client.ts";
import { openClient, type ServerOptions } from "./credentials.ts";
import { findInstance, INSTANCE } from "./find.ts";
import { confirm } from "./prompt.ts";

interface Options extends ServerOptions {
  json?: true;
}

/** `roost instance list`: newest first. */
export async function listInstances(options: Options & { status?: InstanceStatus }): Promise<void> {
  const { status } = options;
  const instances = await Array.fromAsync(openClient(options).all("/v1/instances", { query: { status } }));
  if (options.json) printJson(instances);
  else
    printTable(
      ["NAME", "STATUS", "AGENTS", "COST", "CREATED", "ID"],
      instances.map(({ name, status, statusReason, agentCount, billing, createdAt, instanceId }) => [
        name,
        statusReason === null ? status : `${status} (${statusReason})`,
        String(agentCount),
        cents(billing.accrued),
        shortTime(createdAt),
        instanceId,
      ]),
      "There are no instances. To create one: roost instance create NAME",
      { leaveOut: ["CREATED", "COST"], shorten: ["NAME", "STATUS"] },
    );
}

/** `roost instance create NAME` */
export async function createInstance(name: string, options: Options): Promise<void> {
  print(await openClient(options).post("/v1/instances", { body: { name } }), options);
}

/** `roost instance start|stop INSTANCE` */
export async function setRunning(given: string, action: "start" | "stop", options: Options): Promise<void> {
  const client = openClient(options);
  const path = { instanceId: await findInstance(client, given) };
  print(await client.post(`${INSTANCE}/${action}`, { path }), options);
}

function print(instance: Records["Instance"], { json }: Options): void {
  if (json) printJson(instance);
  else say(`${instance.name} is ${instance.status}  `, colours.dim(instance.instanceId));
}

/** `roost instance delete INSTANCE`: deletes its agents, secrets and history too. */
export async function deleteInstance(given: string, options: Options & { yes?: true }): Promise<void> {
  const client = openClient(options);
  const instanceId = await findInstance(client, given);
  await confirm(`Delete the instance ${given} with its agents, secrets and history?`, options.yes);
  const deleted = await client.delete(INSTANCE, { path: { instanceId } });
  if (options.json) printJson(deleted);
  else say(`Deleted ${instanceId}.`);
}
