import type { MessageRecord } from "../../messages/record.ts";
import { colours, oneLine, printable, say, terminalColumns } from "../output.ts";
import type { Client, Page } from "./client.ts";
import { wrapped } from "./wrapping.ts";

const MESSAGES = 6;
/** Of one message, in lines of the terminal, and as many characters as are looked at for them. */
const LINES = 8;
const CHARACTERS = 4_000;
const INDENT = "  ";

/** What was said last in a conversation that is taken up, dim: enough to go on from, long messages by their beginning. */
export async function showEarlier(client: Client, path: string, conversationId?: string): Promise<void> {
  const of = conversationId === undefined ? "" : `&conversationId=${encodeURIComponent(conversationId)}`;
  const { data, nextCursor } = await client.call<Page<MessageRecord>>(
    "GET",
    `${path}/messages?order=desc&limit=${MESSAGES}${of}`,
  );
  if (nextCursor !== null) say(colours.dim("…"));
  for (const message of data.toReversed()) for (const line of linesOf(message)) say(colours.dim(line));
}

/** How a message that its run did not complete ends. */
const ENDINGS: Record<string, string> = {
  error: "· the answer failed",
  cancelled: "· cancelled",
};

function linesOf({ role, message, sender, finishReason }: MessageRecord): string[] {
  const who = role === "user" && sender.type === "human" ? "you" : oneLine(sender.name);
  const text = printable(message).trim();
  const lines = wrapped(`${who}> ${text.slice(0, CHARACTERS)}`, (terminalColumns() ?? 80) - INDENT.length);
  const ending = ENDINGS[finishReason ?? ""];
  const isCut = lines.length > LINES || text.length > CHARACTERS;
  const [first = "", ...others] = [...lines.slice(0, LINES), ...(isCut ? ["…"] : []), ...(ending ? [ending] : [])];
  return [first, ...others.map((line) => INDENT + line)];
}
