import type { Agents } from "../agents/agents.ts";
import type { Agent } from "../agents/schema.ts";
import type { Instances } from "../instances/instances.ts";
import { AppError } from "../lib/app-error.ts";
import { isId } from "../lib/id.ts";
import type { Run } from "../messages/schema.ts";
import type { Task } from "../tools/ports.ts";
import { nameTools } from "../tools/search-tools.ts";
import { DELEGATE } from "../tools/tool.ts";
import type { Toolbox } from "../tools/toolbox.ts";
import type { DelegationQueries } from "./queries.ts";
import type { DelegationRow } from "./schema.ts";

/** How many runs may wait for each other in a row, besides the first (docs/contract/runtime.md, Agents together). */
const MAX_DEPTH = 3;
/** Runs that one run may cause, that all of a chain may, and that may be open for an account. */
export const MAX_OF_RUN = 16;
export const MAX_OF_CHAIN = 64;
export const MAX_OF_ACCOUNT = 128;
/** Names of agents that an error lists. */
const MAX_NAMED = 20;
/** A copy asks nobody, and does its part itself. */
const NOT_FOR_COPIES = ["ask_user", DELEGATE];

/** A run with what it was caused by, and the others that wait for it. */
export interface Chain {
  /** Itself first, then who waits for it, and so on. */
  runs: Run[];
  /** Of the run itself; null if no other run has caused it. */
  own: DelegationRow | null;
}

export interface RuleParts {
  queries: DelegationQueries;
  agents: Pick<Agents, "find" | "nameOf">;
  instances: Pick<Instances, "find">;
  runOf(runId: string): Run | undefined;
  toolboxOf(instanceId: string): Pick<Toolbox, "offerTo">;
}

/** What a run may ask other agents. All of it throws `conflict`, in words for a model, where it may not. */
export interface Rules {
  chainOf(runId: string): Chain;
  /** Throws if the run may not cause so many more. */
  requireRoom(chain: Chain, count: number): void;
  /** The agent of this name or id that the run may ask. */
  target(chain: Chain, name: string): Agent;
  /** The names of the tools of each copy. */
  toolsOf(chain: Chain, tasks: readonly Task[]): string[][];
}

const refuse = (message: string) => new AppError("conflict", message);

export function createRules({ queries, agents, instances, runOf, toolboxOf }: RuleParts): Rules {
  const nameOf = (agentId: string) => agents.nameOf(agentId) ?? "a deleted agent";

  function find(instanceId: string, asking: string, name: string): Agent {
    const ids = isId("agt", name) ? [name] : queries.agentsNamed(instanceId, name, 2);
    const [found] = ids.map(agents.find);
    if (found?.instanceId !== instanceId) {
      const names = queries.namesBeside(instanceId, asking, MAX_NAMED + 1);
      const more = names.length > MAX_NAMED ? ", and more" : "";
      const known = names.length === 0 ? "you are the only one" : `there are: ${names.slice(0, MAX_NAMED).join(", ")}`;
      throw refuse(`there is no agent "${name}" here; ${known}${more}`);
    }
    if (ids.length > 1) throw refuse(`several agents are called "${name}": name one by its id, ${ids.join(" or ")}`);
    return found;
  }

  return {
    chainOf(runId) {
      const first = runOf(runId);
      if (first === undefined) {
        throw refuse("nobody keeps this conversation, so it cannot wait for other agents: do it yourself");
      }
      const runs = [first];
      const own = queries.find(runId) ?? null;
      for (let up = own; up !== null; up = queries.find(up.parentRunId) ?? null) {
        const parent = runOf(up.parentRunId);
        if (parent === undefined) break;
        runs.push(parent);
      }
      return { runs, own };
    },
    requireRoom({ runs: [run, ...waiting], own }, count) {
      if (run === undefined) return;
      if (waiting.length >= MAX_DEPTH) {
        throw refuse(
          `${waiting.length} others wait for you already, one for the other: do this yourself, or answer without it`,
        );
      }
      const over = (used: number, most: number) => used + count > most;
      if (over(queries.countOfParent(run.runId, MAX_OF_RUN), MAX_OF_RUN)) {
        throw refuse(
          `you have asked for as much help as you may for one message (${MAX_OF_RUN} times): do the rest yourself`,
        );
      }
      if (over(queries.countOfRoot(own?.rootRunId ?? run.runId, MAX_OF_CHAIN), MAX_OF_CHAIN)) {
        throw refuse(`as many agents were asked for this message as may be (${MAX_OF_CHAIN}): do the rest yourself`);
      }
      const accountId = instances.find(run.instanceId)?.accountId ?? "";
      if (over(queries.countOpenOf(accountId, MAX_OF_ACCOUNT), MAX_OF_ACCOUNT)) {
        throw refuse("too many agents of this account are waited for already: do this yourself, or try it later");
      }
    },
    target({ runs: [run, ...waiting] }, name) {
      const { agentId = "", instanceId = "" } = run ?? {};
      const target = find(instanceId, agentId, name);
      if (target.agentId === agentId) throw refuse("that is you: an agent cannot message itself");
      if (waiting.some((one) => one.agentId === target.agentId)) {
        throw refuse(
          `${nameOf(target.agentId)} waits for your answer, so it cannot answer you: tell it what you need in your answer`,
        );
      }
      return target;
    },
    toolsOf({ runs: [run], own }, tasks) {
      if (own?.title != null) throw refuse("you work on a part of a task yourself: do it without further copies");
      const agent = run && agents.find(run.agentId);
      const policies = agent?.tools ?? null;
      const all = toolboxOf(run?.instanceId ?? "")
        .offerTo(policies, Number.POSITIVE_INFINITY)
        .map(({ name }) => name)
        .filter((name) => !NOT_FOR_COPIES.includes(name));
      return tasks.map(({ title, tools }) => {
        const unknown = tools?.find((name) => !all.includes(name));
        if (unknown === undefined) return tools ?? all;
        const there = nameTools(all.map((name) => ({ name })));
        throw refuse(
          `the task "${title}" names ${unknown}, which is no tool that a copy of you can have; there are: ${there}`,
        );
      });
    },
  };
}
