import { UsageError } from "../failure.ts";
import { colours, layOut, note, printJson, printTable, say, sayBeside, shortTime, terminalColumns } from "../output.ts";
import type { Records } from "./client.ts";
import { openClient, type ServerOptions } from "./credentials.ts";
import { AGENT, findAgent, findConversation, idsOf } from "./find.ts";
import { confirm } from "./prompt.ts";

const MEMORY = `${AGENT}/memory` as const;
type Item = Records["MemoryFound"]["items"][number];

interface Options extends ServerOptions {
  json?: true;
}

interface ForgetOptions extends Options {
  run?: string;
  conversation?: string;
  dryRun?: true;
  yes?: true;
}

/** `roost memory search INSTANCE AGENT QUERY` */
export async function searchMemory(
  instance: string,
  agent: string,
  query: string,
  { limit, ...options }: Options & { limit: number },
): Promise<void> {
  const client = openClient(options);
  const path = idsOf(await findAgent(client, instance, agent));
  const found = await client.get(MEMORY, { path, query: { query, limit } });
  if (options.json) {
    printJson(found);
    return;
  }
  print(found.items, "Nothing was found.");
  if (found.degraded !== null) note(`Not everything was searched: ${found.degraded}.`);
}

/** `roost memory forget INSTANCE AGENT`: what a run, or a conversation, has left in the memory. */
export async function forgetMemory(
  instance: string,
  agent: string,
  { run, conversation, dryRun, ...options }: ForgetOptions,
): Promise<void> {
  if ((run === undefined) === (conversation === undefined)) {
    throw new UsageError("give either --run or --conversation: what is to be forgotten?");
  }
  const client = openClient(options);
  const found = await findAgent(client, instance, agent);
  const what =
    run === undefined
      ? {
          conversationId: (await findConversation(client, found, conversation ?? "", { instance, agent }))
            .conversationId,
        }
      : { runId: run };
  const path = idsOf(found);
  const forget = (dry: "true" | "false") => client.delete(MEMORY, { path, query: { ...what, dryRun: dry } });
  if (!dryRun && !options.yes) {
    const found = await forget("true");
    if (!options.json) print(found.items, "There is nothing to forget.");
    if (found.deleted === 0) {
      if (options.json) printJson(found);
      return;
    }
    await confirm(`Forget these ${found.deleted} lines and messages?`, undefined, options.json && found.items);
  }
  const forgotten = await forget(dryRun ? "true" : "false");
  if (options.json) printJson(forgotten);
  else if (dryRun) print(forgotten.items, "There is nothing to forget.");
  else say(`${forgotten.deleted} lines and messages are forgotten.`);
}

const INDENT = 2;

/** All of each text: below where it stands, if the terminal is too narrow for a table. */
function print(items: readonly Item[], empty: string): void {
  const heads = ["WRITTEN", "BY", "WHERE", "TEXT"];
  const rows = items.map(({ text, ...item }) => [...placeOf(item), text.replace(/\s+/g, " ")]);
  const columns = terminalColumns() ?? Number.POSITIVE_INFINITY;
  if (layOut(heads, rows, columns).every((line) => Bun.stringWidth(line) <= columns)) {
    printTable(heads, rows, empty, {});
    return;
  }
  for (const { text, ...item } of items) {
    sayBeside([], 0, placeOf(item).join("  "), colours.dim);
    sayBeside([" ".repeat(INDENT)], INDENT, text.replace(/\s+/g, " "));
  }
}

/** When it was written, by whom, and where it stands. */
const placeOf = (item: Omit<Item, "text">): string[] => [shortTime(item.createdAt), item.origin, whereOf(item)];

const whereOf = ({ file, fromLine, conversationId }: Omit<Item, "text">): string =>
  file === null ? (conversationId ?? "-") : `${file}:${fromLine ?? 1}`;
