import { Database } from "bun:sqlite";
import type { Store } from "../../src/storage/store.ts";

/** The plans of all statements that `work` runs. */
export function plansOf(store: Store, work: () => void): string[] {
  const plans: string[] = [];
  const { prepare } = Database.prototype;
  const real = store.sqlite;
  const spied = (sql: string) => {
    const explained = prepare.call(real, `EXPLAIN QUERY PLAN ${sql}`, []);
    const holes = (sql.match(/\?/g) ?? []).map(() => null);
    plans.push(...explained.all(...holes).map((row) => (row as { detail: string }).detail));
    return prepare.call(real, sql);
  };
  real.prepare = spied as typeof real.prepare;
  try {
    work();
  } finally {
    Reflect.deleteProperty(real, "prepare");
  }
  return plans;
}
