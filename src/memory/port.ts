import type { Agents } from "../agents/agents.ts";
import { AppError, notFound } from "../lib/app-error.ts";
import { dayOf } from "../lib/calendar.ts";
import type { MemoryPort, WorkspacePort } from "../tools/ports.ts";
import type { ToolContext } from "../tools/tool.ts";
import type { Memory } from "./memory.ts";
import type { Found } from "./search/entry.ts";

export interface MemoryPortParts {
  memory: Pick<Memory, "search">;
  agents: Pick<Agents, "find">;
  files: Pick<WorkspacePort, "read" | "edit" | "write">;
}

/** Messages of the run that searches. */
const OWN_MESSAGES = 2;
/** How often a note is written anew because the day's file was created meanwhile. */
const MAX_TRIES = 3;

/** The agent's memory as its tools use it. A note goes the way of every file that an agent writes. */
export function createMemoryPort({ memory, agents, files }: MemoryPortParts): MemoryPort {
  /** Nobody else's note is lost: it is always added to what is there. */
  async function add(context: ToolContext, name: string, line: string): Promise<void> {
    for (let tried = 1; ; tried++) {
      try {
        await files.edit(context, name, (before) => {
          const text = before.toString();
          return Buffer.from(`${text}${text === "" || text.endsWith("\n") ? "" : "\n"}${line}\n`);
        });
        return;
      } catch (error) {
        if (!(error instanceof AppError && error.code === "not_found")) throw error;
      }
      try {
        await files.write(context, name, `# ${dayOf(context.clock.now())}\n\n${line}\n`);
        return;
      } catch (error) {
        if (tried === MAX_TRIES) throw error;
      }
    }
  }

  return {
    async search({ agentId, runId }, query, limit) {
      const agent = agents.find(agentId);
      if (agent === undefined) throw notFound("agent");
      const { items, degraded } = await memory.search(agent, query, limit + OWN_MESSAGES);
      // What this run was asked is in its prompt.
      const others = items.filter((found) => found.file !== null || found.runId !== runId);
      return {
        degraded,
        items: others.slice(0, limit).map((found) => ({
          where: placeOf(found),
          text: found.text,
          createdAt: found.createdAt,
          isUntrusted: found.origin === "untrusted",
        })),
      };
    },
    async remember(context, text) {
      const name = `memory/${dayOf(context.clock.now())}.md`;
      // One line is one note: what it says of itself is kept by its line.
      await add(context, name, `- ${text.replace(/\s*\n\s*/g, " ")}`);
      return name;
    },
  };
}

function placeOf({ file, fromLine, toLine, origin }: Found): string {
  if (file === null) return origin === "agent" ? "You said in a conversation" : "Said in a conversation";
  return fromLine === toLine ? `${file}, line ${fromLine}` : `${file}, lines ${fromLine} to ${toLine}`;
}
