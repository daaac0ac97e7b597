import { isoTime } from "../../lib/clock.ts";
import type { AuditRow } from "../../storage/audit.ts";
import { Failure } from "../failure.ts";
import { printJson, printTable, say } from "../output.ts";
import { type DataOptions, withData } from "./data-folder.ts";

const PAGE = 1000;

/** `roost audit`: who did what, oldest first; `--verify` checks instead that no row was changed or taken out. */
export function showAudit(options: DataOptions & { json?: true; verify?: true }): Promise<void> {
  return withData(options, "refuse", ({ audit }) => {
    if (options.verify) {
      verify(audit.findBreak(), options.json);
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

function verify(brokenAt: number | null, json: true | undefined): void {
  if (json) printJson({ ok: brokenAt === null, brokenAt });
  if (brokenAt !== null) {
    throw new Failure(`the audit log was changed: row ${brokenAt} does not follow from the one before it`);
  }
  if (!json) say("The audit log is whole.");
}
