import { z } from "zod";
import { isoTime, isoTimeOrNull } from "../lib/clock.ts";
import { currencyForm, idForm, moneyForm } from "../lib/forms.ts";
import { record } from "../lib/record.ts";
import { SCOPES } from "../limits/caller.ts";
import { ModelLimitsRecord } from "../limits/model-limits.ts";
import type { ApiKey } from "./schema.ts";

export const AccountRecord = record("Account", () =>
  z.object({
    accountId: idForm("acct"),
    email: z.string(),
    name: z.string(),
    createdAt: z.iso.datetime(),
    balance: moneyForm("9.970000"),
    currency: currencyForm,
    limits: z.object({
      monthlyLimit: moneyForm("25.000000").nullable(),
      spentThisMonth: moneyForm("0.030000"),
      tokensPerDay: z.int().nullable().describe("What the operator allows of the host's models; null without a limit"),
      tokensPerMonth: z.int().nullable().describe("The same for a month"),
    }),
    modelLimits: ModelLimitsRecord,
  }),
);

export const SignedIn = z.object({
  token: z.string(),
  tokenType: z.literal("Bearer"),
  expiresAt: z.iso.datetime(),
  account: AccountRecord,
});

export const KeyRecord = record("Key", () =>
  z.object({
    keyId: idForm("key"),
    name: z.string().nullable(),
    prefix: z.string(),
    scopes: z.array(z.enum(SCOPES)),
    instanceId: idForm("inst").nullable(),
    createdAt: z.iso.datetime(),
    expiresAt: z.iso.datetime().nullable(),
    lastUsedAt: z.iso.datetime().nullable(),
  }),
);

export const showKey = (key: ApiKey) => ({
  keyId: key.keyId,
  name: key.name,
  prefix: key.prefix,
  scopes: key.scopes.split(" "),
  instanceId: key.instanceId,
  createdAt: isoTime(key.createdAt),
  expiresAt: isoTimeOrNull(key.expiresAt),
  lastUsedAt: isoTimeOrNull(key.lastUsedAt),
});
