import { z } from "zod";
import type { ToolDescription } from "../models/engine.ts";
import { SEARCH_TOOLS, type Tool, type ToolContext } from "./tool.ts";
import { rankTools } from "./tool-ranking.ts";

/** Tools that one search shows. */
const MAX_FOUND = 8;
/** The most characters of them: an output has room for no more. */
const MAX_CHARACTERS = 12_000;

const input = z.lazy(() =>
  z.object({
    query: z.string().trim().min(1).max(500).describe("what the tool should do, in a few words, or its name"),
  }),
);

type WhoSearches = Pick<ToolContext, "instanceId" | "agentId" | "onlyTools">;

/** Finds tools of an agent that its model was not told of. `toolsOf` returns those of a run. */
export const createSearchTools = (
  toolsOf: (context: WhoSearches) => readonly ToolDescription[],
): Tool<typeof input> => ({
  name: SEARCH_TOOLS,
  description: "Finds more tools than are listed here, and tells the input of each. Then call one with call_tool.",
  input,
  deadlineMs: 5_000,
  changes: "nothing",
  untrustedOutput: false,
  async run({ query }, context) {
    const tools = toolsOf(context);
    const found = rankTools(tools, query).slice(0, MAX_FOUND);
    if (found.length === 0) {
      return `No tool fits "${query}": say it in other words, or name one of these: ${nameTools(tools)}`;
    }
    const shown: string[] = [];
    let room = MAX_CHARACTERS;
    for (const tool of found) {
      const text = show(tool);
      // The first is shown, whatever its length.
      if (shown.length > 0 && text.length > room) continue;
      room -= text.length;
      shown.push(text);
    }
    return shown.join("\n\n");
  },
});

const show = ({ name, description, inputSchema }: ToolDescription): string =>
  `${name}: ${description}\ninput: ${JSON.stringify(inputSchema)}`;

/** The most characters that a list of names takes. */
const MAX_NAMES = 1_000;

/** The names of tools, as many as there is room for. */
export function nameTools(tools: readonly Pick<ToolDescription, "name">[]): string {
  const names: string[] = [];
  let room = MAX_NAMES;
  for (const { name } of tools) {
    room -= name.length + 2;
    if (room < 0) break;
    names.push(name);
  }
  const more = tools.length - names.length;
  return more > 0 ? [...names, `and ${more} more`].join(", ") : names.join(", ") || "none";
}
