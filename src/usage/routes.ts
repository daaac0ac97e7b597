import { z } from "zod";
import { day, daysOf } from "../http/days.ts";
import { pageOf, pageQuery, toPage } from "../http/paging.ts";
import { type Route, route } from "../http/route.ts";
import type { Clock } from "../lib/clock.ts";
import type { CallLog } from "./call-log.ts";
import type { Totals, UsageQueries } from "./queries.ts";
import { ModelUsageRecord, showTotals } from "./record.ts";

export interface ModelUsageRouteParts {
  clock: Clock;
  queries: UsageQueries;
  callLog: Pick<CallLog, "total">;
}

const BY = ["agent", "instance", "model", "day"] as const;
type By = (typeof BY)[number];
const FIELDS = { agent: "agentId", instance: "instanceId", model: "model", day: "day" } as const;

/** Names that may be looked at for a page: those without any call in the days asked for are left out. */
const MAX_LOOKED_AT = 1_000;
/** After every name and every day. */
const LAST = "\u{10ffff}";

/** What the account's models took (docs/contract/api.md, Usage of models). */
export function modelUsageRoutes({ clock, queries, callLog }: ModelUsageRouteParts): Route[] {
  interface Row extends Totals {
    name: string;
  }

  function read(accountId: string, by: By, from: string, to: string, after: string, limit: number) {
    if (by === "day") {
      const rows = queries.days(accountId, from, to, after, limit).map((row): Row => ({ ...row, name: row.day }));
      return { rows, lastSeen: null };
    }
    const rows: Row[] = [];
    let name: string | null = after;
    for (let seen = 0; rows.length < limit; seen++) {
      if (seen === MAX_LOOKED_AT) return { rows, lastSeen: name };
      name = queries.nameBefore(accountId, by, name);
      if (name === null) break;
      const totals = queries.sumOf(accountId, by, name, from, to);
      if (totals !== null) rows.push({ ...totals, name });
    }
    return { rows, lastSeen: null };
  }

  return [
    route({
      method: "GET",
      path: "/v1/usage",
      name: "listModelUsage",
      tag: "billing",
      summary: "What models took: by agent, instance, model or day",
      description:
        "Newest first, models in the reverse order of their names. Days are UTC, `from` and `to` inclusive, by default the last 30.",
      access: "account-read",
      bound: "page",
      query: pageQuery.extend({
        by: z.enum(BY, { error: "agent, instance, model or day" }),
        from: day,
        to: day,
      }),
      answer: pageOf(ModelUsageRecord),
      async handle({ caller: { accountId }, query, startPage }) {
        const { by, from, to, ...page } = query();
        const days = daysOf(from, to, clock.now());
        const start = startPage(`model usage ${accountId} ${by} ${from} ${to}`, page);
        await callLog.total();
        const { rows, lastSeen } = read(accountId, by, days.from, days.to, start.position ?? LAST, start.limit + 1);
        const shown = toPage(
          start,
          rows,
          ({ name }) => name,
          ({ name, ...totals }) => ({ [FIELDS[by]]: name, ...showTotals(totals) }),
        );
        // A page may be cut short, or even be empty, because so many names have no call in these days.
        return lastSeen === null ? shown : { ...shown, hasMore: true, nextCursor: start.cursorBehind(lastSeen) };
      },
    }),
  ];
}
