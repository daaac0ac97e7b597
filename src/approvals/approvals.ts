import { AppError, notFound } from "../lib/app-error.ts";
import { hashOfJson } from "../lib/canonical-json.ts";
import type { Clock } from "../lib/clock.ts";
import { isId } from "../lib/id.ts";
import type { Log } from "../lib/log.ts";
import type { Caller } from "../limits/caller.ts";
import type { WaitingCall } from "../runtime/hosted-run.ts";
import type { Audit } from "../storage/audit.ts";
import { expireAll } from "../storage/expiry.ts";
import type { Store } from "../storage/store.ts";
import { targetOf } from "../tools/target.ts";
import type { ToolResult } from "../tools/tool.ts";
import { type ApprovalFilter, approvalQueries } from "./queries.ts";
import { type ApprovalRecord, showApproval } from "./record.ts";
import type { ApprovalRules } from "./rules.ts";
import type { Approval, Question } from "./schema.ts";
import type { ApprovalStatus } from "./status.ts";

/** How long a person has to decide (docs/contract/api.md, Approvals). */
export const APPROVAL_LIFE_MS = 24 * 60 * 60 * 1000;
/** Open approvals of an account, and decided ones that are kept. */
export const MAX_OPEN = 1_000;
const MAX_KEPT = 1_000;

/** What a person decides; `note` is null where nothing was said with it. */
export type Decision = { note: string | null } & (
  | { kind: "approve"; inputHash: string; remember: boolean }
  | { kind: "deny" }
  | { kind: "answer"; answers: string[] }
);

/** A run that waits. */
export interface AskingRun {
  runId: string;
  agentId: string;
  instanceId: string;
  conversationId: string;
  firstEventId: number;
}

export interface ApprovalEvent {
  type: "approval.requested" | "approval.decided";
  runId: string;
  approval: ApprovalRecord;
}

export interface ApprovalParts {
  store: Store;
  clock: Clock;
  log: Log;
  audit: Pick<Audit, "append">;
  rules: ApprovalRules;
  accountOf(instanceId: string): string | undefined;
  /** Lets a run's call go ahead, or gives its result. False if it does not wait (any longer). */
  resume(runId: string, waitId: string, decision: ToolResult | "go ahead"): boolean;
  /** Adds to the agent's log, in the open transaction. */
  append(agentId: string, events: ApprovalEvent[], conversationId: string): void;
}

export interface Approvals {
  /** Throws `not_found`. */
  get(caller: Caller, approvalId: string): Approval;
  /** Newest first; what the caller may see of its account. */
  page(caller: Caller, filter: ApprovalFilter, before: string | null, limit: number): Approval[];
  /**
   * Decides, and lets the run go on: both are in the open transaction, so a decision that was acknowledged is carried out
   * whatever happens next. Throws `invalid_request` for a decision that does not fit its kind, `conflict` for another
   * hash, or for one that is not open.
   */
  decide(approval: Approval, caller: Caller, decision: Decision): Approval;
  /** Opens what these calls wait for, in the transaction in which the run parks. */
  request(run: AskingRun, calls: readonly WaitingCall[], isTainted: boolean): void;
  /** The run ends: nothing of it is to be decided any longer. Call it in a transaction, before its end is written. */
  cancelOf(runId: string): void;
  /** Whether one more may be open for the instance's account. */
  hasRoom(instanceId: string): boolean;
  /** The hash of the input that was approved, and what it was approved for; null for what was not. */
  approved(approvalId: string): { inputHash: string; basis: string | null } | null;
  /** Denies what nobody has decided in time. */
  expireDue(): Promise<void>;
  countOpen(): number;
}

