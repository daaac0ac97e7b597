import { colours, printJson, printTable, say } from "../output.ts";
import type { Records } from "./client.ts";
import { openClient, type ServerOptions } from "./credentials.ts";
import { AGENT, findAgent, findConversation } from "./find.ts";

type Piece = Records["AgentContext"]["pieces"][number];

interface Options extends ServerOptions {
  conversation?: string;
  json?: true;
}

/** Characters of the longest bar. */
const BAR = 24;
/** Pieces that are shown together, since there are many of them. */
const TOGETHER: Partial<Record<string, string>> = { message: "messages", tool: "tools" };

/** `roost context INSTANCE AGENT`: what the next prompt would hold, and how many tokens each part takes. */
export async function showContext(
  instance: string,
  givenAgent: string,
  { conversation, json, ...options }: Options,
): Promise<void> {
  const client = openClient(options);
  const agent = await findAgent(client, instance, givenAgent);
  const typed = { instance, agent: givenAgent };
  const found = conversation === undefined ? undefined : await findConversation(client, agent, conversation, typed);
  const query = found ? { conversationId: found.conversationId } : {};
  const context = await client.get(`${AGENT}/context`, { path: agent, query });
  if (json) {
    printJson(context);
    return;
  }
  const rows = rowsOf(context.pieces);
  const most = Math.max(1, ...rows.map(({ tokens }) => tokens));
  printTable(
    ["PART", "TOKENS", "SHARE"],
    rows.map(({ name, tokens }) => [
      name,
      String(tokens),
      (process.stdout.isTTY ? "█" : "#").repeat(Math.ceil((BAR * Math.max(0, tokens)) / most)),
    ]),
    "The prompt is empty.",
    { leaveOut: ["SHARE"], shorten: ["PART"] },
  );
  const { model, totalTokens, contextTokens, dropped } = context;
  say(colours.dim(`${totalTokens} of ${contextTokens} tokens, for ${model}`));
  if (dropped > 0) say(colours.yellow(`${dropped} older messages are not shown to the model`));
}

function rowsOf(pieces: readonly Piece[]): { name: string; tokens: number }[] {
  const rows = new Map<string, { tokens: number; count: number }>();
  for (const { kind, name, tokens } of pieces) {
    const key = TOGETHER[kind] ?? name;
    const row = rows.get(key) ?? { tokens: 0, count: 0 };
    rows.set(key, { tokens: row.tokens + tokens, count: row.count + 1 });
  }
  return [...rows].map(([name, { tokens, count }]) => ({ name: count > 1 ? `${name} (${count})` : name, tokens }));
}
