import { isoTime, isoTimeOrNull } from "../../lib/clock.ts";
import type { AuditVerdict } from "../../storage/audit-verify.ts";
import type { AuditRow } from "../../storage/schema.ts";
import { Failure } from "../failure.ts";
import { colours, layOut, printJson, printTable, say, sayBeside, terminalColumns } from "../output.ts";
import { checkAuditLog, describeVerdict, findingOf } from "./check-audit.ts";
import { type DataOptions, withData } from "./data-folder.ts";

const PAGE = 1000;

/**
 * `roost audit`: who did what, oldest first. `--verify` checks instead that no row was changed or removed, and that the
 * log is the one that the host signed.
 */
export function showAudit(options: DataOptions & { json?: true; verify?: true }): Promise<void> {
  return withData(options, "refuse", ({ audit, store, config }) => {
    if (options.verify) {
      verify(checkAuditLog(store, config.dataDir), options.json);
      return;
    }
    const rows: AuditRow[] = [];
    for (let after = 0; ; after = rows.at(-1)?.auditId ?? after) {
      const page = audit.read(after, PAGE);
      rows.push(...page);
      if (page.length < PAGE) break;
    }
    if (options.json) printJson(rows.map(show));
    else print(rows);
  });
}

const HEADS = ["TIME", "ACTOR", "ACTION", "SUBJECT", "DETAIL"];
/** Where what belongs to an entry starts on a terminal that is too narrow for a table. */
const COLUMN = 4;

/** A table where it fits; else each entry on lines of its own, so that ids and details are whole. */
function print(rows: readonly AuditRow[]): void {
  const cells = rows.map((row) => [isoTime(row.createdAt), row.actor, row.action, row.subject, row.detail]);
  const columns = terminalColumns();
  if (columns === null || layOut(HEADS, cells, Number.POSITIVE_INFINITY).every((line) => line.length <= columns)) {
    printTable(HEADS, cells, "The audit log is empty.", {});
    return;
  }
  for (const { createdAt, actor, action, subject, detail } of rows) {
    const time = isoTime(createdAt).replace("T", " ").replace(/\.\d+/, "");
    const indent = " ".repeat(COLUMN);
    say(colours.dim(time), "  ", colours.bold(action));
    sayBeside([indent], COLUMN, subject);
    sayBeside([indent], COLUMN, [`by ${actor}`, ...wordsOf(detail)].join(", "), colours.dim);
  }
}

const wordsOf = (detail: string): string[] =>
  Object.entries(JSON.parse(detail) as object).map(
    ([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`,
  );

const show = ({ auditId, actor, action, subject, detail, createdAt, hash }: AuditRow) => ({
  auditId,
  actor,
  action,
  subject,
  detail: JSON.parse(detail) as unknown,
  createdAt: isoTime(createdAt),
  hash: hash.toString("hex"),
});

function verify(verdict: AuditVerdict, json: true | undefined): void {
  const { rows, checkpoints, sinceMs, brokenAt, finding } = verdict;
  if (json) printJson({ ok: finding === null, brokenAt, finding, rows, checkpoints, since: isoTimeOrNull(sinceMs) });
  const found = findingOf(verdict);
  if (found !== null) throw new Failure(found);
  if (!json) say(`The audit log is intact: ${describeVerdict(verdict)}.`);
}
