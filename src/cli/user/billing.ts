import { DAY_MS, dayOf } from "../../lib/calendar.ts";
import { formatMoney } from "../../lib/money.ts";
import { balanceCents, colours, printFields, printJson, printTable, say, shortMoney, shortTime } from "../output.ts";
import { barsOf } from "./bars.ts";
import type { Client, Records } from "./client.ts";
import { openClient, type ServerOptions } from "./credentials.ts";
import { namesOfInstances } from "./find.ts";

const DAYS = 14;
const LINES = 10;

/** `roost billing`: the balance, how long it will last, what it was spent on; as JSON, the API's record with those */
export async function showBilling(options: ServerOptions & { json?: true }): Promise<void> {
  const client = openClient(options);
  const billing = await client.get("/v1/billing");
  const { data: transactions } = await client.get("/v1/billing/transactions", { query: { limit: LINES } });
  const days = await readDays(client, Date.now());
  if (options.json) {
    const costs = [...days].map(([day, cost]) => ({ day, cost: formatMoney(cost) }));
    printJson({ ...billing, days: costs, transactions });
    return;
  }
  const isNamed = transactions.some(({ instanceId }) => instanceId !== null);
  const names = isNamed ? await namesOfInstances(client) : new Map<string, string>();
  printFields(fieldsOf(billing, client.url));
  say("");
  say(colours.bold(`USDC by day, the last ${DAYS} days`));
  for (const { label, bar, value } of barsOf(
    days,
    process.stdout.isTTY === true,
    process.stdout.columns || undefined,
    shortMoney,
  )) {
    say(colours.dim(label), "  ", ...(bar === "" ? [] : [colours.cyan(bar), " "]), value);
  }
  say("");
  printTable(
    ["TIME", "TYPE", "AMOUNT", "BALANCE", "FOR"],
    transactions.map(({ createdAt, type, amount, balanceAfter, instanceId, network, txHash }) => [
      shortTime(createdAt),
      type,
      shortMoney(amount),
      balanceCents(balanceAfter),
      instanceId === null ? (txHash === null ? "-" : `${network} ${txHash}`) : (names.get(instanceId) ?? instanceId),
    ]),
    "Nothing was credited or used yet.",
    { shorten: ["FOR"] },
  );
}

function fieldsOf(billing: Records["Billing"], url: string): [name: string, value: string][] {
  const { balance, owed, currency, pricePerHour, minimumTopUp, runningInstances, estimatedEmptyAt, networks } = billing;
  const running = runningInstances === 1 ? "1 instance" : `${runningInstances} instances`;
  const price = `${shortMoney(pricePerHour)} ${currency} an hour for each running instance`;
  const owedField: [string, string] = ["Owed", `${shortMoney(owed)} ${currency}, taken of the next payment`];
  return [
    ["Balance", `${balanceCents(balance)} ${currency}`],
    ...(Number(owed) > 0 ? [owedField] : []),
    ["Price", Number(pricePerHour) === 0 ? "this host does not charge" : price],
    ["Running", runningInstances === 0 ? "nothing" : running],
    ["Empty", estimatedEmptyAt === null ? "never, at the current rate" : shortTime(estimatedEmptyAt)],
    [
      "Top up",
      `from ${shortMoney(minimumTopUp)} ${currency}, on ${networks.join(", ")}: POST ${url}/v1/billing/top-up says how`,
    ],
    ["", `in a browser: ${url}; or ask the operator of this host for credit`],
  ];
}

/** Enough for a thousand instances every day. */
const MAX_ROWS = DAYS * 1_000;

/** The cost of each of the last days in micro-USDC, oldest first, including days without usage. */
async function readDays(client: Client, nowMs: number): Promise<Map<string, bigint>> {
  const costs = new Map<string, bigint>();
  for (let ago = DAYS - 1; ago >= 0; ago--) costs.set(dayOf(nowMs - ago * DAY_MS), 0n);
  const from = dayOf(nowMs - (DAYS - 1) * DAY_MS);
  let rows = 0;
  for await (const { day, cost } of client.all("/v1/billing/usage", { query: { from } })) {
    const before = costs.get(day);
    // A day that begins meanwhile is not in the chart.
    if (before !== undefined) costs.set(day, before + BigInt(cost.replace(".", "")));
    if (++rows === MAX_ROWS) break;
  }
  return costs;
}
