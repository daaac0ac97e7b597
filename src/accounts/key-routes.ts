import { z } from "zod";
import { time, trimmedText } from "../http/fields.ts";
import { pageOf, pageQuery, toPage } from "../http/paging.ts";
import { type Route, route } from "../http/route.ts";
import { idForm } from "../lib/forms.ts";
import { authorize, type Caller, SCOPES, USUAL_SCOPES } from "../limits/caller.ts";
import type { Keys } from "./keys.ts";
import { KeyRecord, showKey } from "./record.ts";

export interface KeyRouteParts {
  keys: Keys;
  /** Throws `not_found` for an instance that is not the caller's. */
  requireInstance(caller: Caller, instanceId: string): void;
}

const SCOPE_LIST = `a list of at least one of ${SCOPES.join(", ")}`;

export function keyRoutes({ keys, requireInstance }: KeyRouteParts): Route[] {
  return [
    route({
      method: "POST",
      path: "/v1/auth/keys",
      name: "createKey",
      tag: "auth",
      summary: "Create an API key; it is shown only once",
      description:
        "A key limited to an instance sees nothing else of the account. `approve` is for keys that decide about what agents ask; it is not among the scopes that a key has by default, and only a caller who has it can give it.",
      access: "keys",
      bound: "record",
      body: z.object({
        name: trimmedText(1, 100).nullish(),
        scopes: z
          .array(z.enum(SCOPES, { error: SCOPE_LIST }), { error: SCOPE_LIST })
          .min(1, { error: SCOPE_LIST })
          .max(10, { error: SCOPE_LIST })
          .optional(),
        instanceId: z
          .string({ error: "an instance's id" })
          .meta(idForm("inst").meta() ?? {})
          .nullish(),
        expiresAt: time.meta({ description: "A time in the future", examples: ["2030-01-01T00:00:00Z"] }).nullish(),
      }),
      example: { name: "laptop", scopes: ["read", "write", "chat"] },
      status: 201,
      // Absent from a replayed answer: the key itself is stored nowhere.
      answer: z.lazy(() => KeyRecord.unwrap().extend({ key: z.string().optional() })),
      errors: ["not_found", "conflict"],
      kept: (result: { key?: string }) => ({ ...result, key: undefined }),
      commit: "shared",
      write({ caller, body: { name = null, scopes = USUAL_SCOPES, instanceId = null, expiresAt = null } }) {
        if (instanceId !== null) requireInstance(caller, instanceId);
        // Nobody gives away what they do not have.
        if (scopes.includes("approve")) authorize(caller, "approve");
        const { key, record } = keys.create(caller.accountId, {
          name,
          scopes,
          instanceId,
          expiresAt: expiresAt === null ? null : Date.parse(expiresAt),
        });
        return { ...showKey(record), key };
      },
    }),
    route({
      method: "GET",
      path: "/v1/auth/keys",
      name: "listKeys",
      tag: "auth",
      summary: "List API keys, newest first",
      access: "keys",
      bound: "page",
      query: pageQuery,
      answer: pageOf(KeyRecord),
      handle({ caller, query, startPage }) {
        const start = startPage(`keys ${caller.accountId}`, query());
        const rows = keys.list(caller.accountId, start.position, start.limit + 1);
        return toPage(start, rows, (row) => row.keyId, showKey);
      },
    }),
    route({
      method: "DELETE",
      path: "/v1/auth/keys/:keyId",
      name: "deleteKey",
      tag: "auth",
      summary: "Revoke an API key",
      access: "keys",
      bound: "record",
      answer: z.object({ keyId: idForm("key"), deleted: z.literal(true) }),
      commit: "alone",
      write({ caller, params }) {
        keys.revoke(caller.accountId, params.keyId);
        return { keyId: params.keyId, deleted: true };
      },
    }),
  ];
}
