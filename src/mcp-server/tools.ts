import { z } from "zod";
import { idForm } from "../lib/forms.ts";
import { MAX_MESSAGE } from "../limits/message-length.ts";
import { decodeText } from "../workspace/workspace.ts";
import type { RunView } from "./run-view.ts";

/** What the tools are made of, for the caller of one request. Each method throws `AppError`. */
export interface McpApi {
  /** Asks a route of the API by its name. Returns the JSON that it answers, or its `Response`. */
  ask(
    route: string,
    asked: { params?: Record<string, string>; query?: Record<string, string | undefined>; body?: unknown },
  ): Promise<unknown>;
  /** The path parameters of an agent. */
  at(agentId: string): { instanceId: string; agentId: string };
  /** Sends a message, and waits for a while. */
  send(agentId: string, message: string, conversationId: string | undefined): Promise<RunView>;
  run(agentId: string, runId: string): Promise<RunView>;
}

/** What a model gets: the same once as data and once as text. */
interface Output {
  data: Record<string, unknown>;
  text?: string;
}

export interface McpTool<I extends z.ZodObject = z.ZodObject> {
  name: string;
  title: string;
  description: string;
  input: I;
  output: z.ZodObject;
  annotations: { readOnlyHint: boolean; destructiveHint?: boolean; idempotentHint?: boolean; openWorldHint: boolean };
  run(api: McpApi, input: z.output<I>): Promise<Output>;
}

const tool = <I extends z.ZodObject>(made: McpTool<I>): McpTool => made as unknown as McpTool;

/** A longer file ends here; the API gives all of it. */
const MAX_SHOWN = 100_000;

const agentId = idForm("agt").describe("An agent's id, from list_agents");
const cursor = z.string().nullish().describe("The nextCursor of the call before, for what comes after it");
const nextCursor = z.string().nullable().describe("Pass it as cursor for what comes next; null at the end");
const READS = { readOnlyHint: true, openWorldHint: false };

const RunOutput = z.object({
  runId: idForm("run"),
  conversationId: idForm("conv").describe("Pass it to send_message to go on with this conversation"),
  status: z.string().describe("queued, running, waiting (for a person's decision), completed, failed or cancelled"),
  answer: z.string().nullable().describe("What the agent has answered; null as long as it works"),
  approvalId: z.string().nullable().describe("What the run waits for, if it waits"),
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
});

interface Listed {
  data: Record<string, unknown>[];
  nextCursor: string | null;
}

const pick = (from: Record<string, unknown>, names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, from[name]]));

const showRun = (view: RunView): Output => ({ data: { ...view }, text: inWords(view) });

function inWords({ runId, status, answer, approvalId, error }: RunView): string {
  if (error !== null) return `The run ${runId} failed (${error.code}): ${error.message}`;
  if (answer !== null) return answer;
  if (approvalId !== null) {
    return `The run ${runId} waits for a person's decision about ${approvalId}: see list_approvals, then get_run.`;
  }
  if (status === "cancelled") return `The run ${runId} was cancelled before it answered.`;
  return `The agent is still working on it. Call get_run with runId ${runId} a little later; do not send the message again.`;
}

const AGENT_FIELDS = ["agentId", "name", "instance"] as const;
const APPROVAL_FIELDS = [
  ...["approvalId", "kind", "agentId", "runId", "tool", "input", "inputHash", "tainted", "questions", "expiresAt"],
] as const;

