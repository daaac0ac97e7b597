import type { Statement } from "bun:sqlite";
import { Column, is, Param, Placeholder, SQL } from "drizzle-orm";
import type { PreparedQuery } from "drizzle-orm/bun-sqlite";

type Values = Record<string, unknown>;
type Mapping = (value: unknown) => unknown;

/** What Drizzle's builders give. */
interface Query<Row> {
  prepare(): { get(): Row; run(): unknown };
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
export function prepared<Row>(build: () => Query<Row>): Prepared<Row> {
  let made: Prepared<Row> | undefined;
  const use = () => {
    made ??= prepare<Row>(build().prepare() as PreparedQuery);
    return made;
  };
  return { run: (values) => use().run(values), get: (values) => use().get(values), all: (values) => use().all(values) };
}

function prepare<Row>(query: PreparedQuery): Prepared<Row> {
  // Drizzle has no public way to what it has prepared.
  const { stmt, fields } = query as unknown as { stmt: Statement<Row>; fields?: { path: string[]; field: unknown }[] };
  const parameters = query.getQuery().params.map(readerOf);
  const columns = (fields ?? []).map(({ path, field }) => ({ name: path.join("."), decode: decoderOf(field) }));
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
    run: (values) => void stmt.run(...bind(values)),
    get(values) {
      const [cells] = stmt.values(...bind(values));
      return (cells && toRow(cells)) as Row;
    },
    all: (values) => stmt.values(...bind(values)).map(toRow),
  };
}

/** Where a parameter's value comes from: the call's values, or the query itself. */
function readerOf(parameter: unknown): (values: Values) => unknown {
  if (is(parameter, Placeholder)) return (values) => given(values, parameter.name);
  if (is(parameter, Param) && is(parameter.value, Placeholder)) {
    const { name } = parameter.value;
    return (values) => parameter.encoder.mapToDriverValue(given(values, name));
  }
  return () => parameter;
}

function given(values: Values, name: string): unknown {
  const value = values[name];
  if (value === undefined) throw new TypeError(`the query needs a value for "${name}"`);
  return value;
}

/** How a column's value is made of what SQLite holds; null where it is that. */
function decoderOf(field: unknown): Mapping | null {
  const source = is(field, SQL.Aliased) ? field.sql : field;
  const decoder = is(source, Column) ? source : (source as { decoder: { mapFromDriverValue: Mapping } }).decoder;
  if (decoder.mapFromDriverValue === Column.prototype.mapFromDriverValue) return null;
  return (value) => decoder.mapFromDriverValue(value);
}
