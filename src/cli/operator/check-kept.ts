import { Database } from "bun:sqlite";
import { shorter } from "../../config/kept-settings.ts";
import type { Config } from "../../config.ts";
import { DAY_MS } from "../../lib/calendar.ts";
import { waitForOthers } from "../../storage/connection.ts";
import { SCHEMA_VERSION } from "../../storage/migrate.ts";
import { databaseOf, versionOf } from "./data-folder.ts";
import { type Finding, pass } from "./finding.ts";

/** How many rows there are of what grows by itself, and how long each is kept. It judges nothing. */
export function checkKept(config: Config): Finding {
  const path = databaseOf(config);
  const version = versionOf(path);
  if (version === null) return pass("unknown: the database cannot be read");
  if (version !== SCHEMA_VERSION) return pass("nothing to count yet");
  using sqlite = new Database(path, { readonly: true });
  waitForOthers(sqlite);
  const kinds: [counted: string, one: string, more: string, keptMs: number | null][] = [
    ["count(*) AS rows FROM messages", "message", "messages", config.keepMessages],
    ["count(*) AS rows FROM runs", "run", "runs", config.keepRuns],
    ["count(*) AS rows FROM events", "event", "events", shorter(config.keepEvents, config.keepMessages)],
    ["count(DISTINCT day) AS rows FROM usage_days", "day of usage", "days of usage", config.keepUsage],
    ["count(*) AS rows FROM audit", "row of the audit log", "rows of the audit log", config.keepAudit],
  ];
  const told = kinds.map(([counted, one, more, keptMs]) => {
    const rows = sqlite.query<{ rows: number }, []>(`SELECT ${counted}`).get()?.rows ?? 0;
    return `${rows.toLocaleString("en")} ${rows === 1 ? one : more} (${lifeOf(keptMs)})`;
  });
  return pass(told.join(", "));
}

function lifeOf(keptMs: number | null): string {
  if (keptMs === null) return "for ever";
  const days = keptMs / DAY_MS;
  return days === 1 ? "1 day" : `${Number(days.toFixed(1))} days`;
}
