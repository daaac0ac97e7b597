import { isoTime, isoTimeOrNull } from "../../lib/clock.ts";
import type { AuditVerdict } from "../../storage/audit-verify.ts";
import type { AuditRow } from "../../storage/schema.ts";
import { Failure } from "../failure.ts";
import { printJson, printTable, say } from "../output.ts";
import { checkAuditLog, describeVerdict } from "./check-audit.ts";
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
    else
      printTable(
        ["TIME", "ACTOR", "ACTION", "SUBJECT", "DETAIL"],
        rows.map((row) => [isoTime(row.createdAt), row.actor, row.action, row.subject, row.detail]),
        "The audit log is empty.",
        { shorten: ["ACTOR", "ACTION", "SUBJECT", "DETAIL"] },
      );
  });
}

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
  if (finding !== null) throw new Failure(`the audit log was changed: ${finding}`);
  if (!json) say(`The audit log is intact: ${describeVerdict(verdict)}.`);
}
