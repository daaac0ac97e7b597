import { z } from "zod";
import { idForm, moneyForm } from "../lib/forms.ts";
import { formatMoney } from "../lib/money.ts";
import { record } from "../lib/record.ts";
import { isOfTokens, type ModelLimitName } from "../limits/model-limits.ts";
import type { Totals } from "./queries.ts";

/** What models took, of one agent, instance, model or day (docs/contract/api.md, Usage of models). */
export const ModelUsageRecord = record("ModelUsage", () =>
  z.object({
    agentId: idForm("agt").optional(),
    instanceId: idForm("inst").optional(),
    model: z.string().optional(),
    day: z.iso.date().optional(),
    runs: z.int().describe("Runs that called a model"),
    modelCalls: z.int().describe("Tries that failed count too"),
    promptTokens: z.int(),
    cachedTokens: z.int().describe("How many of the prompts' tokens came from a cache"),
    completionTokens: z.int(),
    cost: moneyForm("0.001200").nullable().describe("null where no price is known"),
    currency: z.literal("USD"),
  }),
);

export const showTotals = ({ cost, ...totals }: Totals) => ({
  runs: totals.runs,
  modelCalls: totals.modelCalls,
  promptTokens: totals.promptTokens,
  cachedTokens: totals.cachedTokens,
  completionTokens: totals.completionTokens,
  cost: cost === null ? null : formatMoney(BigInt(cost)),
  currency: "USD" as const,
});

/** How far a limit is used: tokens, or amounts in USD. */
export function limitInAnswer(name: ModelLimitName, { used, limit }: { used: number; limit: number }) {
  const shown = (value: number) => (isOfTokens(name) ? value : formatMoney(BigInt(value)));
  return { used: shown(used), of: shown(limit) };
}
