import { z } from "zod";
import { ApprovalRecord } from "../../approvals/record.ts";
import { idForm } from "../../lib/forms.ts";
import { form, record } from "../../lib/record.ts";
import { MODEL_LIMIT_NAMES } from "../../limits/model-limits.ts";
import { WAIT_KINDS } from "../../tools/tool.ts";
import { MessageRecord } from "../record.ts";

const StartedCall = z.object({
  toolCallId: z.string(),
  name: z.string(),
  input: z.unknown().describe("JSON, or the model's text if that is not JSON"),
});
export type StartedCall = z.output<typeof StartedCall>;

/** What every event has. */
const anEvent = {
  id: z.int().describe("Increases for each agent; a stream continues after it"),
  agentId: idForm("agt"),
  createdAt: z.iso.datetime(),
};
const ofRun = { ...anEvent, runId: idForm("run"), conversationId: idForm("conv") };

/** One form of an event, under a name of its own. */
const event = <Shape extends z.ZodRawShape>(name: string, shape: Shape) => form(`${name}Event`, z.object(shape));

/** An event of an agent's stream: the JSON of its `data` (docs/contract/api.md, Events). */
export const EventRecord = record("AgentEvent", () =>
  z.discriminatedUnion("type", [
    event("RunStatus", {
      ...ofRun,
      type: z.enum(["run.queued", "run.started", "run.restarted", "run.resumed", "run.completed", "run.cancelled"]),
    }),
    event("RunWaiting", {
      ...ofRun,
      type: z.literal("run.waiting"),
      calls: z.array(
        z.object({
          toolCallId: z.string(),
          name: z.string(),
          waitsFor: z.object({ kind: z.enum(WAIT_KINDS), id: z.string() }),
        }),
      ),
    }),
    event("MessageDelta", {
      ...ofRun,
      type: z.literal("message.delta"),
      delta: z.string().describe("More of the answer's text"),
    }),
    event("ToolStarted", {
      ...ofRun,
      type: z.literal("tool.started"),
      ...StartedCall.shape,
      step: z.int().describe("The model call, counted from 1"),
      following: z.array(StartedCall).optional().describe("The calls after the first of the same answer, if any"),
    }),
    event("ToolCompleted", {
      ...ofRun,
      type: z.literal("tool.completed"),
      toolCallId: z.string(),
      name: z.string(),
      output: z.string(),
      isError: z.boolean(),
    }),
    event("ContextCompacted", {
      ...ofRun,
      type: z.literal("context.compacted"),
      fromMessageId: idForm("msg").describe("The first message that is new in the summary"),
      toMessageId: idForm("msg").describe("The last one"),
      tokensBefore: z.int().describe("What the conversation took in the prompt"),
      tokensAfter: z.int().describe("What it takes with the summary"),
    }),
    event("ContextCompactionFailed", { ...ofRun, type: z.literal("context.compaction_failed"), reason: z.string() }),
    event("PlanUpdated", {
      ...ofRun,
      type: z.literal("plan.updated"),
      items: z.array(z.object({ text: z.string(), done: z.boolean() })),
    }),
    event("DelegationStarted", {
      ...ofRun,
      type: z.literal("delegation.started"),
      toolCallId: z.string(),
      tasks: z
        .array(
          z.object({
            title: z.string().nullable().describe("Null for a message to another agent"),
            agentId: idForm("agt"),
            agentName: z.string(),
            conversationId: idForm("conv"),
            runId: idForm("run"),
          }),
        )
        .describe("The runs that the call waits for"),
    }),
    event("Approval", { ...ofRun, type: z.enum(["approval.requested", "approval.decided"]), approval: ApprovalRecord }),
    event("MessageCompleted", { ...ofRun, type: z.literal("message.completed"), message: MessageRecord }),
    event("RunFailed", {
      ...ofRun,
      type: z.literal("run.failed"),
      error: z.object({ code: z.string(), message: z.string() }),
    }),
    event("ScheduleFailing", {
      ...anEvent,
      type: z.enum(["schedule.failing", "schedule.disabled"]),
      scheduleId: idForm("sch"),
      name: z.string(),
      failuresInARow: z.int(),
      reason: z.string(),
    }),
    event("BudgetWarning", {
      ...anEvent,
      type: z.literal("budget.warning"),
      scope: z.enum(["account", "instance", "agent"]).describe("Whose limit it is"),
      limit: z.enum(MODEL_LIMIT_NAMES),
      used: z.union([z.int(), z.string()]).describe("Tokens, or an amount in USD"),
      of: z.union([z.int(), z.string()]),
      resetsAt: z.iso.datetime(),
    }),
    event("AgentChanged", { ...anEvent, type: z.enum(["agent.updated", "agent.deleted"]) }),
    event("McpChanged", {
      ...anEvent,
      type: z.literal("mcp.changed"),
      serverId: idForm("mcp"),
      name: z.string(),
      tools: z
        .array(z.object({ name: z.string(), state: z.enum(["new", "changed", "gone"]) }))
        .describe("What waits for the owner's approval"),
    }),
    event("InstanceStatus", { ...anEvent, type: z.literal("instance.status"), status: z.string() }),
    event("InstanceRunway", {
      ...anEvent,
      type: z.literal("instance.runway"),
      reason: z.string(),
      secondsLeft: z.number(),
      stopsAt: z.iso.datetime(),
    }),
  ]),
);
