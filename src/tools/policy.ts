import { hashOfJson } from "../lib/canonical-json.ts";
import { newId } from "../lib/id.ts";
import { isTooDeep, MAX_JSON_DEPTH } from "../lib/json-depth.ts";
import { messageOf } from "../lib/message-of.ts";
import { keepShort } from "./long-output.ts";
import type { PolicyPorts } from "./ports.ts";
import { type RunResult, runTool } from "./run-tool.ts";
import { nameTools } from "./search-tools.ts";
import { targetOf } from "./target.ts";
import {
  CALL_TOOL,
  type Changes,
  type Policy,
  SEARCH_TOOLS,
  type Tool,
  type ToolContext,
  type Waiting,
} from "./tool.ts";
import type { Toolbox } from "./toolbox.ts";

/** A call as the model wrote it: `input` is text that has not been checked. */
export interface AskedCall {
  name: string;
  input: string;
}

export interface CallContext extends ToolContext {
  /** False where nobody can be asked: a call that would ask is refused. */
  mayAsk: boolean;
  /** Calls of the run that wait already. */
  waiting: number;
}

/** A call that waits, with its input exactly as it would be executed. */
export interface WaitingReply extends Waiting {
  input: unknown;
  /** The version of what it changes, as it is now. */
  basis: string | null;
}

/** The most that a person is shown of one call (docs/contract/runtime.md, Approvals). */
export const MAX_ASKED_BYTES = 8 * 1024;
/** Calls of one run that wait at the same time. */
export const MAX_WAITING_CALLS = 16;

/**
 * The only way to a tool, for every call of every run: what an agent may do is decided here and nowhere else. A call is
 * made if its input fits the tool's schema and its policy allows it, or a person has approved exactly this. Nothing that
 * the model writes takes part in the decision but what the call does. The model gets what was wrong with the call, or what
 * the tool did not manage, as the tool's error, so that it can correct its call; thrown is only what the host did not manage.
 */
export async function callTool(
  toolbox: Toolbox,
  asked: AskedCall,
  context: CallContext,
  ports: PolicyPorts,
): Promise<RunResult | WaitingReply> {
  const read = readCall(toolbox, asked);
  if ("problem" in read) {
    const tool = toolbox.find(asked.name);
    ports.count(tool === undefined ? "unknown" : countedAs(tool), "invalid");
    return await keepShort(refusal(read.problem), asked.name, context, ports);
  }
  const { tool, input } = read;
  const decision = decide(read, context, ports);
  if (decision.kind === "refuse") {
    ports.count(countedAs(tool), "refused");
    return refusal(decision.reason);
  }
  if (decision.kind === "ask") return ask(read, context, ports);
  if (changesOfCall(read) === "outside") {
    try {
      await ports.noteChange(context, tool.name, context.goAhead ?? null);
    } catch (error) {
      ports.count(countedAs(tool), "refused");
      return refusal(messageOf(error));
    }
  }
  const result = await runTool(read, { ...context, basis: decision.basis });
  if ("waitsFor" in result) {
    const problem = isForPerson(result) ? whyNotAsk(read, hashOf(input), context, ports) : null;
    ports.count(countedAs(tool), problem === null ? "asked" : "refused");
    return problem === null ? { ...result, input, basis: null } : refusal(problem);
  }
  ports.count(countedAs(tool), result.isError ? "failed" : "done");
  return await keepShort(result, tool.name, context, ports);
}

/** The version of what the call changes is taken before anybody is asked: who approves has not seen a later one. */
function ask({ tool, input }: ReadCall, context: CallContext, ports: PolicyPorts): RunResult | WaitingReply {
  try {
    const basis = tool.basisOf?.(input, context) ?? null;
    ports.count(countedAs(tool), "asked");
    return { waitsFor: { kind: "approval", id: newId("appr") }, input, basis };
  } catch (error) {
    ports.count(countedAs(tool), "refused");
    return refusal(messageOf(error));
  }
}

/** Strangers' names would make as many figures. */
const countedAs = ({ name, source }: Tool): string => (source === undefined ? name : "mcp");

const refusal = (output: string): RunResult => ({ output, isError: true, isUntrusted: false });

type Decision = { kind: "run"; basis?: string | null } | { kind: "ask" } | { kind: "refuse"; reason: string };

