import type { ApprovalStatus } from "../../approvals/status.ts";
import { visibleJson, visibleText } from "../../lib/visible-text.ts";
import { colours, note as noteLine, printFields, printJson, printTable, say, shortTime } from "../output.ts";
import { shellWord } from "../shell-word.ts";
import type { Client, Records } from "./client.ts";
import { openClient, type ServerOptions } from "./credentials.ts";
import { confirm } from "./prompt.ts";

interface Options extends ServerOptions {
  json?: true;
}

interface DecisionOptions extends Options {
  note?: string;
}

const APPROVAL = "/v1/approvals/{approvalId}";
type ApprovalRecord = Records["Approval"];

/** `roost approval list`: the open ones, newest first. */
export async function listApprovals({ status, ...options }: Options & { status: ApprovalStatus }): Promise<void> {
  const client = openClient(options);
  const approvals = await Array.fromAsync(client.all("/v1/approvals", { query: { status } }));
  if (options.json) {
    printJson(approvals);
    return;
  }
  printTable(
    ["ASKED", "FOR", "WHAT", "AGENT", "ID"],
    approvals.map((approval) => [
      shortTime(approval.createdAt),
      approval.tool,
      summaryOf(approval),
      approval.agentId,
      approval.approvalId,
    ]),
    `There are no ${status} approvals.`,
    { leaveOut: ["AGENT", "ASKED"], shorten: ["WHAT"] },
  );
}

const summaryOf = ({ questions, input }: ApprovalRecord): string =>
  Array.isArray(questions) && questions.length > 0
    ? visibleText(questions.map(({ question }) => question).join(" "))
    : visibleJson(input);

/** `roost approval show APPROVAL`: all of it. */
export async function showApproval(approvalId: string, options: Options): Promise<void> {
  const approval = await openClient(options).get(APPROVAL, { path: { approvalId } });
  if (options.json) printJson(approval);
  else print(approval);
}

function print(approval: ApprovalRecord): void {
  printFields([
    ["Status", approval.decidedBy === null ? approval.status : `${approval.status} by ${approval.decidedBy}`],
    ["Tool", approval.tool],
    ["Agent", approval.agentId],
    ["Run", approval.runId],
    ["Asked", shortTime(approval.createdAt)],
    ["Until", shortTime(approval.expiresAt)],
    ["Note", approval.note ?? "-"],
  ]);
  if (approval.tainted) {
    say(colours.yellow("The agent has read what a stranger may have written: check that this is what you want."));
  }
  if (approval.questions === null) printInput(approval.input);
  else printQuestions(approval);
}

/** Indented, so that no line of it passes for one of this program. */
function printInput(input: unknown): void {
  for (const line of visibleJson(input, 2).split("\n")) say("  ", line);
}

function printQuestions({ questions, answers }: ApprovalRecord): void {
  for (const [at, { question, options }] of (questions ?? []).entries()) {
    say(`  ${at + 1}. ${visibleText(question)}`);
    if (options.length > 0) say(`     one of: ${visibleText(options.join(", "))}`);
    if (answers !== null) say(`     answer: ${answers[at] ?? ""}`);
  }
}

/** `roost approval approve APPROVAL`: shows it, and approves exactly what was shown. */
export async function approve(
  approvalId: string,
  { note, remember, yes, ...options }: DecisionOptions & { remember?: true; yes?: true },
): Promise<void> {
  const client = openClient(options);
  const approval = await client.get(APPROVAL, { path: { approvalId } });
  if (!options.json) print(approval);
  await confirm("Approve this?", yes, options.json && approval);
  const { inputHash } = approval;
  await decide(client, approvalId, { decision: "approve", inputHash, remember, note }, options);
}

/** `roost approval deny APPROVAL` */
export async function deny(approvalId: string, { note, ...options }: DecisionOptions): Promise<void> {
  await decide(openClient(options), approvalId, { decision: "deny", note }, options);
}

/** `roost approval answer APPROVAL ANSWER…`: one for each question, in their order. */
export async function answer(
  approvalId: string,
  answers: string[],
  { note, ...options }: DecisionOptions,
): Promise<void> {
  await decide(openClient(options), approvalId, { decision: "answer", answers, note }, options);
}

interface Decision {
  decision: "approve" | "deny" | "answer";
  inputHash?: string;
  answers?: string[];
  remember?: true | undefined;
  note?: string | undefined;
}

async function decide(client: Client, approvalId: string, body: Decision, { json }: Options): Promise<void> {
  const approval = await client.post(`${APPROVAL}/decision`, { path: { approvalId }, body });
  if (json) {
    printJson(approval);
    return;
  }
  say(`It is ${approval.status}. The agent goes on.`);
  noteLine(`To see how: roost events ${shellWord(approval.instanceId)} ${shellWord(approval.agentId)}`);
}
