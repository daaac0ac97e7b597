import { DAY_MS, dayOf } from "../../lib/calendar.ts";
import { roost } from "./api.ts";
import { attempt, figure, make, makeBar, part, reportErrors } from "./dom.ts";
import { type Owners, openLimits, readOwners } from "./limits.ts";
import { exact } from "./money.ts";
import type { ModelUsage } from "./records.ts";

const DAYS = 30;
/** Shown even if none of them has any call. */
const LEAST_DAYS = 7;

const bars = part("usage-days", HTMLUListElement);
const by = part("usage-by", HTMLSelectElement);
const table = part("usage-table", HTMLTableElement);
// It scrolls where the window is narrow.
part("usage-wide", HTMLElement).tabIndex = 0;
const more = part("more-usage", HTMLButtonElement);

/** The page about what models took. Returns a function that loads it anew, to call when it is shown. */
export function openUsage(): () => Promise<void> {
  let cursor: string | null = null;
  let names = new Map<string, string>();
  const showLimits = openLimits();
  let starts = 0;

  async function loadRows(): Promise<void> {
    const mine = starts;
    const asked = by.value as "agent" | "model" | "instance";
    const page = await roost.get("/v1/usage", { query: { by: asked, limit: 20, after: cursor ?? undefined } });
    // Meanwhile something else may have been asked for.
    if (mine !== starts) return;
    table.tBodies[0]?.append(...page.data.map((row) => rowOf(row, names)));
    cursor = page.nextCursor;
    more.hidden = cursor === null;
  }
  function start(): Promise<void> {
    starts++;
    cursor = null;
    table.tBodies[0]?.replaceChildren();
    return loadRows();
  }
  more.addEventListener("click", () => void attempt(more, loadRows));
  by.addEventListener("change", () => void reportErrors(more, start));
  return () =>
    reportErrors(more, async () => {
      const [days, owners] = await Promise.all([
        roost.get("/v1/usage", { query: { by: "day", limit: DAYS } }),
        readOwners(),
      ]);
      showDays(days.data);
      names = namesOf(owners);
      await Promise.all([start(), showLimits(owners)]);
    });
}

/** The names of what the account has now; what was deleted is shown by its id. */
function namesOf({ instances }: Owners): Map<string, string> {
  const names = new Map<string, string>();
  for (const { instance, agents } of instances) {
    names.set(instance.instanceId, instance.name);
    for (const { agentId, displayName } of agents) names.set(agentId, displayName);
  }
  return names;
}

const tokensOf = ({ promptTokens, completionTokens }: ModelUsage): number => promptTokens + completionTokens;

/** A bar for each day since the first call, also for those without any. */
function showDays(rows: readonly ModelUsage[]): void {
  const known = new Map(rows.map((row) => [row.day, row]));
  const most = Math.max(1, ...rows.map(tokensOf));
  part("usage-nothing", HTMLElement).hidden = rows.length > 0;
  bars.hidden = rows.length === 0;
  const all = Array.from({ length: DAYS }, (_, ago) => dayOf(Date.now() - ago * DAY_MS));
  const days = all.slice(0, Math.max(LEAST_DAYS, all.findLastIndex((day) => known.has(day)) + 1));
  bars.replaceChildren(
    ...days.map((day) => {
      const row = known.get(day);
      const tokens = row === undefined ? 0 : tokensOf(row);
      const bar = makeBar(`Tokens on ${day}`, tokens, most);
      return make("li", "", make("span", "soft", day), bar, make("span", "", figure(tokens)));
    }),
  );
}

function rowOf(row: ModelUsage, names: ReadonlyMap<string, string>): HTMLTableRowElement {
  const name = row.agentId ?? row.instanceId ?? row.model ?? "";
  const figures = [row.runs, row.modelCalls, row.promptTokens, row.completionTokens];
  const cells = [...figures.map(figure), row.cost === null ? "–" : exact(row.cost)];
  const heading = make("th", "", make("bdi", "", names.get(name) ?? name));
  heading.scope = "row";
  return make("tr", "", heading, ...cells.map((text) => make("td", "", text)));
}
