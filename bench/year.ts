import { Database } from "bun:sqlite";
import { statSync } from "node:fs";
import { join } from "node:path";
import { openHostKeys } from "../src/accounts/host-keys.ts";
import { createPaging } from "../src/http/paging.ts";
import { dayOf } from "../src/lib/calendar.ts";
import { defaultConversationOf } from "../src/messages/schema.ts";
import { median, type Row, residentMiB } from "./figure.ts";
import { type BenchHost, startHost, startMock } from "./host.ts";
import { fillYear, type Year } from "./year-data.ts";

/** 5 million messages and as many events, with 2.5 million runs; a quarter of the messages in one conversation. */
const MANY: Year = { exchanges: 2_500_000, neighbours: 63, runsWithEvents: 9_766 };
/** A thousand. */
const FEW: Year = { exchanges: 250, neighbours: 0, runsWithEvents: 62 };
const ROUNDS = 60;
const STARTS = 5;
/** Of the same run: as fast, as far as this machine can tell. */
const AS_FAST = 1.5;

interface Aged {
  host: BenchHost;
  /** `/v1/instances/…/agents/…` */
  agent: string;
  conversation: string;
  /** The cursor of a page in the middle of the conversation. */
  middle: string;
  runId: string;
  lastEvent: number;
  starts: number[];
}

/** What a host of a year's use costs over a new one: starts, pages, streams, messages. Both run in turn. */
export async function benchYear(many = MANY): Promise<Row[]> {
  await using mock = await startMock();
  const env = { ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: mock.url };
  await using fewHost = await startHost(env);
  await using manyHost = await startHost(env);
  const few = await age(fewHost, FEW);
  const old = await age(manyHost, many);
  for (let round = 0; round < STARTS; round++)
    for (const { host, starts } of [few, old]) starts.push(await host.restart());
  const idle = [few, old].map(({ host }) => residentMiB(host.server.process.pid));
  const rows: Row[] = [
    compare("start to first 200", median(few.starts), median(old.starts)),
    compare("memory after the start", idle[0] ?? 0, idle[1] ?? 0, "MiB"),
  ];
  for (const [figure, work] of Object.entries(WORKS)) {
    const taken: [few: number[], old: number[]] = [[], []];
    for (let round = 0; round < ROUNDS; round++) {
      for (const [place, aged] of [few, old].entries()) {
        const begun = performance.now();
        await work(aged);
        taken[place]?.push(performance.now() - begun);
      }
    }
    rows.push(compare(figure, median(taken[0]), median(taken[1])));
  }
  const used = [few, old].map(({ host }) => residentMiB(host.server.process.pid));
  const bytes = statSync(join(old.host.dataDir, "roost.db")).size;
  return [
    ...rows,
    compare("memory after all of it", used[0] ?? 0, used[1] ?? 0, "MiB"),
    { figure: "size of its database", value: bytes / 2 ** 30, unit: "GiB" },
  ];
}

function compare(figure: string, few: number, many: number, unit = "ms"): Row {
  const baseline = { what: "with 1,000", value: few };
  const row = { figure: `a year's host: ${figure}`, value: many, unit, baseline };
  return { ...row, goal: `≤ ${AS_FAST} × with 1,000`, met: many <= AS_FAST * few };
}

/** Each on both hosts in turn. */
const WORKS: Record<string, (aged: Aged) => Promise<unknown>> = {
  "first page of messages": ({ host, agent }) => host.ask("GET", `${agent}/messages?order=desc`),
  "page in the middle of a conversation": ({ host, agent, middle }) =>
    host.ask("GET", `${agent}/messages?after=${middle}`),
  "first page of runs": ({ host, agent }) => host.ask("GET", `${agent}/runs`),
  "page of failed runs": ({ host, agent }) => host.ask("GET", `${agent}/runs?status=failed`),
  "one run": ({ host, agent, runId }) => host.ask("GET", `${agent}/runs/${runId}`),
  "list of conversations": ({ host, agent }) => host.ask("GET", `${agent}/conversations`),
  "list of agents": ({ host, agent }) => host.ask("GET", agent.replace(/\/[^/]*$/, "")),
  "100 events of a resumed stream": (aged) => resume(aged, "/events"),
  "the same of one conversation": (aged) => resume(aged, `/events?conversationId=${aged.conversation}`),
  "usage of a year by day": ({ host }) => host.ask("GET", `/v1/usage?by=day&limit=100&${ofYear()}`),
  "usage of a year by agent": ({ host }) => host.ask("GET", `/v1/usage?by=agent&${ofYear()}`),
  "a message, to its answer": ({ host, agent }) => host.ask("POST", `${agent}/messages`, { message: "Hello" }),
};

const ofYear = (): string => `from=${dayOf(Date.now() - 365 * 86_400_000)}&to=${dayOf(Date.now())}`;

async function age(host: BenchHost, year: Year): Promise<Aged> {
  const { instanceId } = await host.ask("POST", "/v1/instances", { name: "year" });
  const { agentId = "" } = await host.ask("POST", `/v1/instances/${instanceId}/agents`, { name: "Ada" });
  await host.restart(() => fillYear(host.dataDir, agentId, year));
  const conversation = defaultConversationOf(agentId);
  using sqlite = new Database(join(host.dataDir, "roost.db"), { readonly: true });
  const one = (sql: string) => sqlite.query<{ it: never }, [string]>(sql).get(agentId)?.it;
  const middle = one("SELECT (min(message_seq) + max(message_seq)) / 2 AS it FROM messages WHERE agent_id = ?");
  return {
    host,
    agent: `/v1/instances/${instanceId}/agents/${agentId}`,
    conversation,
    middle: createPaging(openHostKeys(host.dataDir).cursorKey)(`messages ${conversation} asc`, {
      limit: 1,
    }).cursorBehind(String(middle)),
    runId: one("SELECT max(run_id) AS it FROM runs WHERE agent_id = ?") ?? "",
    lastEvent: one("SELECT last_event_id AS it FROM agents WHERE agent_id = ?") ?? 0,
    starts: [],
  };
}

async function resume({ host, agent, lastEvent }: Aged, path: string): Promise<void> {
  const stop = new AbortController();
  const headers = { "X-API-Key": host.key, "Last-Event-ID": String(lastEvent - 400) };
  const response = await fetch(new URL(agent + path, host.server.url), { headers, signal: stop.signal });
  if (!response.ok || !response.body) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  let text = "";
  const decoder = new TextDecoder();
  for await (const bytes of response.body) {
    text += decoder.decode(bytes, { stream: true });
    if (text.includes(`\nid: ${lastEvent - 300}\n`)) break;
  }
  stop.abort();
}
