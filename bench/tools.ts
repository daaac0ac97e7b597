import { systemClock } from "../src/lib/clock.ts";
import { now } from "../src/tools/now.ts";
import { median, percentile, type Row } from "./figure.ts";
import { type BenchHost, startHost, startMock } from "./host.ts";
import { runLoad } from "./load.ts";

const AGENTS = 64;
/** Messages to each agent, too few to fill its prompt. */
const EACH = 15;
const CALLS_A_MESSAGE = 4;
/** So many more messages with calls to each agent make a long conversation. */
const LONG = 100;
const ALONE = 200;

/** What a call of a tool costs beside the function itself, and how many calls 64 agents make at once. */
export async function benchTools(): Promise<Row[]> {
  await using mock = await startMock("calling-model.ts");
  await using host = await startHost({ ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: mock.url });
  const { instanceId } = await host.ask("POST", "/v1/instances", { name: "bench" });
  const path = `/v1/instances/${instanceId}/agents`;
  const agents: string[] = [];
  for (let number = 0; number < AGENTS; number++) {
    agents.push((await host.ask("POST", path, { name: `a${number}`, slug: `a${number}` })).agentId ?? "");
  }
  await timeCalls(host, `${path}/${agents[0]}`, ALONE / 4);
  const alone = await timeCalls(host, `${path}/${agents[0]}`, ALONE);
  const bare = await timeBare(ALONE);
  const many = (message: string, each = EACH) =>
    runLoad({
      url: host.server.url,
      method: "POST",
      path: `${path}/{agent}/messages`,
      headers: { "X-API-Key": host.key, "Content-Type": "application/json" },
      body: JSON.stringify({ message, stream: true }),
      agents,
      connections: AGENTS,
      requests: AGENTS * each,
      seconds: 60,
      until: "event: run.completed",
    });
  await many("Hello");
  const plain = await many("Hello");
  const calling = await many("once: four");
  await many("once: four", LONG);
  const later = await many("once: four");
  const [p50, p99] = [median(alone), percentile(alone, 0.99)];
  return [
    {
      figure: "a tool's call, from its start to its result as events, p50",
      value: p50,
      unit: "ms",
      baseline: { what: "the bare function", value: median(bare) },
      goal: "≤ 1 ms more",
      met: p50 - median(bare) <= 1,
    },
    {
      figure: "the same, p99",
      value: p99,
      unit: "ms",
      baseline: { what: "the bare function", value: percentile(bare, 0.99) },
      goal: "≤ 10 ms more",
      met: p99 - percentile(bare, 0.99) <= 10,
    },
    {
      figure: `${AGENTS} agents at once, messages of two steps with ${CALLS_A_MESSAGE} calls`,
      value: calling.perSecond,
      unit: "messages/s",
      baseline: { what: "of one step, without", value: plain.perSecond },
    },
    {
      figure: `the same after ${LONG} such messages more to each`,
      value: later.perSecond,
      unit: "messages/s",
      baseline: { what: "before", value: calling.perSecond },
    },
    {
      figure: "calls of tools in the first of these",
      value: calling.perSecond * CALLS_A_MESSAGE,
      unit: "calls/s",
    },
    {
      figure: "such a message, p99",
      value: percentile(calling.latenciesMs, 0.99),
      unit: "ms",
      baseline: { what: "without tools", value: percentile(plain.latenciesMs, 0.99) },
    },
  ];
}

/** As a client sees them: from `tool.started` to `tool.completed`, in milliseconds. */
async function timeCalls(host: BenchHost, agent: string, times: number): Promise<number[]> {
  const taken: number[] = [];
  for (let time = 0; time < times; time++) {
    const response = await fetch(new URL(`${agent}/messages`, host.server.url), {
      method: "POST",
      headers: { "X-API-Key": host.key, "Content-Type": "application/json" },
      body: JSON.stringify({ message: "once: one", stream: true }),
    });
    let [text, startedAt, completedAt] = ["", 0, 0];
    const decoder = new TextDecoder();
    for await (const bytes of response.body ?? []) {
      text += decoder.decode(bytes, { stream: true });
      if (startedAt === 0 && text.includes("event: tool.started")) startedAt = performance.now();
      if (completedAt === 0 && text.includes("event: tool.completed")) completedAt = performance.now();
    }
    if (completedAt === 0) throw new Error(`no tool was called: ${text}`);
    taken.push(completedAt - startedAt);
  }
  return taken;
}

async function timeBare(times: number): Promise<number[]> {
  const taken: number[] = [];
  const { signal } = new AbortController();
  const of = { instanceId: "", agentId: "", conversationId: "", runId: "", isTainted: false };
  for (let time = 0; time < times; time++) {
    const begun = performance.now();
    await now.run({ timeZone: "UTC" }, { ...of, clock: systemClock, signal });
    taken.push(performance.now() - begun);
  }
  return taken;
}
