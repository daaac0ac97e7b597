import { z } from "zod";
import { moneyForm } from "../lib/forms.ts";
import { formatMoney } from "../lib/money.ts";
import { record } from "../lib/record.ts";

/**
 * The most that models may take in a day or month (UTC), of an account, an instance or an agent; null for no limit. Costs
 * are in millionths of a US dollar.
 */
export interface ModelLimits {
  tokensPerDay: number | null;
  tokensPerMonth: number | null;
  costPerDay: number | null;
  costPerMonth: number | null;
}

const NO_MODEL_LIMITS: ModelLimits = {
  tokensPerDay: null,
  tokensPerMonth: null,
  costPerDay: null,
  costPerMonth: null,
};

export type ModelLimitName = keyof ModelLimits;
export const MODEL_LIMIT_NAMES = Object.keys(NO_MODEL_LIMITS) as ModelLimitName[];

/** Whether it is a limit of tokens; the others are of costs. */
export const isOfTokens = (name: string): boolean => name.startsWith("tokens");
export const isOfDay = (name: ModelLimitName): boolean => name.endsWith("Day");

/** What is given changes, and null takes a limit away; null for all of them takes all away. */
export type ModelLimitChange = { [Name in ModelLimitName]?: ModelLimits[Name] | undefined } | null;

/** The limits after a change, as they are stored: null where none is left. */
export function withModelLimits(before: ModelLimits | null, change: ModelLimitChange): ModelLimits | null {
  if (change === null) return null;
  const after = { ...NO_MODEL_LIMITS, ...before };
  for (const name of MODEL_LIMIT_NAMES) {
    const value = change[name];
    if (value !== undefined) after[name] = value;
  }
  return MODEL_LIMIT_NAMES.some((name) => after[name] !== null) ? after : null;
}

const limitForm = (what: string) => z.int().nullable().describe(`${what}; null without a limit`);
const costForm = (what: string) => moneyForm("2.500000").nullable().describe(`${what}, in USD; null without a limit`);

/** The limits as the API shows them. */
export const ModelLimitsRecord = record("ModelLimits", () =>
  z.object({
    tokensPerDay: limitForm("Tokens in a day (UTC)"),
    tokensPerMonth: limitForm("Tokens in a month (UTC)"),
    costPerDay: costForm("What a day (UTC) may cost"),
    costPerMonth: costForm("What a month (UTC) may cost"),
  }),
);

export function showModelLimits(limits: ModelLimits | null): z.output<typeof ModelLimitsRecord> {
  const { tokensPerDay, tokensPerMonth, costPerDay, costPerMonth } = limits ?? NO_MODEL_LIMITS;
  const money = (micros: number | null) => (micros === null ? null : formatMoney(BigInt(micros)));
  return { tokensPerDay, tokensPerMonth, costPerDay: money(costPerDay), costPerMonth: money(costPerMonth) };
}