export const TOOLS: readonly McpTool[] = [
  tool({
    name: "list_agents",
    title: "List agents",
    description: "Lists the agents that you can talk to: their ids, which every other tool needs, and their names.",
    input: z.object({ cursor }),
    output: z.object({
      agents: z.array(z.object({ agentId: z.string(), name: z.string(), instance: z.string() })),
      nextCursor,
    }),
    annotations: READS,
    async run(api, { cursor }) {
      const listed = (await api.ask("listModels", { query: { limit: "100", after: cursor ?? undefined } })) as {
        data: { id: string; name: string; owned_by: string }[];
        has_more: boolean;
      };
      const agents = listed.data
        .filter(({ id }) => id.startsWith("agt_"))
        .map(({ id, name, owned_by }) => ({ agentId: id, name, instance: owned_by }));
      const last = agents.at(-1)?.agentId ?? null;
      return {
        data: { agents: agents.map((one) => pick(one, AGENT_FIELDS)), nextCursor: listed.has_more ? last : null },
      };
    },
  }),
  tool({
    name: "send_message",
    title: "Send a message to an agent",
    description:
      "Sends a message to an agent and waits up to a minute for its answer. An agent that needs longer goes on working: " +
      "the result then has a runId for get_run. The agent may act with the tools that its owner has given it. Without " +
      "conversationId, the message belongs to the agent's default conversation.",
    input: z.object({
      agentId,
      message: z.string().min(1).max(MAX_MESSAGE).describe("What to say to the agent, as to a person"),
      conversationId: idForm("conv").optional().describe("The conversation to go on with, from an earlier result"),
    }),
    output: RunOutput,
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
    run: async (api, { agentId, message, conversationId }) => showRun(await api.send(agentId, message, conversationId)),
  }),
  tool({
    name: "get_run",
    title: "Look at a run",
    description: "Shows what has become of a message: whether the agent is done, and its answer.",
    input: z.object({ agentId, runId: idForm("run").describe("From send_message") }),
    output: RunOutput,
    annotations: READS,
    run: async (api, { agentId, runId }) => showRun(await api.run(agentId, runId)),
  }),
  tool({
    name: "list_files",
    title: "List an agent's files",
    description: "Lists the files of an agent's workspace by name: its persona, notes, and what it has produced.",
    input: z.object({ agentId, cursor }),
    output: z.object({
      files: z.array(z.object({ name: z.string(), size: z.int().describe("In bytes"), updatedAt: z.string() })),
      nextCursor,
    }),
    annotations: READS,
    async run(api, { agentId, cursor }) {
      const query = { limit: "100", after: cursor ?? undefined };
      const { data, nextCursor } = (await api.ask("listAgentFiles", { params: api.at(agentId), query })) as Listed;
      return { data: { files: data.map((file) => pick(file, ["name", "size", "updatedAt"])), nextCursor } };
    },
  }),
  tool({
    name: "read_file",
    title: "Read an agent's file",
    description: `Reads a text file of an agent's workspace; of one with more than ${MAX_SHOWN} characters its beginning.`,
    input: z.object({ agentId, path: z.string().min(1).max(1_000).describe("The file's name, from list_files") }),
    output: z.object({ path: z.string(), text: z.string(), isCut: z.boolean() }),
    annotations: READS,
    async run(api, { agentId, path }) {
      const answer = (await api.ask("getAgentFile", { params: { ...api.at(agentId), "*": path } })) as Response;
      const whole = decodeText(await answer.bytes());
      const text = whole.slice(0, MAX_SHOWN).toWellFormed();
      return { data: { path, text, isCut: text.length < whole.length }, text };
    },
  }),
  tool({
    name: "list_approvals",
    title: "List what waits for a decision",
    description:
      "Lists the calls of agents' tools that wait for a person's decision, with their whole input, newest first. Show " +
      "them to the person who is to decide.",
    input: z.object({ cursor }),
    output: z.object({ approvals: z.array(z.looseObject({ approvalId: z.string() })), nextCursor }),
    annotations: READS,
    async run(api, { cursor }) {
      const query = { status: "open", limit: "50", after: cursor ?? undefined };
      const { data, nextCursor } = (await api.ask("listApprovals", { query })) as Listed;
      return { data: { approvals: data.map((one) => pick(one, APPROVAL_FIELDS)), nextCursor } };
    },
  }),
  tool({
    name: "decide_approval",
    title: "Approve or deny a call",
    description:
      "Approves or denies a call that waits; the agent then goes on. Approve only what a person has seen and agreed to: " +
      "the call is made exactly as list_approvals shows it. Needs an API key with the scope approve. Questions of agents " +
      "(kind question) are answered elsewhere.",
    input: z.object({
      approvalId: idForm("appr").describe("From list_approvals"),
      decision: z.enum(["approve", "deny"]),
      inputHash: z
        .string()
        .optional()
        .describe("The approval's inputHash, to approve: only what was shown is approved"),
    }),
    output: z.looseObject({ approvalId: z.string(), status: z.string() }),
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
    async run(api, { approvalId, ...body }) {
      const decided = await api.ask("decideApproval", { params: { approvalId }, body });
      return { data: pick(decided as Record<string, unknown>, ["approvalId", "status", "agentId", "runId", "tool"]) };
    },
  }),
];
