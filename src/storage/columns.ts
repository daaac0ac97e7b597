import { getTableColumns, type SQL, sql } from "drizzle-orm";
import { customType, type SQLiteTable } from "drizzle-orm/sqlite-core";

/** Micro-USDC: INTEGER in the database, `bigint` in code. Amounts stay below 2^53, up to which the driver is exact. */
export const micros = customType<{ data: bigint; driverData: number }>({
  dataType: () => "integer",
  toDriver: (value) => Number(value),
  fromDriver: (value) => BigInt(value),
});

/**
 * A placeholder of its name for each of these columns, for the values of a prepared INSERT or UPDATE. Drizzle takes
 * placeholders in both, but says so only for INSERT: hence the type.
 */
export const placeholdersOf = <Name extends string>(names: readonly Name[]): Record<Name, SQL> =>
  Object.fromEntries(names.map((name) => [name, sql.placeholder(name)])) as unknown as Record<Name, SQL>;

/** The same for all columns of a table: for whole rows. */
export const placeholdersOfRow = <Table extends SQLiteTable>(table: Table) =>
  placeholdersOf(Object.keys(getTableColumns(table)) as (keyof Table["$inferSelect"] & string)[]);