export function createApprovals(parts: ApprovalParts): Approvals {
  const { store, clock, log, audit, rules, accountOf, resume, append } = parts;
  const queries = approvalQueries(store.db);

  type Outcome<Status> = Pick<Approval, "answers" | "note" | "decidedBy"> & { status: Status };
  const NOBODY = { answers: null, note: null, decidedBy: null };

  function close<Status extends ApprovalStatus>(approval: Approval, outcome: Outcome<Status>): Closed<Status> {
    const closed = { ...approval, ...outcome, decidedAt: clock.now() };
    const { status, answers, note, decidedBy, decidedAt } = closed;
    queries.close(approval.approvalId, { status, answers, note, decidedBy, decidedAt });
    append(
      approval.agentId,
      [{ type: "approval.decided", runId: approval.runId, approval: showApproval(closed) }],
      approval.conversationId,
    );
    return closed;
  }

  const mayBeSeen = ({ instanceId }: Caller, approval: Approval) =>
    instanceId === null || instanceId === approval.instanceId;

  const expireDue = () =>
    expireAll({
      store,
      due: (limit) => queries.due(clock.now(), limit),
      idOf: ({ approvalId }) => approvalId,
      expire(approval) {
        const expired = close(approval, { status: "expired", ...NOBODY });
        resume(approval.runId, approval.approvalId, toRun(expired));
      },
      failed: (err, { runId, approvalId }) =>
        log.error({ err, runId, approvalId }, "an approval could not be closed; it is tried again"),
    });

  return {
    get(caller, approvalId) {
      const approval = isId("appr", approvalId) ? queries.seen(caller.accountId, approvalId) : undefined;
      if (!approval || !mayBeSeen(caller, approval)) throw notFound("approval");
      return approval;
    },
    page: ({ accountId }, filter, before, limit) => queries.page(accountId, filter, before, limit),
    decide(approval, caller, decision) {
      requireFitting(approval, decision);
      const now = clock.now();
      // What its person is told is true at once. If it cannot be written, it is tried again, and told, with all others.
      if (isLate(approval, now)) {
        store.afterCommit(
          () => {},
          () => void expireDue().catch(() => {}),
        );
      }
      requireOpen(approval, now);
      if (decision.kind === "approve" && decision.inputHash !== approval.inputHash) {
        throw new AppError(
          "conflict",
          "inputHash: this is not the input that waits; read the approval, and approve with its inputHash",
        );
      }
      const { note } = decision;
      const decidedBy = caller.name;
      const closed =
        decision.kind === "answer"
          ? close(approval, { status: "answered", answers: decision.answers, note, decidedBy })
          : close(approval, {
              status: decision.kind === "approve" ? "approved" : "denied",
              answers: null,
              note,
              decidedBy,
            });
      const { approvalId, runId, tool, agentId } = approval;
      if (!resume(runId, approvalId, toRun(closed))) {
        throw new AppError("conflict", "the run does not wait for this any longer");
      }
      if (decision.kind === "approve" && decision.remember && !approval.tainted) {
        const target = targetOf(JSON.parse(approval.input));
        if (target !== null) rules.add(approval, tool, target);
      }
      const detail = { decision: closed.status, tool, agentId };
      audit.append({ actor: caller.accountId, action: "approval.decide", subject: approvalId, detail });
      return closed;
    },
    request(run, calls, isTainted) {
      const { runId, agentId, instanceId, conversationId, firstEventId } = run;
      const accountId = accountOf(instanceId);
      if (accountId === undefined) return;
      const createdAt = clock.now();
      for (const { call, input, basis, waitsFor } of calls) {
        if (waitsFor.kind !== "approval" && waitsFor.kind !== "answer") continue;
        const questions = waitsFor.kind === "answer" ? questionsOf(input) : null;
        const approval: Approval = {
          ...{ approvalId: waitsFor.id, accountId, instanceId, agentId, conversationId, runId, firstEventId },
          kind: questions === null ? "tool" : "question",
          status: "open",
          tool: call.name,
          input: JSON.stringify(input),
          inputHash: hashOfJson(input),
          basis,
          tainted: isTainted,
          questions,
          ...NOBODY,
          decidedAt: null,
          expiresAt: createdAt + APPROVAL_LIFE_MS,
          createdAt,
        };
        queries.insert(approval);
        append(agentId, [{ type: "approval.requested", runId, approval: showApproval(approval) }], conversationId);
      }
      queries.prune(accountId, MAX_KEPT);
    },
    cancelOf(runId) {
      for (const approval of queries.openOf(runId)) close(approval, { status: "cancelled", ...NOBODY });
    },
    hasRoom(instanceId) {
      const accountId = accountOf(instanceId);
      return accountId !== undefined && queries.countOpenOf(accountId, MAX_OPEN) < MAX_OPEN;
    },
    approved(approvalId) {
      const approval = queries.find(approvalId);
      return approval?.status === "approved" ? approval : null;
    },
    expireDue,
    countOpen: queries.countOpen,
  };
}

/** As `ask_user` has checked them. */
const questionsOf = (input: unknown): Question[] =>
  (input as { questions: Question[] }).questions.map(({ question, options }) => ({ question, options }));

/** Throws `invalid_request` for a decision that this kind of approval does not have. */
function requireFitting({ kind, questions }: Approval, decision: Decision): void {
  if (kind === "question" && decision.kind === "approve") {
    throw new AppError("invalid_request", "decision: expected answer or deny, for this is a question");
  }
  if (decision.kind !== "answer") return;
  if (questions === null) {
    throw new AppError("invalid_request", "decision: expected approve or deny, for this is a tool's call");
  }
  if (decision.answers.length !== questions.length) {
    throw new AppError("invalid_request", `answers: expected ${questions.length}, one for each question`);
  }
}

const isLate = ({ status, expiresAt }: Approval, now: number): boolean => status === "open" && now >= expiresAt;

function requireOpen(approval: Approval, now: number): void {
  const { status, decidedBy } = approval;
  if (status === "open" && !isLate(approval, now)) return;
  const what = status === "open" ? "expired" : status;
  const by = decidedBy === null ? "" : ` by ${decidedBy}`;
  throw new AppError("conflict", `this approval is not open any more: it was ${what}${by}`);
}

type Closed<Status extends ApprovalStatus> = Approval & { status: Status };
/** Its run goes on; one that was cancelled belongs to a run that has ended. */
type Decided = Closed<Exclude<ApprovalStatus, "open" | "cancelled">>;

/** What becomes of the call that waited. */
function toRun({ status, questions, answers, note, decidedBy }: Decided): ToolResult | "go ahead" {
  const said = note === null ? "" : ` ${decidedBy} says: ${note}`;
  switch (status) {
    case "approved":
      return "go ahead";
    case "answered": {
      const lines = (questions ?? []).map(({ question }, at) => `${question}\n${answers?.[at] ?? ""}`);
      return { output: lines.join("\n\n") + (said === "" ? "" : `\n\n${said.trim()}`), isError: false };
    }
    case "denied": {
      const what = questions === null ? "This call was denied" : "Your user does not want to answer";
      return { output: `${what}.${said} Do not try the same in another way.`, isError: true };
    }
    case "expired":
      return {
        output: "Nobody decided within 24 hours, which counts as a denial. Do not try the same in another way.",
        isError: true,
      };
  }
}
