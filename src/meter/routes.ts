import { z } from "zod";
import { day, daysOf } from "../http/days.ts";
import { pageOf, pageQuery, toPage } from "../http/paging.ts";
import { queryOf } from "../http/request.ts";
import { type Route, route } from "../http/route.ts";
import { AppError, notFound } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import { currencyForm, idForm, moneyForm } from "../lib/forms.ts";
import { isId } from "../lib/id.ts";
import { CURRENCY, formatMoney } from "../lib/money.ts";
import { record } from "../lib/record.ts";
import type { Db } from "../storage/store.ts";
import type { Meter } from "./meter.ts";
import type { DayUsage } from "./queries.ts";
import { hasOwned, readUsage, readUsageOf } from "./usage.ts";

const UsageRecord = record("Usage", () =>
  z.object({
    instanceId: idForm("inst"),
    day: z.iso.date(),
    seconds: z.int(),
    cost: moneyForm("0.720000"),
    currency: currencyForm,
  }),
);

export interface UsageRouteParts {
  db: Db;
  clock: Clock;
  meter: Pick<Meter, "unread">;
}

export function usageRoutes({ db, clock, meter }: UsageRouteParts): Route[] {
  /** The row and what the meter has not yet added to it. */
  function showUsage(row: DayUsage): z.infer<typeof UsageRecord> {
    const unread = meter.unread(row.instanceId);
    const more = unread?.day === row.day ? unread : { runningNs: 0n, cost: 0n };
    return {
      instanceId: row.instanceId,
      day: row.day,
      seconds: Number((row.runningNs + more.runningNs) / 1_000_000_000n),
      cost: formatMoney(row.cost + more.cost),
      currency: CURRENCY,
    };
  }

  return [
    route({
      method: "GET",
      path: "/v1/billing/usage",
      name: "listUsage",
      tag: "billing",
      summary: "What each instance ran and cost on each day, newest day first",
      access: "account-read",
      bound: "page",
      query: pageQuery.extend({ from: day, to: day, instanceId: idForm("inst").optional() }),
      answer: pageOf(UsageRecord),
      errors: ["not_found"],
      find({ caller: { accountId }, request }) {
        const { instanceId } = queryOf(request);
        const isOwn = instanceId === undefined || (isId("inst", instanceId) && hasOwned(db, accountId, instanceId));
        if (!isOwn) throw notFound("instance");
        return { instanceId };
      },
      handle({ caller: { accountId }, found: { instanceId }, query, startPage }) {
        const { from, to, ...page } = query();
        const days = daysOf(from, to, clock.now());
        const start = startPage(`usage ${accountId} ${instanceId} ${from} ${to}`, page);
        const after = start.position === null ? null : usageCursor(start.position);
        const limit = start.limit + 1;
        const rows =
          instanceId === undefined
            ? readUsage(db, accountId, days, after, limit)
            : readUsageOf(db, accountId, instanceId, days, after, limit);
        return toPage(start, rows, (row) => `${row.day} ${row.instanceId}`, showUsage);
      },
    }),
  ];
}

const noCursor = (): AppError => new AppError("invalid_request", "after: expected a nextCursor of this list");

function usageCursor(position: string): { day: string; instanceId: string } {
  const [day, instanceId] = position.split(" ");
  if (day === undefined || instanceId === undefined) throw noCursor();
  return { day, instanceId };
}
