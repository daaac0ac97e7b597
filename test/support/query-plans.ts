import { Database } from "bun:sqlite";
import type { Store } from "../../src/storage/store.ts";

/** The plans of all statements that `work` runs. */
export function plansOf(store: Store, work: () => void): string[] {
  const plans: string[] = [];
  const { prepare, query } = Database.prototype;
  const real = store.sqlite;
  const explain = (sql: string) => {
    const explained = prepare.call(real, `EXPLAIN QUERY PLAN ${sql}`, []);
    const holes = Array.from({ length: explained.paramsCount }, () => null);
    plans.push(...explained.all(...holes).map((row) => (row as { detail: string }).detail));
    // An open statement would keep transactions from ending.
    explained.finalize();
  };
  const spied = (sql: string) => {
    explain(sql);
    return prepare.call(real, sql);
  };
  const noted = (sql: string) => {
    explain(sql);
    return query.call(real, sql);
  };
  real.prepare = spied as typeof real.prepare;
  real.query = noted as typeof real.query;
  try {
    work();
  } finally {
    Reflect.deleteProperty(real, "prepare");
    Reflect.deleteProperty(real, "query");
  }
  return plans;
}
