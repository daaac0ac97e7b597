import { and, asc, count, eq, gt, sql } from "drizzle-orm";
import { notFound } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import { isId, newId } from "../lib/id.ts";
import { prepared } from "../storage/prepared.ts";
import type { Db } from "../storage/store.ts";
import type { Target } from "../tools/target.ts";
import { type ApprovalRule, approvalRules } from "./schema.ts";

/** Rules of an instance; beyond it nothing more is remembered. */
const MAX_RULES = 1_000;

/** What the owner wants not to be asked again: narrow by agent, tool, host with port, and method. */
export interface ApprovalRules {
  /** Whether a rule covers such a call. */
  cover(agentId: string, tool: string, target: Target): boolean;
  /** Adds a rule, unless it exists or there are too many. Call it in a transaction. */
  add(whose: Pick<ApprovalRule, "instanceId" | "agentId">, tool: string, target: Target): void;
  /** Oldest first. */
  page(instanceId: string, after: string | null, limit: number): ApprovalRule[];
  /** Throws `not_found`. */
  remove(instanceId: string, ruleId: string): void;
  /** Removes those of the instance for tools whose names begin so. Call it in a transaction. */
  forget(instanceId: string, prefix: string): void;
}

export function createApprovalRules(db: Db, clock: Clock): ApprovalRules {
  const p = sql.placeholder;
  const covering = prepared(db, () =>
    db
      .select({ ruleId: approvalRules.ruleId })
      .from(approvalRules)
      .where(
        and(
          eq(approvalRules.agentId, p("agentId")),
          eq(approvalRules.tool, p("tool")),
          sql`coalesce(${approvalRules.host}, '') = ${p("host")}`,
          sql`coalesce(${approvalRules.method}, '') = ${p("method")}`,
        ),
      ),
  );
  const cover: ApprovalRules["cover"] = (agentId, tool, { host, method }) =>
    covering.get({ agentId, tool, host: host ?? "", method: method ?? "" }) !== undefined;
  const ofInstance = (instanceId: string) => eq(approvalRules.instanceId, instanceId);

  const countOf = (instanceId: string): number =>
    db.select({ rules: count() }).from(approvalRules).where(ofInstance(instanceId)).get()?.rules ?? 0;

  return {
    cover,
    add({ instanceId, agentId }, tool, target) {
      if (cover(agentId, tool, target) || countOf(instanceId) >= MAX_RULES) return;
      const row = { ruleId: newId("rule"), instanceId, agentId, tool, ...target, createdAt: clock.now() };
      db.insert(approvalRules).values(row).run();
    },
    page: (instanceId, after, limit) =>
      db
        .select()
        .from(approvalRules)
        .where(and(ofInstance(instanceId), after === null ? undefined : gt(approvalRules.ruleId, after)))
        .orderBy(asc(approvalRules.ruleId))
        .limit(limit)
        .all(),
    remove(instanceId, ruleId) {
      const gone = isId("rule", ruleId)
        ? db
            .delete(approvalRules)
            .where(and(ofInstance(instanceId), eq(approvalRules.ruleId, ruleId)))
            .returning()
            .get()
        : undefined;
      if (!gone) throw notFound("approval rule");
    },
    forget: (instanceId, prefix) =>
      void db
        .delete(approvalRules)
        .where(and(ofInstance(instanceId), sql`substr(${approvalRules.tool}, 1, ${prefix.length}) = ${prefix}`))
        .run(),
  };
}
