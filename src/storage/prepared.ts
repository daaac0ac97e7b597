import { Column, is, Param, Placeholder, SQL } from "drizzle-orm";
import type { Db } from "./store.ts";

type Values = Record<string, unknown>;

/** What Drizzle's builders give. */
interface Query<Row> {
  toSQL(): { sql: string; params: unknown[] };
  /** Tells what a row is. */
  prepare(): { get(): Row };
}

export interface Prepared<Row> {
  run(values?: Values): void;
  get(values?: Values): Row;
  all(values?: Values): Exclude<Row, undefined>[];
}

/**
 * A query that Drizzle has built, prepared at its first use and run without Drizzle, which takes as long to map
 * placeholders and rows one by one as SQLite takes for its work.
 */
export function prepared<Row>(db: Db, build: () => Query<Row>): Prepared<Row> {
  let made: Prepared<Row> | undefined;
  const use = () => {
    made ??= prepare(db, build());
    return made;
  };
  return { run: (values) => use().run(values), get: (values) => use().get(values), all: (values) => use().all(values) };
}

function prepare<Row>(db: Db, query: Query<Row>): Prepared<Row> {
  const { sql, params } = query.toSQL();
  const statement = db.$client.prepare(withParameters(sql, params));
  const parameters = params.flatMap((param) => readerOf(param) ?? []);
  const columns = columnsOf(query);
  const bind = (values: Values = {}) => parameters.map((read) => read(values)) as [];

  function toRow(cells: readonly unknown[]): Exclude<Row, undefined> {
    const row: Record<string, unknown> = {};
    for (let at = 0; at < columns.length; at++) {
      const { name, decode } = columns[at] as (typeof columns)[number];
      const cell = cells[at];
      row[name] = decode === null || cell === null ? cell : decode(cell);
    }
    return row as Exclude<Row, undefined>;
  }

  return {
    run: (values) => void statement.run(...bind(values)),
    get(values) {
      const [cells] = statement.values(...bind(values));
      return (cells && toRow(cells)) as Row;
    },
    all: (values) => statement.values(...bind(values)).map(toRow),
  };
}

/**
 * Writes constants into the statement, and `+?` for what changes: SQLite plans by the values of bare parameters where it
 * could matter (ORDER BY, LIMIT, partial indexes), and prepares such a statement again each time they are bound, which
 * takes ten times as long as most of them run.
 */
function withParameters(sql: string, params: readonly unknown[]): string {
  let next = 0;
  return sql.replace(/'(?:[^']|'')*'|"(?:[^"]|"")*"|\?/g, (token) => {
    if (token !== "?") return token;
    const param = params[next++];
    return readerOf(param) ? "+?" : literalOf(param);
  });
}

function literalOf(value: unknown): string {
  if (value === null) return "NULL";
  if (typeof value === "number" || typeof value === "bigint") return String(value);
  if (typeof value === "string") return `'${value.replaceAll("'", "''")}'`;
  throw new TypeError(`a query cannot contain ${typeof value} as a constant: use a placeholder`);
}

/** Where a parameter's value comes from; null for a constant. */
function readerOf(param: unknown): ((values: Values) => unknown) | null {
  if (is(param, Placeholder)) return (values) => given(values, param.name);
  if (is(param, Param) && is(param.value, Placeholder)) {
    const { name } = param.value;
    return (values) => param.encoder.mapToDriverValue(given(values, name));
  }
  return null;
}

function given(values: Values, name: string): unknown {
  const value = values[name];
  if (value === undefined) throw new TypeError(`the query needs a value for "${name}"`);
  return value;
}

interface ResultColumn {
  name: string;
  /** How its value is made of what SQLite holds; null where it is that. */
  decode: ((value: unknown) => unknown) | null;
}

function columnsOf<Row>(query: Query<Row>): ResultColumn[] {
  // Drizzle has no public way to what a query selects or returns, in order.
  const { config } = query as unknown as { config: { fields?: Record<string, unknown>; returning?: Returned[] } };
  const returned = config.returning?.map(({ path, field }) => [path.join("."), field] as const);
  return (returned ?? Object.entries(config.fields ?? {})).map(([name, field]) => ({ name, decode: decoderOf(field) }));
}

interface Returned {
  path: string[];
  field: unknown;
}

function decoderOf(field: unknown): ResultColumn["decode"] {
  const source = is(field, SQL.Aliased) ? field.sql : field;
  const decoder = is(source, Column) ? source : (source as unknown as { decoder: Column }).decoder;
  if (decoder.mapFromDriverValue === Column.prototype.mapFromDriverValue) return null;
  return (value) => decoder.mapFromDriverValue(value);
}
