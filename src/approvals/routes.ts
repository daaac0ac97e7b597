import { z } from "zod";
import { flag, spokenText } from "../http/fields.ts";
import { pageOf, pageQuery, toPage } from "../http/paging.ts";
import { type Asked, type Route, route } from "../http/route.ts";
import type { Instances } from "../instances/instances.ts";
import { AppError } from "../lib/app-error.ts";
import { idForm } from "../lib/forms.ts";
import type { Approvals, Decision } from "./approvals.ts";
import { ApprovalRecord, RuleRecord, showApproval, showRule } from "./record.ts";
import type { ApprovalRules } from "./rules.ts";
import { APPROVAL_STATUSES } from "./status.ts";

export interface ApprovalRouteParts {
  approvals: Approvals;
  rules: ApprovalRules;
  instances: Instances;
}

const DECISIONS = ["approve", "deny", "answer"] as const;
const HASH = "the approval's inputHash, 64 hexadecimal digits";
const ANSWERS = "1 to 3 answers";

const DecisionInput = z.lazy(() =>
  z.object({
    decision: z.enum(DECISIONS, { error: DECISIONS.join(", ") }),
    inputHash: z
      .string({ error: HASH })
      .regex(/^[0-9a-f]{64}$/, { error: HASH })
      .meta({ examples: ["0".repeat(64)] })
      .nullish()
      .describe("Of what is approved; needed to approve"),
    answers: z
      .array(spokenText(4_000), { error: ANSWERS })
      .min(1, { error: ANSWERS })
      .max(3, { error: ANSWERS })
      .nullish()
      .describe("One for each question; needed to answer"),
    note: spokenText(1_000).nullish().describe("Words for the agent"),
    remember: flag.nullish().describe("Do not ask again for such calls; only with approve"),
  }),
);

const RULES = "/v1/instances/:instanceId/approval-rules";

/** What waits for a person, and the rules that were remembered (docs/contract/api.md, Approvals). */
export function approvalRoutes({ approvals, rules, instances }: ApprovalRouteParts): Route[] {
  const own = ({ caller, params }: Asked<{ approvalId: string }>) => approvals.get(caller, params.approvalId);
  const instance = ({ caller, params }: Asked<{ instanceId: string }>) => instances.get(caller, params.instanceId);

  const oneApproval = route({
    method: "GET",
    path: "/v1/approvals/:approvalId",
    name: "getApproval",
    tag: "approvals",
    summary: "One approval",
    access: "read",
    bound: "record",
    answer: ApprovalRecord,
    find: own,
    handle: ({ found }) => showApproval(found),
  });

  return [
    route({
      method: "GET",
      path: "/v1/approvals",
      name: "listApprovals",
      tag: "approvals",
      summary: "What waits for a decision, and what was decided, newest first",
      access: "read",
      bound: "page",
      query: pageQuery.extend({
        status: z.enum(APPROVAL_STATUSES, { error: `one of ${APPROVAL_STATUSES.join(", ")}` }).optional(),
        instanceId: idForm("inst").optional().describe("Of this instance"),
      }),
      answer: pageOf(ApprovalRecord),
      errors: ["not_found"],
      handle({ caller, query, startPage }) {
        const { status = null, instanceId: asked, ...page } = query();
        if (asked !== undefined) instances.get(caller, asked);
        const instanceId = asked ?? caller.instanceId;
        const start = startPage(`approvals ${caller.accountId} ${instanceId ?? ""} ${status ?? ""}`, page);
        const rows = approvals.page(caller, { status, instanceId }, start.position, start.limit + 1);
        return toPage(start, rows, (row) => row.approvalId, showApproval);
      },
    }),
    oneApproval,
    route({
      method: "POST",
      path: "/v1/approvals/:approvalId/decision",
      name: "decideApproval",
      tag: "approvals",
      summary: "Approve, deny or answer; the run goes on",
      description:
        "To approve takes the `inputHash` of what was shown: exactly that is carried out, once. `answers` has one answer for each question.",
      access: "approve",
      bound: "record",
      body: DecisionInput,
      example: { decision: "approve", inputHash: "0".repeat(64) },
      answer: ApprovalRecord,
      errors: ["conflict"],
      reread: { by: oneApproval, id: "approvalId" },
      find: own,
      commit: "shared",
      async handle({ caller, found: { runId }, body, commit, causedRun }) {
        const decision = decisionOf(await body());
        causedRun(runId);
        return commit((found) => showApproval(approvals.decide(found, caller, decision)));
      },
    }),
    route({
      method: "GET",
      path: RULES,
      name: "listApprovalRules",
      tag: "approvals",
      summary: "What need not be asked again, oldest first",
      access: "read",
      bound: "page",
      query: pageQuery,
      answer: pageOf(RuleRecord),
      find: instance,
      handle({ found: { instanceId }, query, startPage }) {
        const start = startPage(`approval rules ${instanceId}`, query());
        const rows = rules.page(instanceId, start.position, start.limit + 1);
        return toPage(start, rows, (row) => row.ruleId, showRule);
      },
    }),
    route({
      method: "DELETE",
      path: `${RULES}/:ruleId`,
      name: "deleteApprovalRule",
      tag: "approvals",
      summary: "Ask again for such calls",
      access: "write",
      bound: "record",
      answer: z.object({ ruleId: idForm("rule"), deleted: z.literal(true) }),
      find: instance,
      commit: "shared",
      write({ found: { instanceId }, params: { ruleId } }) {
        rules.remove(instanceId, ruleId);
        return { ruleId, deleted: true };
      },
    }),
  ];
}

/** Throws `invalid_request` for fields that do not belong to the decision, or are missing. */
function decisionOf(input: z.output<typeof DecisionInput>): Decision {
  const { decision: kind, inputHash, answers, note = null, remember } = input;
  const refuse = (message: string) => new AppError("invalid_request", message);
  if (remember != null && kind !== "approve") throw refuse("remember: expected only with the decision approve");
  if (answers != null && kind !== "answer") throw refuse("answers: expected only with the decision answer");
  switch (kind) {
    case "approve":
      if (inputHash == null) throw refuse(`inputHash: expected ${HASH}`);
      return { kind, inputHash, note, remember: remember ?? false };
    case "deny":
      return { kind, note };
    case "answer":
      if (answers == null) throw refuse(`answers: expected ${ANSWERS}`);
      return { kind, answers, note };
  }
}
