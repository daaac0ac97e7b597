import { z } from "zod";
import type { IdPrefix } from "./id.ts";

/** The formats of values in the API's answers and paths, as /openapi.json documents them. They validate nothing. */

const UUID = "0190f5e2c4a87b3d8e1f6a2b4c5d7e90";

/** An id that `newId` makes. */
export const idForm = (prefix: IdPrefix) =>
  z.string().meta({ pattern: `^${prefix}_[0-9a-f]{32}$`, examples: [`${prefix}_${UUID}`] });

/** An amount that is never negative, as `formatMoney` writes it. */
export const moneyForm = (example: string) => z.string().meta({ pattern: "^\\d+\\.\\d{6}$", examples: [example] });

/** A signed amount. */
export const changeForm = z.string().meta({ pattern: "^-?\\d+\\.\\d{6}$", examples: ["-0.030000"] });

export const currencyForm = z.literal("USDC");
