import { customType } from "drizzle-orm/sqlite-core";

/** Micro-USDC: INTEGER in the database, `bigint` in code. Amounts stay below 2^53, up to which the driver is exact. */
export const micros = customType<{ data: bigint; driverData: number }>({
  dataType: () => "integer",
  toDriver: (value) => Number(value),
  fromDriver: (value) => BigInt(value),
});
