import { z } from "zod";
import { pageOf, pageQuery, toPage } from "../http/paging.ts";
import { type Route, route } from "../http/route.ts";
import type { Instances } from "../instances/instances.ts";
import { isoTime } from "../lib/clock.ts";
import { SecretsInput } from "./input.ts";
import type { Secrets } from "./secrets.ts";

const SECRETS = "/v1/instances/:instanceId/secrets";
const SecretRecord = z.object({ key: z.string(), createdAt: z.iso.datetime(), updatedAt: z.iso.datetime() });

export function secretRoutes(secrets: Secrets, instances: Instances): Route[] {
  return [
    route({
      method: "POST",
      path: SECRETS,
      summary: "Store secrets, all or none; no endpoint ever returns a value",
      access: "write",
      bound: "record",
      body: SecretsInput,
      status: 201,
      answer: z.object({ keys: z.array(z.string()) }),
      async handle({ caller, params, body, once }) {
        instances.get(caller, params.instanceId);
        const values = await body();
        return once(() => {
          const { instanceId } = instances.get(caller, params.instanceId);
          secrets.set(caller.accountId, instanceId, values);
          return { keys: [...values.keys()] };
        });
      },
    }),
    route({
      method: "GET",
      path: SECRETS,
      summary: "List the names of secrets",
      access: "read",
      bound: "page",
      query: pageQuery,
      answer: pageOf(SecretRecord),
      handle({ caller, params, query, startPage }) {
        const { instanceId } = instances.get(caller, params.instanceId);
        const start = startPage(`secrets ${instanceId}`, query());
        const rows = secrets.list(instanceId, start.position, start.limit + 1);
        return toPage(
          start,
          rows,
          (row) => row.key,
          (row) => ({ key: row.key, createdAt: isoTime(row.createdAt), updatedAt: isoTime(row.updatedAt) }),
        );
      },
    }),
    route({
      method: "DELETE",
      path: `${SECRETS}/:key`,
      summary: "Delete a secret",
      access: "write",
      bound: "record",
      answer: z.object({ key: z.string(), deleted: z.literal(true) }),
      handle: ({ caller, params, once }) =>
        once(() => {
          const { instanceId } = instances.get(caller, params.instanceId);
          secrets.remove(caller.accountId, instanceId, params.key);
          return { key: params.key, deleted: true };
        }),
    }),
  ];
}
