import type { Agents } from "../agents/agents.ts";
import type { Agent } from "../agents/schema.ts";
import type { Instances } from "../instances/instances.ts";
import type { Instance } from "../instances/schema.ts";
import { AppError } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import type { Messaging } from "../messages/messaging.ts";
import { messageQueries } from "../messages/queries.ts";
import type { RunListener } from "../messages/runs/ending.ts";
import type { RunBounds } from "../messages/runs/prepare.ts";
import type { Run } from "../messages/schema.ts";
import type { WaitingCall } from "../runtime/hosted-run.ts";
import { expireAll } from "../storage/expiry.ts";
import type { Store } from "../storage/store.ts";
import type { DelegateInput } from "../tools/delegate.ts";
import type { AgentMessage } from "../tools/message-agent.ts";
import type { AgentsPort } from "../tools/ports.ts";
import { DELEGATE } from "../tools/tool.ts";
import type { Toolbox } from "../tools/toolbox.ts";
import { resultOf } from "./answers.ts";
import { delegationQueries } from "./queries.ts";
import { type Chain, createRules } from "./rules.ts";
import type { DelegationRow } from "./schema.ts";

/** How long a run waits for another agent, which may have to ask a person; and for its copies, which ask nobody. */
const AGENT_MS = 24 * 60 * 60_000;
const COPIES_MS = 10 * 60_000;

export interface DelegationParts {
  store: Store;
  clock: Clock;
  log: Log;
  agents: Pick<Agents, "find" | "nameOf">;
  instances: Pick<Instances, "find">;
  /** These two are built later, and asked for when something is asked. */
  toolboxOf(instanceId: string): Pick<Toolbox, "offerTo">;
  messaging(): Pick<Messaging, "messages" | "conversations" | "runs" | "events">;
}

/** Runs that other runs cause and wait for (docs/contract/runtime.md, Agents together). */
export interface Delegation {
  port: AgentsPort;
  listener: RunListener;
  /** What such a run may do of what its agent may; null for all other runs. */
  boundsOf(run: Run): RunBounds | null;
  /** Cancels those that have taken too long. */
  expireDue(): Promise<void>;
}

/** For a run of which it is not known what it may do. */
const NOTHING: RunBounds = { mayAsk: false, onlyTools: [] };

/** What is to be asked of one agent. */
interface Errand {
  agent: Agent;
  title: string | null;
  message: string;
  tools: string[] | null;
}

