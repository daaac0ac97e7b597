import { colours, oneLine, printable, say, terminalColumns } from "../output.ts";
import { wrapText } from "../word-wrap.ts";
import type { Client, Records } from "./client.ts";
import { AGENT, type AgentRecord } from "./find.ts";

const MESSAGES = 6;
/** How much of one message is shown, in terminal lines, and how many characters are wrapped to find them. */
const LINES = 8;
const CHARACTERS = 4_000;
const INDENT = "  ";

/** Shows the last messages of a resumed conversation, dim; long ones are cut. */
export async function showRecentMessages(client: Client, agent: AgentRecord, conversationId?: string): Promise<void> {
  const query = { order: "desc", limit: MESSAGES, conversationId } as const;
  const { data, nextCursor } = await client.get(`${AGENT}/messages`, { path: agent, query });
  if (nextCursor !== null) say(colours.dim("…"));
  for (const message of data.toReversed()) for (const line of linesOf(message)) say(colours.dim(line));
}

/** The last line of a message whose run did not complete. */
const ENDINGS: Record<string, string> = {
  error: "· the answer failed",
  cancelled: "· cancelled",
};

function linesOf({ role, message, sender, finishReason }: Records["Message"]): string[] {
  const who = role === "user" && sender.type === "human" ? "you" : oneLine(sender.name);
  const text = printable(message).trim();
  const lines = wrapText(`${who}> ${text.slice(0, CHARACTERS)}`, (terminalColumns() ?? 80) - INDENT.length);
  const ending = ENDINGS[finishReason ?? ""];
  const isCut = lines.length > LINES || text.length > CHARACTERS;
  const [first = "", ...others] = [...lines.slice(0, LINES), ...(isCut ? ["…"] : []), ...(ending ? [ending] : [])];
  return [first, ...others.map((line) => INDENT + line)];
}
