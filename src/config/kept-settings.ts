import { DAY_MS } from "../lib/calendar.ts";
import { parseDuration } from "../lib/duration.ts";
import type { Setting } from "./forms.ts";

/** Milliseconds; null for ever. */
const life = (name: string, fallback: string, meaning: string, leastDays = 1): Setting<number | null> => ({
  name,
  meaning,
  fallback,
  expects: `forever, or a number with h or d, such as 90d, from ${leastDays}d to 3650d`,
  read(value) {
    if (value === "forever") return null;
    const ms = parseDuration(value);
    return ms !== null && ms >= leastDays * DAY_MS ? ms : undefined;
  },
});

/** How long things are kept (docs/contract/operations.md, What is kept). */
export const kept = {
  keepMessages: life("ROOST_KEEP_MESSAGES", "forever", "how long messages are kept, and all else that has their text"),
  keepRuns: life("ROOST_KEEP_RUNS", "365d", "how long the records of runs that are over are kept"),
  keepEvents: life("ROOST_KEEP_EVENTS", "7d", "how long events are kept, of which an agent has 16 MiB at most"),
  // The month's spending is summed from its days.
  keepUsage: life("ROOST_KEEP_USAGE", "730d", "how long usage is kept by day; the ledger is always kept", 62),
  keepKeys: life("ROOST_KEEP_KEYS", "30d", "how long API keys stay in the list once they have expired"),
  keepAudit: life("ROOST_KEEP_AUDIT", "400d", "how long rows of the audit log are kept, a million at most"),
};

/** What has a message's text lives no longer than messages do; null is for ever. */
export const shorter = (one: number | null, other: number | null): number | null =>
  one === null ? other : other === null ? one : Math.min(one, other);