function decide(read: ReadCall, context: CallContext, ports: PolicyPorts): Decision {
  const { tool, input } = read;
  const { agentId, goAhead, isTainted, onlyTools } = context;
  if (onlyTools && !isSearch(tool.name) && !onlyTools.includes(tool.name)) {
    return refuse(
      `you work on a part of a task, and have no ${tool.name} for it; your tools are: ${namesOf(onlyTools)}`,
    );
  }
  const policy = ports.policyOf(agentId, tool.name) ?? defaultPolicyOf(tool, changesOfCall(read));
  if (policy === "deny") return refuse(`the owner of this agent has denied ${tool.name}`);
  if (!needsApproval(policy, read, isTainted)) return { kind: "run" };
  if (policy === "ask" && !isTainted) {
    const target = targetOf(input);
    if (target !== null && ports.isRemembered(agentId, tool.name, target)) return { kind: "run" };
  }
  const hash = hashOf(input);
  const approved = goAhead === undefined ? null : ports.approved(goAhead);
  if (approved !== null && approved.inputHash === hash) return { kind: "run", basis: approved.basis };
  if (approved !== null) return refuse(`this call of ${tool.name} is not the one that was approved; make it again`);
  const problem = whyNotAsk(read, hash, context, ports);
  return problem === null ? { kind: "ask" } : refuse(problem);
}

const isForPerson = ({ waitsFor: { kind } }: Waiting): boolean => kind === "approval" || kind === "answer";

/** Why no person can be asked about this call; null where one can be. */
function whyNotAsk(
  { tool, input }: ReadCall,
  hash: string | null,
  { instanceId, mayAsk, waiting }: CallContext,
  ports: PolicyPorts,
): string | null {
  if (hash === null) return `the input of ${tool.name} is not valid Unicode`;
  const ask = `a person has to decide about this call of ${tool.name}`;
  if (!mayAsk) return `${ask}, and nobody can be asked here: do without it`;
  if (waiting >= MAX_WAITING_CALLS) return `${ask}, and ${waiting} calls of this run wait for a decision already`;
  if (!ports.hasRoomToAsk(instanceId)) return `${ask}, and too much waits for this person already`;
  const bytes = Buffer.byteLength(JSON.stringify(input));
  if (bytes <= MAX_ASKED_BYTES) return null;
  return `${ask}, but its input has ${bytes} bytes, and at most ${MAX_ASKED_BYTES} can be shown`;
}

const isSearch = (name: string): boolean => name === SEARCH_TOOLS || name === CALL_TOOL;
const namesOf = (names: readonly string[]): string => nameTools(names.map((name) => ({ name })));

const refuse = (reason: string): Decision => ({ kind: "refuse", reason });

/** The policy of a tool about which the owner has said nothing, for a call that changes this. */
export const defaultPolicyOf = ({ defaultPolicy }: Tool, changes: Changes): Policy =>
  defaultPolicy ?? (changes === "outside" ? "ask" : "allow");

/** Only the owner's `always` lets a tainted run change something outside, or what steers other runs. */
function needsApproval(policy: Exclude<Policy, "deny">, read: ReadCall, isTainted: boolean): boolean {
  switch (policy) {
    case "always":
      return false;
    case "ask":
      return true;
    case "allow":
      return isTainted && (changesOfCall(read) === "outside" || (read.tool.steers?.(read.input) ?? false));
  }
}

function hashOf(input: unknown): string | null {
  try {
    return hashOfJson(input);
  } catch {
    return null;
  }
}

/**
 * Whether none of these calls changes anything, so that they may run at the same time. An invalid call changes nothing
 * either.
 */
export const changeNothing = (toolbox: Toolbox, calls: readonly AskedCall[]): boolean =>
  calls.every((asked) => toolbox.find(asked.name)?.changes === "nothing" || changesOf(toolbox, asked) === "nothing");

export const changesOutside = (toolbox: Toolbox, asked: AskedCall): boolean =>
  // Most calls need not be read for this.
  toolbox.find(asked.name)?.changes === "outside" && changesOf(toolbox, asked) === "outside";

/** A call that is refused because it is invalid changes nothing. */
function changesOf(toolbox: Toolbox, asked: AskedCall): Changes {
  const read = readCall(toolbox, asked);
  return "problem" in read ? "nothing" : changesOfCall(read);
}

const changesOfCall = ({ tool, input }: ReadCall): Changes => tool.changesOf?.(input) ?? tool.changes;

/** A call whose input fits: `input` is what the tool is given. */
interface ReadCall {
  tool: Tool;
  input: unknown;
}

function readCall(toolbox: Toolbox, { name, input }: AskedCall): ReadCall | { problem: string } {
  const tool = toolbox.find(name);
  if (!tool) {
    return { problem: `there is no tool "${name}"; there are: ${nameTools(toolbox.tools)}` };
  }
  if (isTooDeep(input)) return { problem: `the input of ${name} is nested more than ${MAX_JSON_DEPTH} levels deep` };
  let value: unknown;
  try {
    value = JSON.parse(input.trim() === "" ? "{}" : input);
  } catch {
    return { problem: `the input of ${name} is not valid JSON` };
  }
  const result = tool.input.safeParse(value);
  if (result.success) return { tool, input: result.data };
  const issue = result.error.issues[0];
  return { problem: `the input of ${name} is wrong: ${issue?.path.join(".") || "input"}: ${issue?.message}` };
}
