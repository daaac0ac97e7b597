import { z } from "zod";
import { pageOf, pageQuery, toPage } from "../http/paging.ts";
import { type Asked, type Route, route } from "../http/route.ts";
import type { Instances } from "../instances/instances.ts";
import { isoTime } from "../lib/clock.ts";
import { record } from "../lib/record.ts";
import { SecretsInput } from "./input.ts";
import type { Secrets } from "./secrets.ts";

const SECRETS = "/v1/instances/:instanceId/secrets";
const SecretRecord = record("Secret", () =>
  z.object({ key: z.string(), createdAt: z.iso.datetime(), updatedAt: z.iso.datetime() }),
);

export function secretRoutes(secrets: Secrets, instances: Instances): Route[] {
  const instance = ({ caller, params }: Asked<{ instanceId: string }>) => instances.get(caller, params.instanceId);

  return [
    route({
      method: "POST",
      path: SECRETS,
      name: "createInstanceSecret",
      tag: "secrets",
      summary: "Store secrets, all or none; no endpoint ever returns a value",
      description: "One as `key` and `value`, or several as `secrets`.",
      access: "write",
      bound: "record",
      body: SecretsInput,
      example: { key: "GITHUB_TOKEN", value: "a-secret-of-that-service" },
      status: 201,
      answer: z.object({ keys: z.array(z.string()) }),
      find: instance,
      commit: "shared",
      write({ found, body }) {
        secrets.set(found.accountId, found.instanceId, body);
        return { keys: [...body.keys()] };
      },
    }),
    route({
      method: "GET",
      path: SECRETS,
      name: "listInstanceSecrets",
      tag: "secrets",
      summary: "List the names of secrets",
      access: "read",
      bound: "page",
      query: pageQuery,
      answer: pageOf(SecretRecord),
      find: instance,
      handle({ found: { instanceId }, query, startPage }) {
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
      name: "deleteInstanceSecret",
      tag: "secrets",
      summary: "Delete a secret",
      access: "write",
      bound: "record",
      answer: z.object({ key: z.string(), deleted: z.literal(true) }),
      find: instance,
      commit: "shared",
      write({ found, params }) {
        secrets.remove(found.accountId, found.instanceId, params.key);
        return { key: params.key, deleted: true };
      },
    }),
  ];
}
