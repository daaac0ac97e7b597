import { z } from "zod";
import type { IdPrefix } from "./id.ts";

/** Forms of values that the API's answers and paths have, as /openapi.json tells them. They describe, and refuse nothing. */

const UUID = "0190f5e2c4a87b3d8e1f6a2b4c5d7e90";

/** An id that `newId` makes. */
export const idForm = (prefix: IdPrefix) =>
  z.string().meta({ pattern: `^${prefix}_[0-9a-f]{32}$`, examples: [`${prefix}_${UUID}`] });

/** What `formatMoney` makes of an amount that is never below zero. */
export const moneyForm = (example: string) => z.string().meta({ pattern: "^\\d+\\.\\d{6}$", examples: [example] });

/** The same of what was added or, with `-`, taken. */
export const changeForm = z.string().meta({ pattern: "^-?\\d+\\.\\d{6}$", examples: ["-0.030000"] });

export const currencyForm = z.literal("USDC");
