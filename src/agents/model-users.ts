import { and, count, eq, isNull } from "drizzle-orm";
import { instances } from "../instances/schema.ts";
import type { Db } from "../storage/store.ts";
import { agents } from "./schema.ts";

/** How many agents name each model, as one of several too. Those that name none use the host's, and are under null. */
export function countModelUsers(db: Db): Map<string | null, number> {
  const rows = db
    .select({ model: agents.model, users: count() })
    .from(agents)
    .innerJoin(instances, eq(instances.instanceId, agents.instanceId))
    .where(and(isNull(agents.removedAt), isNull(instances.removedAt)))
    .groupBy(agents.model)
    .all();
  const all = new Map<string | null, number>();
  for (const { model, users } of rows) {
    for (const name of new Set([model].flat())) all.set(name, (all.get(name) ?? 0) + users);
  }
  return all;
}
