import { DAY_MS, dayOf } from "../../lib/calendar.ts";
import { parseMoney, shortMoney } from "../../lib/money.ts";
import { colours, printJson, printTable, say } from "../output.ts";
import { barsOf } from "./bars.ts";
import type { Client } from "./client.ts";
import { openClient, type ServerOptions } from "./credentials.ts";
import { namesOfInstances } from "./find.ts";

const BY = ["agent", "instance", "model"] as const;
export type UsageBy = (typeof BY)[number];

export interface UsageOptions extends ServerOptions {
  json?: true;
  by?: UsageBy;
  days?: number;
}

const DEFAULT_DAYS = 14;

/** `roost usage`: what models used, by day as bars, and by agent, instance or model; as JSON, the API's records. */
export async function showUsage({ by = "agent", days = DEFAULT_DAYS, ...options }: UsageOptions): Promise<void> {
  const client = openClient(options);
  const now = Date.now();
  const from = dayOf(now - (days - 1) * DAY_MS);
  const byDay = await Array.fromAsync(client.all("/v1/usage", { query: { by: "day", from } }));
  const rows = await Array.fromAsync(client.all("/v1/usage", { query: { by, from } }));
  if (options.json) {
    printJson({ days: byDay, [`${by}s`]: rows });
    return;
  }
  const tokens = new Map<string, bigint>();
  for (let ago = days - 1; ago >= 0; ago--) tokens.set(dayOf(now - ago * DAY_MS), 0n);
  for (const row of byDay) tokens.set(row.day ?? "", tokensOf(row));
  say(colours.bold(`Tokens of models by day, the last ${days} days`));
  const isTerminal = process.stdout.isTTY === true;
  for (const { label, bar, value } of barsOf(tokens, isTerminal, process.stdout.columns || undefined, String)) {
    say(colours.dim(label), "  ", ...(bar === "" ? [] : [colours.cyan(bar), " "]), value);
  }
  say("");
  const names = await NAMES[by](client);
  printTable(
    [by.toUpperCase(), "RUNS", "CALLS", "PROMPT", "CACHED", "ANSWERS", "USD"],
    rows.map((row) => {
      const name = row.agentId ?? row.instanceId ?? row.model ?? "";
      return [
        names.get(name) ?? name,
        ...[row.runs, row.modelCalls, row.promptTokens, row.cachedTokens, row.completionTokens].map(String),
        row.cost === null ? "-" : shortMoney(parseMoney(row.cost) ?? 0n),
      ];
    }),
    "No model was called yet.",
    { leaveOut: ["CACHED", "CALLS"], shorten: [by.toUpperCase()] },
  );
}

/** Whatever a server sends, bars are made of whole numbers. */
const tokensOf = ({ promptTokens, completionTokens }: { promptTokens: number; completionTokens: number }): bigint =>
  BigInt(Math.max(0, Math.trunc(Number(promptTokens) + Number(completionTokens)) || 0));

const NAMES = {
  agent: agentNames,
  instance: namesOfInstances,
  model: async () => new Map<string, string>(),
};

/** Instances whose agents are named: the others are shown by their ids. */
const MAX_INSTANCES = 100;

/** `instance/agent` by the agent's id. */
async function agentNames(client: Client): Promise<Map<string, string>> {
  const names = new Map<string, string>();
  const { data: instances } = await client.get("/v1/instances", { query: { limit: MAX_INSTANCES } });
  for (const { instanceId, name } of instances) {
    const agents = client.all("/v1/instances/{instanceId}/agents", { path: { instanceId } });
    for await (const { agentId, slug } of agents) names.set(agentId, `${name}/${slug}`);
  }
  return names;
}
