import { type AccountLimits, createAccountLimits } from "../../src/limits/account-limits.ts";
import { createQuotas, type Quotas } from "../../src/limits/quotas.ts";
import { LIMIT_NAMES } from "../../src/limits/schema.ts";
import type { Store } from "../../src/storage/store.ts";

/** Real quotas that no test reaches. */
export function ampleQuotas(store: Store): Quotas {
  const ample = Object.fromEntries(
    LIMIT_NAMES.map((name) => [name, Number.MAX_SAFE_INTEGER]),
  ) as unknown as AccountLimits;
  return createQuotas(store, createAccountLimits(store, ample));
}
