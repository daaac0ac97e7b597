import { z } from "zod";
import { isoTime, isoTimeOrNull } from "../lib/clock.ts";
import { idForm } from "../lib/forms.ts";
import { record } from "../lib/record.ts";
import type { Approval, ApprovalRule } from "./schema.ts";
import { APPROVAL_STATUSES } from "./status.ts";

/** An approval as the API shows it (docs/contract/api.md, Approvals). */
export const ApprovalRecord = record("Approval", () =>
  z.object({
    approvalId: idForm("appr"),
    kind: z.enum(["tool", "question"]),
    status: z.enum(APPROVAL_STATUSES),
    instanceId: idForm("inst"),
    agentId: idForm("agt"),
    runId: idForm("run"),
    conversationId: idForm("conv"),
    tool: z.string(),
    input: z.unknown().describe("The whole input, exactly as it would be executed"),
    inputHash: z
      .string()
      .meta({ pattern: "^[0-9a-f]{64}$", examples: ["0".repeat(64)] })
      .describe("SHA-256 of the input's canonical JSON (RFC 8785)"),
    tainted: z.boolean().describe("Whether the agent has read what a stranger may have written"),
    questions: z.array(z.object({ question: z.string(), options: z.array(z.string()) })).nullable(),
    answers: z.array(z.string()).nullable(),
    note: z.string().nullable(),
    decidedBy: z.string().nullable(),
    decidedAt: z.iso.datetime().nullable(),
    expiresAt: z.iso.datetime(),
    createdAt: z.iso.datetime(),
  }),
);
export type ApprovalRecord = z.output<typeof ApprovalRecord>;

/** What an approval that was to be remembered allows (docs/contract/api.md, Approvals). */
export const RuleRecord = record("ApprovalRule", () =>
  z.object({
    ruleId: idForm("rule"),
    agentId: idForm("agt"),
    tool: z.string(),
    host: z.string().nullable().describe("With its port"),
    method: z.string().nullable(),
    createdAt: z.iso.datetime(),
  }),
);

export const showApproval = (row: Approval): ApprovalRecord => ({
  approvalId: row.approvalId,
  kind: row.kind,
  status: row.status,
  instanceId: row.instanceId,
  agentId: row.agentId,
  runId: row.runId,
  conversationId: row.conversationId,
  tool: row.tool,
  input: JSON.parse(row.input),
  inputHash: row.inputHash,
  tainted: row.tainted,
  questions: row.questions,
  answers: row.answers,
  note: row.note,
  decidedBy: row.decidedBy,
  decidedAt: isoTimeOrNull(row.decidedAt),
  expiresAt: isoTime(row.expiresAt),
  createdAt: isoTime(row.createdAt),
});

export const showRule = ({ instanceId: _, createdAt, ...rule }: ApprovalRule): z.output<typeof RuleRecord> => ({
  ...rule,
  createdAt: isoTime(createdAt),
});
