import { z } from "zod";
import type { Agents } from "../agents/agents.ts";
import { spokenText } from "../http/fields.ts";
import { type Asked, type Route, route } from "../http/route.ts";
import { AppError } from "../lib/app-error.ts";
import { idForm } from "../lib/forms.ts";
import type { ToForget } from "./forgetting.ts";
import type { Memory } from "./memory.ts";
import { MemoryFound, MemoryItem, showFound } from "./record.ts";

const MEMORY = "/v1/instances/:instanceId/agents/:agentId/memory";
const LIMIT = "a whole number from 1 to 50";
const ONE_OF_THEM = "runId or conversationId, one of the two";

/** What an agent remembers (docs/contract/api.md, Memory). */
export function memoryRoutes(agents: Pick<Agents, "get">, memory: Memory): Route[] {
  const own = ({ caller, params }: Asked<{ instanceId: string; agentId: string }>) =>
    agents.get(caller, params.instanceId, params.agentId);

  return [
    route({
      method: "GET",
      path: MEMORY,
      name: "searchAgentMemory",
      tag: "memory",
      summary: "Search what the agent remembers, best first",
      description: "Its files and what was said in its conversations, by words and by meaning.",
      access: "read",
      bound: "texts",
      query: z.object({
        query: spokenText(1_000),
        limit: z
          .string({ error: LIMIT })
          .regex(/^\d{1,2}$/, { error: LIMIT })
          .transform(Number)
          .refine((limit) => limit >= 1 && limit <= 50, { error: LIMIT })
          .default(10)
          .meta({ type: "integer", pattern: undefined, minimum: 1, maximum: 50 }),
      }),
      answer: MemoryFound,
      find: own,
      async handle({ found: { agent }, query }) {
        const { query: text, limit } = query();
        const { items, degraded } = await memory.search(agent, text, limit);
        return { items: items.map(showFound), degraded };
      },
    }),
    route({
      method: "DELETE",
      path: MEMORY,
      name: "forgetAgentMemory",
      tag: "memory",
      summary: "Forget what a run, or the runs of a conversation, noted and said",
      description:
        "Removes the lines that they wrote into the files of the memory, and has their messages found no longer; the messages themselves stay. With `dryRun` nothing changes.",
      access: "write",
      bound: "texts",
      query: z.object({
        runId: idForm("run").optional(),
        conversationId: idForm("conv").optional(),
        dryRun: z.enum(["true", "false"], { error: "true or false" }).optional(),
      }),
      answer: z.object({
        deleted: z.int().describe("Lines and messages"),
        items: z.array(MemoryItem).describe("The first 50 of them"),
      }),
      find: own,
      commit: "shared",
      async handle({ find, query, commit }) {
        const { dryRun, ...what } = query();
        const { deleted, items } = await memory.forget(find, toForget(what), dryRun === "true", commit);
        return { deleted, items: items.map(showFound) };
      },
    }),
  ];
}

function toForget({
  runId,
  conversationId,
}: {
  runId?: string | undefined;
  conversationId?: string | undefined;
}): ToForget {
  if (runId !== undefined && conversationId === undefined) return { runId };
  if (conversationId !== undefined && runId === undefined) return { conversationId };
  throw new AppError("invalid_request", `query: expected ${ONE_OF_THEM}`);
}