export function createDelegation(parts: DelegationParts): Delegation {
  const { store, clock, log, agents, instances, toolboxOf, messaging } = parts;
  const queries = delegationQueries(store.db);
  const { run: runOf, reply: replyOf } = messageQueries(store.db);
  const rules = createRules({ queries, agents, instances, runOf, toolboxOf });

  function messageErrands(chain: Chain, { agent, message }: AgentMessage): Errand[] {
    rules.requireRoom(chain, 1);
    return [{ agent: rules.target(chain, agent), title: null, message, tools: null }];
  }

  function copyErrands(chain: Chain, { tasks }: DelegateInput, agent: Agent): Errand[] {
    rules.requireRoom(chain, tasks.length);
    const tools = rules.toolsOf(chain, tasks);
    return tasks.map(({ title, message }, at) => ({ agent, title, message, tools: tools[at] ?? [] }));
  }

  function actorOf({ agentId, instanceId }: Pick<Run, "agentId" | "instanceId">): { agent: Agent; instance: Instance } {
    const [agent, instance] = [agents.find(agentId), instances.find(instanceId)];
    if (!agent || !instance) throw new AppError("conflict", "the agent is deleted");
    return { agent, instance };
  }

  /** Starts what a call asks for: all of it or, if that cannot be, nothing. */
  function begin(parent: Run, { call, input, waitsFor }: WaitingCall, isTainted: boolean): void {
    const { messages, conversations, events } = messaging();
    const { agent: asking, instance } = actorOf(parent);
    const chain = rules.chainOf(parent.runId);
    const isCopy = call.name === DELEGATE;
    const errands = isCopy
      ? copyErrands(chain, input as DelegateInput, asking)
      : messageErrands(chain, input as AgentMessage);
    const { own } = chain;
    const mayAsk = !isCopy && (own?.mayAsk ?? true);
    const lifeMs = mayAsk ? AGENT_MS : COPIES_MS;
    const expiresAt = Math.min(clock.now() + lifeMs, own?.expiresAt ?? Number.POSITIVE_INFINITY);
    const sender = { type: "agent", id: asking.agentId, name: asking.displayName };
    const origin = { originType: "agent", originId: parent.runId } as const;
    const tasks = errands.map(({ agent, title, message, tools }, position) => {
      const name = title ?? `Asked by ${asking.displayName}`;
      const how = isCopy ? "new" : "again";
      const { conversationId } = conversations.forAgents(agent, parent.conversationId, name, how);
      const { runId } = messages.send(instance, agent, {
        ...{ conversationId, text: message, sender, origin, isTainted },
        whileRunning: "queue",
        output: null,
      });
      const row: DelegationRow = {
        ...{ runId, conversationId, position, title, tools, mayAsk, expiresAt },
        accountId: instance.accountId,
        parentRunId: parent.runId,
        rootRunId: own?.rootRunId ?? parent.runId,
        waitId: waitsFor.id,
        isOpen: true,
      };
      queries.insert(row);
      return { title, agentId: agent.agentId, agentName: agent.displayName, conversationId, runId };
    });
    const started = { type: "delegation.started", runId: parent.runId, toolCallId: call.id, tasks } as const;
    events.append(parent.agentId, [started], parent.conversationId);
  }

  /** Gives the call that waited for these its result, if its run still waits. */
  function answer({ waitId, parentRunId }: DelegationRow): void {
    const now = clock.now();
    const ended = queries.ofWait(waitId).map(({ runId, title, conversationId, expiresAt }) => {
      const run = runOf(runId);
      const agentName = agents.nameOf(run?.agentId ?? "") ?? "that was deleted";
      const isLate = run?.status === "cancelled" && expiresAt <= now;
      return { title, agentName, run, reply: run && replyOf(conversationId, run.messageId), isLate };
    });
    messaging().runs.resume(parentRunId, waitId, resultOf(ended));
  }

  function cancel({ runId }: DelegationRow): void {
    const run = runOf(runId);
    if (run) messaging().runs.cancel(run);
  }

  return {
    port: {
      requireMessage({ runId }, agent, message) {
        messageErrands(rules.chainOf(runId), { agent, message });
      },
      requireDelegation(whose, tasks) {
        copyErrands(rules.chainOf(whose.runId), { tasks: [...tasks] }, actorOf(whose).agent);
      },
    },
    listener: {
      waiting(run, calls, isTainted) {
        for (const one of calls.filter(({ waitsFor }) => waitsFor.kind === "agent")) {
          try {
            store.transaction(() => begin(run, one, isTainted));
          } catch (error) {
            // Such as a full queue, or an agent that was deleted just now.
            if (!(error instanceof AppError) || error.code === "internal_error") throw error;
            messaging().runs.resume(run.runId, one.waitsFor.id, { output: error.message, isError: true });
          }
        }
      },
      ended({ run }) {
        queries.openOf(run.runId).forEach(cancel);
        const own = run.originType === "agent" ? queries.find(run.runId) : undefined;
        if (!own?.isOpen) return;
        queries.close(own.runId);
        if (queries.ofWait(own.waitId).every(({ isOpen }) => !isOpen)) answer(own);
      },
    },
    boundsOf(run) {
      if (run.originType !== "agent") return null;
      const own = queries.find(run.runId);
      return own ? { mayAsk: own.mayAsk, onlyTools: own.tools ?? undefined } : NOTHING;
    },
    expireDue: () =>
      expireAll({
        store,
        due: (limit) => queries.due(clock.now(), limit),
        idOf: ({ runId }) => runId,
        expire: cancel,
        failed: (err, { runId }) =>
          log.error({ err, runId }, "a run that was asked for could not be ended; it is tried again"),
      }),
  };
}
